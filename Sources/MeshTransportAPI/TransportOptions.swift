// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// One option of a transport, declared once: it gives validation, help and documentation.
public struct OptionSpec: Sendable, Hashable {
    /// What a value must look like.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        case string
        case int
        case bool
        /// Text such as `250ms`, `10s`, `5m`, `1h`.
        case duration
    }

    /// `lower_snake_case`, matching `^[a-z][a-z0-9_]{0,62}$`.
    public var name: String
    public var kind: Kind
    /// The default as text; nil means the option must be given.
    public var defaultText: String?
    /// One sentence for people.
    public var help: String
    /// Whether the value must never be shown.
    public var isSecret: Bool

    public init(_ name: String, _ kind: Kind, default defaultText: String?, help: String, secret: Bool = false) {
        self.name = name
        self.kind = kind
        self.defaultText = defaultText
        self.help = help
        self.isSecret = secret
    }
}

/// What is wrong with one option.
public struct OptionIssue: Sendable, Hashable {
    /// The option's name; empty where it concerns all of them.
    public var option: String
    /// What is wrong, with the value in question.
    public var message: String
    /// What to write instead, if that is known.
    public var hint: String?

    public init(option: String, message: String, hint: String? = nil) {
        self.option = option
        self.message = message
        self.hint = hint
    }
}

/// Options after validation: every option of the table has a value of its kind.
public struct OptionValues: Sendable, Hashable {
    /// One value.
    public enum Value: Sendable, Hashable {
        case string(String)
        case int(Int64)
        case bool(Bool)
        case duration(Duration)
    }

    private var values: [String: Value]

    init(_ values: [String: Value]) {
        self.values = values
    }

    /// The text of a string option; empty where the table has no such option.
    public func string(_ name: String) -> String {
        if case .string(let value) = values[name] { value } else { "" }
    }

    /// The number of an int option; 0 where the table has no such option.
    public func int(_ name: String) -> Int {
        if case .int(let value) = values[name] { Int(clamping: value) } else { 0 }
    }

    /// The value of a bool option; false where the table has no such option.
    public func bool(_ name: String) -> Bool {
        if case .bool(let value) = values[name] { value } else { false }
    }

    /// The value of a duration option; zero where the table has no such option.
    public func duration(_ name: String) -> Duration {
        if case .duration(let value) = values[name] { value } else { .zero }
    }
}

extension [OptionSpec] {
    /// Checks what a user wrote against this table and fills in defaults.
    ///
    /// All issues are found at once; with any issue the values hold defaults in the place of what was wrong.
    public func resolve(_ given: [String: JSONValue]) -> (values: OptionValues, issues: [OptionIssue]) {
        var values: [String: OptionValues.Value] = [:]
        var issues: [OptionIssue] = []
        for spec in self {
            if let written = given[spec.name] {
                if let value = spec.kind.value(of: written) {
                    values[spec.name] = value
                } else {
                    let shown = spec.isSecret ? "the value" : written.text()
                    issues.append(
                        OptionIssue(
                            option: spec.name, message: "\(shown) is not \(spec.kind.described)",
                            hint: spec.defaultText.flatMap { $0.isEmpty ? nil : "for example \($0)" }))
                }
            } else if spec.defaultText == nil {
                issues.append(
                    OptionIssue(option: spec.name, message: "option \"\(spec.name)\" is missing", hint: spec.help))
            }
            if values[spec.name] == nil, let text = spec.defaultText {
                values[spec.name] = spec.kind.value(ofText: text)
            }
        }
        let known = map(\.name)
        for name in given.keys.sorted() where !known.contains(name) {
            let nearest = NearestName.of(name, among: known).map { "did you mean \"\($0)\"?" }
            issues.append(OptionIssue(option: name, message: "unknown option \"\(name)\"", hint: nearest))
        }
        return (OptionValues(values), issues)
    }
}

extension [OptionIssue] {
    /// What an option table has found, and after it what its transport says of the values.
    ///
    /// A default stands there for each value that the table refuses. What the transport says of such an option, or of all
    /// together, is no word on what was written.
    public func joined(by judgement: [OptionIssue]) -> [OptionIssue] {
        if isEmpty { return judgement }
        let refused = Set(map(\.option))
        return self + judgement.filter { !$0.option.isEmpty && !refused.contains($0.option) }
    }
}

extension OptionSpec.Kind {
    var described: String {
        switch self {
        case .string: "a text"
        case .int: "a whole number"
        case .bool: "true or false"
        case .duration: "a duration such as 250ms, 10s or 5m"
        }
    }

    func value(of json: JSONValue) -> OptionValues.Value? {
        switch (self, json) {
        case (.string, .string(let text)): .string(text)
        case (.int, .int(let number)): .int(number)
        case (.bool, .bool(let flag)): .bool(flag)
        case (.duration, .string(let text)): Duration(optionText: text).map { .duration($0) }
        case (.string, _), (.int, _), (.bool, _), (.duration, _): nil
        }
    }

    func value(ofText text: String) -> OptionValues.Value? {
        switch self {
        case .string: .string(text)
        case .int: Int64(text).map { .int($0) }
        case .bool: text == "true" ? .bool(true) : text == "false" ? .bool(false) : nil
        case .duration: Duration(optionText: text).map { .duration($0) }
        }
    }
}
