// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshTransportAPI

extension ConfigNode {
    /// The root table of a JSON text. Nothing in it has a position but the file.
    static func parsing(json text: ConfigText) throws(ConfigDiagnostic) -> ConfigNode {
        let place = SourcePosition(source: text.path)
        let document: JSONValue
        do throws(MeshError) {
            document = try JSONValue(parsing: Data(text.bytes))
        } catch {
            throw ConfigDiagnostic(.error, .syntax, at: place, "the file is not JSON", hint: detail(of: error))
        }
        guard case .object = document else {
            throw ConfigDiagnostic(
                .error, .syntax, at: place, "the file is no JSON object", hint: "write { … } around everything")
        }
        return ConfigNode(document, at: place)
    }

    private init(_ json: JSONValue, at place: SourcePosition) {
        let value: Value =
            switch json {
            case .null: .null
            case .bool(let flag): .boolean(flag)
            case .int(let number): .integer(number)
            case .double(let number): .real(number)
            case .string(let text): .string(text)
            case .array(let elements): .array(elements.map { ConfigNode($0, at: place) })
            case .object(let members):
                .table(
                    ConfigTable(
                        members.sorted { $0.key < $1.key }.map {
                            ConfigEntry(key: $0.key, keyPosition: place, node: ConfigNode($0.value, at: place))
                        }))
            }
        self.init(value, at: place)
    }

    /// What the decoder says about the place, where it does.
    private static func detail(of error: MeshError) -> String? {
        guard error.cause != nil else { return error.message }
        guard case .dataCorrupted(let context)? = error.cause as? DecodingError else { return nil }
        return context.underlyingError.map { "\($0)" } ?? context.debugDescription
    }
}

extension ConfigNode {
    /// The value as a module gets it. Text of overrides stays text.
    var json: JSONValue {
        switch value {
        case .table(let table): .object(Dictionary(table.entries.map { ($0.key, $0.node.json) }) { first, _ in first })
        case .array(let elements): .array(elements.map(\.json))
        case .string(let text), .unparsed(let text): .string(text)
        case .integer(let number): .int(number)
        case .real(let number): .double(number)
        case .boolean(let flag): .bool(flag)
        case .dateOrTime, .null: .null
        }
    }
}
