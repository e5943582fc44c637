// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import CToml

extension ConfigNode {
    /// The root table of a TOML text.
    static func parsing(toml text: ConfigText) throws(ConfigDiagnostic) -> ConfigNode {
        if let position = text.firstInvalidUTF8 {
            throw ConfigDiagnostic(
                .error, .syntax, at: position, "the file is not UTF-8 text here",
                hint: "save it as UTF-8")
        }
        let document = text.bytes.withUnsafeBytes { bytes in
            mh_toml_parse(bytes.bindMemory(to: CChar.self).baseAddress, bytes.count)
        }
        guard let document else {
            throw ConfigDiagnostic(
                .error, .syntax, at: SourcePosition(source: text.path), "not enough memory to read the file")
        }
        defer { mh_toml_free(document) }

        var place = mh_toml_position()
        let problem = mh_toml_error(document, &place)
        if problem.bytes != nil {
            let found = TOMLProblem(
                String(problem), at: SourcePosition(source: text.path, place), in: text)
            throw ConfigDiagnostic(.error, .syntax, at: found.position, found.message, hint: found.hint)
        }
        var count = 0
        var cursor = UnsafeBufferPointer(start: mh_toml_nodes(document, &count), count: count)[...]
        return read(&cursor, source: text.path)
    }

    /// Takes one node and all below it off the flat list. The shim bounds the depth.
    private static func read(
        _ cursor: inout Slice<UnsafeBufferPointer<mh_toml_node>>, source: String
    ) -> ConfigNode {
        guard let entry = cursor.popFirst() else { return ConfigNode(.null, at: SourcePosition(source: source)) }
        let value: Value =
            switch entry.kind {
            case MH_TOML_TABLE: .table(readTable(&cursor, count: entry.child_count, source: source))
            case MH_TOML_ARRAY: .array((0..<entry.child_count).map { _ in read(&cursor, source: source) })
            case MH_TOML_STRING: .string(String(entry.text))
            case MH_TOML_INTEGER: .integer(entry.integer)
            case MH_TOML_FLOAT: .real(entry.real)
            case MH_TOML_BOOLEAN: .boolean(entry.integer != 0)
            default: .dateOrTime
            }
        return ConfigNode(value, at: SourcePosition(source: source, entry.position))
    }

    private static func readTable(
        _ cursor: inout Slice<UnsafeBufferPointer<mh_toml_node>>, count: Int, source: String
    ) -> ConfigTable {
        var table = ConfigTable()
        for _ in 0..<count {
            guard let next = cursor.first else { break }
            table.set(
                ConfigEntry(
                    key: String(next.key), keyPosition: SourcePosition(source: source, next.key_position),
                    node: read(&cursor, source: source)))
        }
        return table
    }
}

extension SourcePosition {
    fileprivate init(source: String, _ position: mh_toml_position) {
        self.init(source: source, line: Int(position.line), column: Int(position.column))
    }
}

extension String {
    fileprivate init(_ text: mh_toml_text) {
        let bytes = UnsafeRawBufferPointer(start: text.bytes, count: text.length)
        self.init(decoding: bytes, as: UTF8.self)
    }
}

extension ConfigText {
    /// Where the first byte is that belongs to no character.
    var firstInvalidUTF8: SourcePosition? {
        var position = SourcePosition(source: path, line: 1, column: 1)
        var decoder = UTF8()
        var iterator = bytes.makeIterator()
        while true {
            switch decoder.decode(&iterator) {
            case .emptyInput: return nil
            case .error: return position
            case .scalarValue("\n"): position = SourcePosition(source: path, line: position.line + 1, column: 1)
            case .scalarValue("\u{FEFF}") where position.line == 1 && position.column == 1: break
            case .scalarValue: position.column += 1
            }
        }
    }
}
