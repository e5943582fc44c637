// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// A JSON document as a value: module options, event data, answers of the control socket.
public enum JSONValue: Sendable, Hashable {
    case null
    case bool(Bool)
    case int(Int64)
    case double(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// How many arrays and objects may lie in each other. The decoder's time and stack grow with it, and no document of
    /// ours comes near.
    public static let maximumDepth = 32

    /// Reads one JSON document in UTF-8. Throws ``MeshError/Code-swift.struct/invalidArgument``, for a document that is
    /// nested deeper than ``maximumDepth`` before anything is decoded.
    public init(parsing data: Data) throws(MeshError) {
        guard let depth = Self.depth(of: data) else {
            throw MeshError(.invalidArgument, "not a JSON document in UTF-8")
        }
        guard depth <= Self.maximumDepth else {
            throw MeshError(
                .invalidArgument,
                "a JSON document with arrays and objects \(depth) deep; at most \(Self.maximumDepth) are allowed")
        }
        do {
            self = try JSONDecoder().decode(JSONValue.self, from: data)
        } catch {
            throw MeshError(.invalidArgument, "not a JSON document", cause: error)
        }
    }

    /// The deepest nesting of brackets outside of strings; nil when the text is not UTF-8. One look at each byte.
    private static func depth(of data: Data) -> Int? {
        var (depth, deepest) = (0, 0)
        var (isInString, isEscaped) = (false, false)
        for byte in data {
            switch byte {
            // Only in UTF-16 and UTF-32, which the decoder reads, too, and where bytes mean something else.
            case 0: return nil
            case _ where isEscaped: isEscaped = false
            case UInt8(ascii: "\\"): isEscaped = isInString
            case UInt8(ascii: "\""): isInString.toggle()
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                if isInString { break }
                depth += 1
                deepest = max(deepest, depth)
            case UInt8(ascii: "]"), UInt8(ascii: "}"): if !isInString { depth -= 1 }
            default: break
            }
        }
        return deepest
    }

    /// The document as UTF-8 with sorted keys on one line.
    public func serialized(pretty: Bool = false) -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting =
            pretty
            ? [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
            : [.sortedKeys, .withoutEscapingSlashes]
        // Every case is representable but a NaN or an infinity, which `encode(to:)` turns into null.
        return (try? encoder.encode(self)) ?? Data("null".utf8)
    }

    /// ``serialized(pretty:)`` as text.
    public func text(pretty: Bool = false) -> String {
        String(decoding: serialized(pretty: pretty), as: UTF8.self)
    }

    /// The member of an object; nil for other values and missing keys.
    public subscript(key: String) -> JSONValue? {
        if case .object(let members) = self { members[key] } else { nil }
    }

    /// The text of a string.
    public var stringValue: String? {
        if case .string(let value) = self { value } else { nil }
    }

    /// The number of an integer.
    public var intValue: Int64? {
        if case .int(let value) = self { value } else { nil }
    }

    /// The value of a boolean.
    public var boolValue: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// The elements of an array.
    public var arrayValue: [JSONValue]? {
        if case .array(let value) = self { value } else { nil }
    }

    /// The members of an object.
    public var objectValue: [String: JSONValue]? {
        if case .object(let value) = self { value } else { nil }
    }
}

extension JSONValue: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int64.self) {
            self = .int(value)
        } else if let value = try? container.decode(Double.self) {
            self = .double(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .int(let value): try container.encode(value)
        case .double(let value): if value.isFinite { try container.encode(value) } else { try container.encodeNil() }
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByNilLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .int(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(nilLiteral: ()) { self = .null }
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { $1 }))
    }
}
