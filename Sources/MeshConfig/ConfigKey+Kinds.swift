// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI

// The kinds of values. A value from a file has a type of its own and must match; text from an environment variable or
// a `--set` argument is read as what the key takes.

extension ConfigKey where Value == Bool {
    static func bool(_ name: String, default value: Bool, help: String) -> ConfigKey {
        ConfigKey(name, type: "true or false", fallback: value, defaultText: "\(value)", help: help) {
            node throws(Complaint) in
            switch node.value {
            case .boolean(let flag): return flag
            case .unparsed("true"): return true
            case .unparsed("false"): return false
            case .unparsed(let text):
                throw .notAllowed(name, text, hint: "write true or false")
            case .string("true"), .string("false"):
                throw .wrongType(name, takes: "true or false", node, hint: "write it without quotes")
            default: throw .wrongType(name, takes: "true or false", node)
            }
        }
    }
}

extension ConfigKey where Value == Int {
    static func int(
        _ name: String, _ range: ClosedRange<Int>, default value: Int, restart: Bool = false, help: String
    ) -> ConfigKey {
        ConfigKey(
            name, type: "\(range.lowerBound) to \(range.upperBound)", fallback: value, defaultText: "\(value)",
            restart: restart, help: help
        ) { node throws(Complaint) in
            let number: Int64
            switch node.value {
            case .integer(let value): number = value
            case .unparsed(let text):
                guard let value = Int64(text) else {
                    throw .notAllowed(name, text, hint: "write a whole number")
                }
                number = value
            case .string(let text) where Int64(text) != nil:
                throw .wrongType(name, takes: "a whole number", node, hint: "write it without quotes")
            default: throw .wrongType(name, takes: "a whole number", node)
            }
            guard let value = Int(exactly: number), range.contains(value) else {
                throw Complaint(
                    .outOfRange, "\"\(name)\" cannot be \(number)",
                    hint: "allowed are \(range.lowerBound) to \(range.upperBound)")
            }
            return value
        }
    }
}

extension ConfigKey where Value == Duration {
    static func duration(
        _ name: String, _ range: ClosedRange<Duration>, default value: Duration, restart: Bool = false, help: String
    ) -> ConfigKey {
        ConfigKey(
            name, type: "duration, \(range.lowerBound.optionText) to \(range.upperBound.optionText)", fallback: value,
            defaultText: value.optionText.quoted, restart: restart, help: help
        ) { node throws(Complaint) in
            guard let text = node.text else {
                let hint =
                    if case .integer(let number) = node.value { "\(number)s".quoted } else { value.optionText.quoted }
                throw .wrongType(name, takes: "a duration", node, hint: "write a text with a unit, such as \(hint)")
            }
            guard let duration = Duration(optionText: text) else {
                throw .notAllowed(name, text, hint: "write a number and a unit, such as 250ms, 10s, 5m, 1h or 2d")
            }
            guard range.contains(duration) else {
                throw Complaint(
                    .outOfRange, "\"\(name)\" cannot be \(text.quoted)",
                    hint: "allowed are \(range.lowerBound.optionText) to \(range.upperBound.optionText)")
            }
            return duration
        }
    }
}

extension ConfigKey where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    static func choice(_ name: String, default value: Value, restart: Bool = false, help: String) -> ConfigKey {
        ConfigKey(
            name, type: "one of \(choices.joined(separator: ", "))", fallback: value,
            defaultText: value.rawValue.quoted, restart: restart, help: help
        ) { node throws(Complaint) in
            try chosen(Value.init(rawValue:), among: choices, key: name, node)
        }
    }

    private static var choices: [String] { Value.allCases.map(\.rawValue) }
}

extension ConfigKey where Value == LogLevel {
    static func logLevel(_ name: String, default value: LogLevel, help: String) -> ConfigKey {
        let choices = LogLevel.allCases.map(\.name)
        return ConfigKey(
            name, type: "one of \(choices.joined(separator: ", "))", fallback: value, defaultText: value.name.quoted,
            help: help
        ) { node throws(Complaint) in
            try chosen(LogLevel.init(name:), among: choices, key: name, node)
        }
    }
}

extension ConfigKey {
    /// A choice that must be made.
    static func requiredChoice<Choice>(_ name: String, _: Choice.Type, help: String) -> ConfigKey
    where Value == Choice?, Choice: RawRepresentable & CaseIterable & Sendable, Choice.RawValue == String {
        let choices = Choice.allCases.map(\.rawValue)
        return ConfigKey(
            name, type: "one of \(choices.joined(separator: ", "))", fallback: nil, defaultText: nil, required: true,
            help: help
        ) { node throws(Complaint) in
            try chosen(Choice.init(rawValue:), among: choices, key: name, node)
        }
    }

    /// A choice without which something else decides.
    static func optionalChoice<Choice>(_ name: String, _: Choice.Type, help: String) -> ConfigKey
    where Value == Choice?, Choice: RawRepresentable & CaseIterable & Sendable, Choice.RawValue == String {
        var key = requiredChoice(name, Choice.self, help: help)
        key.spec.isRequired = false
        return key
    }

    fileprivate static func chosen<Choice>(
        _ make: (String) -> Choice?, among choices: [String], key: String, _ node: ConfigNode
    ) throws(Complaint) -> Choice {
        let list = choices.map(\.quoted).joined(separator: ", ")
        guard let text = node.text else {
            throw .wrongType(key, takes: "one of \(list)", node)
        }
        guard let choice = make(text) else {
            let nearest = NearestKey.of(text, among: choices)
            throw .notAllowed(key, text, hint: nearest.map { "did you mean \"\($0)\"?" } ?? "allowed are \(list)")
        }
        return choice
    }
}

