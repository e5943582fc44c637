// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// One key of the configuration, declared once: it gives validation, the reference text and the documentation.
public struct KeySpec: Sendable, Hashable {
    public var name: String
    /// What a value looks like, such as `duration` or `one of error, warning`.
    public var typeText: String
    /// The default as a user would write it in TOML; nil where there is none.
    public var defaultText: String?
    /// Whether a section without this key is an error.
    public var isRequired: Bool
    /// Whether a change takes effect only when the daemon starts again.
    public var needsRestart: Bool
    /// One sentence for people.
    public var help: String
}

/// One section of the configuration and its keys.
public struct SectionSpec: Sendable, Hashable {
    /// As the reference shows it, such as `[[device]]`; empty for the top of the file.
    public var header: String
    /// One sentence for people.
    public var help: String
    public var keys: [KeySpec]

    init(_ header: String, help: String, keys: [KeySpec]) {
        self.header = header
        self.help = help
        self.keys = keys
    }
}

/// A key with the Swift type of its value. `Value` is optional where there is no default.
struct ConfigKey<Value: Sendable>: Sendable {
    var spec: KeySpec
    /// What holds without the key.
    var fallback: Value
    /// Reads what the user wrote.
    var parse: @Sendable (ConfigNode) throws(Complaint) -> Value

    init(
        _ name: String, type: String, fallback: Value, defaultText: String?, required: Bool = false,
        restart: Bool = false, help: String, parse: @escaping @Sendable (ConfigNode) throws(Complaint) -> Value
    ) {
        self.spec = KeySpec(
            name: name, typeText: type, defaultText: defaultText, isRequired: required, needsRestart: restart,
            help: help)
        self.fallback = fallback
        self.parse = parse
    }
}

/// Why a value does not fit its key. The reader adds place and section.
struct Complaint: Error {
    var code: ConfigDiagnostic.Code
    var message: String
    var hint: String?
    /// A place inside the value, where that is more exact.
    var position: SourcePosition?

    init(_ code: ConfigDiagnostic.Code, _ message: String, hint: String? = nil, at position: SourcePosition? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
        self.position = position
    }

    static func wrongType(_ key: String, takes wanted: String, _ node: ConfigNode, hint: String? = nil) -> Complaint {
        Complaint(.wrongType, "\"\(key)\" takes \(wanted), not \(node.typeName)", hint: hint, at: node.position)
    }

    static func notAllowed(_ key: String, _ text: String, hint: String?, at position: SourcePosition? = nil)
        -> Complaint
    {
        Complaint(.valueNotAllowed, "\"\(key)\" cannot be \(text.quoted)", hint: hint, at: position)
    }
}

extension String {
    /// The text as a TOML basic string.
    var quoted: String {
        var result = "\""
        for scalar in unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let hex = String(scalar.value, radix: 16, uppercase: true)
                result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