extension ConfigKey where Value == String? {
    /// A text that follows a rule, and that may be missing.
    static func text(
        _ name: String, type: String, required: Bool = false, help: String, rule: TextRule
    ) -> ConfigKey {
        ConfigKey(name, type: type, fallback: nil, defaultText: nil, required: required, help: help) {
            node throws(Complaint) in
            try rule.read(node, key: name)
        }
    }
}

extension ConfigKey where Value == String {
    /// A file or folder.
    static func path(
        _ name: String, default value: String, restart: Bool, help: String, rule: TextRule = .absolutePath
    ) -> ConfigKey {
        ConfigKey(
            name, type: "absolute path", fallback: value, defaultText: value.quoted, restart: restart, help: help
        ) { node throws(Complaint) in
            try rule.read(node, key: name)
        }
    }
}

extension ConfigKey where Value == [String] {
    /// Folders; in an environment variable or a `--set` argument a list as in a file, or separated by colons as in `PATH`.
    static func paths(_ name: String, restart: Bool, help: String) -> ConfigKey {
        ConfigKey(
            name, type: "list of absolute paths", fallback: [], defaultText: "[]", restart: restart, help: help
        ) { node throws(Complaint) in
            let elements: [ConfigNode]
            switch try node.readingList(of: name).value {
            case .array(let nodes): elements = nodes
            case .unparsed(let text):
                elements = text.split(separator: ":").map { ConfigNode(.unparsed(String($0)), at: node.position) }
            default:
                throw .wrongType(
                    name, takes: "a list", node, hint: node.text.map { "write \(name) = [\($0.quoted)]" })
            }
            var paths: [String] = []
            for element in elements {
                guard element.text != nil else { throw .wrongType(name, takes: "a list of texts", element) }
                paths.append(try TextRule.absolutePath.read(element, key: name))
            }
            return paths
        }
    }
}

extension ConfigKey where Value == [String]? {
    /// A program with its whole path, and its arguments.
    static func words(_ name: String, help: String) -> ConfigKey {
        ConfigKey(name, type: "list of texts", fallback: nil, defaultText: nil, help: help) { node throws(Complaint) in
            let elements: [ConfigNode]
            switch try node.readingList(of: name).value {
            case .array(let nodes): elements = nodes
            // A program without arguments, in an environment variable or a `--set` argument.
            case .unparsed: elements = [node]
            default:
                throw .wrongType(
                    name, takes: "a list", node, hint: node.text.map { "write \(name) = [\($0.quoted)]" })
            }
            var words: [String] = []
            for element in elements {
                guard let text = element.text else { throw .wrongType(name, takes: "a list of texts", element) }
                if text.utf8.contains(0) { throw .notAllowed(name, text, hint: "no NUL", at: element.position) }
                words.append(words.isEmpty ? try TextRule.absolutePath.read(element, key: name) : text)
            }
            guard !words.isEmpty else {
                throw Complaint(.valueNotAllowed, "\"\(name)\" cannot be empty", hint: "write a program's whole path")
            }
            return words
        }
    }
}

extension ConfigKey where Value == [LocatedText]? {
    /// One text or a list of them; in an environment variable or a `--set` argument also separated by commas.
    static func textOrList(_ name: String, type: String, help: String) -> ConfigKey {
        ConfigKey(name, type: type, fallback: nil, defaultText: nil, required: true, help: help) {
            node throws(Complaint) in
            switch try node.readingList(of: name).value {
            case .string(let text): return [LocatedText(text: text, position: node.position)]
            case .unparsed(let text):
                return text.split(separator: ",").map {
                    LocatedText(text: String($0.trimmingSpaces), position: node.position)
                }
            case .array(let nodes):
                guard !nodes.isEmpty else {
                    throw Complaint(.valueNotAllowed, "\"\(name)\" cannot be empty", hint: "write \(type)")
                }
                var texts: [LocatedText] = []
                for element in nodes {
                    guard let text = element.text else {
                        throw .wrongType(name, takes: "a list of texts", element)
                    }
                    texts.append(LocatedText(text: text, position: element.position))
                }
                return texts
            case .integer(let number):
                throw .wrongType(
                    name, takes: "a text", node, hint: "write an address and a port: \(name) = \"127.0.0.1:\(number)\"")
            default: throw .wrongType(name, takes: "a text or a list of texts", node)
            }
        }
    }
}

extension ConfigNode {
    /// Text from outside a file that is written as a list is in one, such as `["a", "b"]`, is that list; all else is itself.
    /// `[::1]:5000` is none.
    fileprivate func readingList(of key: String) throws(Complaint) -> ConfigNode {
        guard case .unparsed(let text) = value, text.first == "[",
            let next = text.dropFirst().first(where: { $0 != " " }), "\"']".contains(next), !text.hasPrefix("[]:")
        else { return self }
        let document = try? ConfigNode.parsing(toml: ConfigText(path: "", text: "list = \(text)"))
        // Behind the list could stand another line with another key.
        guard let entries = document?.table?.entries, entries.count == 1, case .array(let nodes) = entries[0].node.value
        else {
            throw .notAllowed(
                key, text, hint: "write a list as in a file: [\"…\", \"…\"], in a shell between single quotes")
        }
        return ConfigNode(.array(nodes.map { ConfigNode($0.value, at: position) }), at: position)
    }
}

/// A text and where it stands.
struct LocatedText: Sendable {
    var text: String
    var position: SourcePosition
}

extension Substring {
    fileprivate var trimmingSpaces: Substring {
        drop { $0 == " " }.reversedDrop { $0 == " " }
    }

    private func reversedDrop(_ isDropped: (Character) -> Bool) -> Substring {
        var rest = self
        while let last = rest.last, isDropped(last) {
            rest.removeLast()
        }
        return rest
    }
}
