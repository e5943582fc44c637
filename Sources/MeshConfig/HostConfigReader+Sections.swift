// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI

extension HostConfigReader {
    /// What the user wrote for a key; nil when nothing, or nothing that can be used.
    mutating func written<Value>(_ key: ConfigKey<Value>, in section: Section) -> Value? {
        guard let entry = section.table[key.spec.name] else { return nil }
        do throws(Complaint) {
            return try key.parse(entry.node)
        } catch {
            report(error, at: entry.node.position, in: section)
            return nil
        }
    }

    /// The value of a key, or its default.
    mutating func value<Value>(_ key: ConfigKey<Value>, in section: Section) -> Value {
        written(key, in: section) ?? key.fallback
    }

    mutating func report(_ complaint: Complaint, at position: SourcePosition, in section: Section) {
        diagnostics.error(
            complaint.code, at: complaint.position ?? position, in: section.label.text, complaint.message,
            hint: complaint.hint)
    }

    /// A table inside a section; nil when it is missing or something else.
    mutating func subsection(_ key: String, of section: Section) -> Section? {
        guard let entry = section.table[key] else { return nil }
        let label = section.label.table(key)
        guard let table = entry.node.table else {
            var hint: String? = nil
            if case .array(let elements) = entry.node.value, elements.contains(where: { $0.table != nil }) {
                hint = "write \(label.text ?? key) with single brackets"
            }
            diagnostics.error(
                .wrongType, at: entry.node.position, in: section.label.text,
                "\"\(key)\" takes a table, not \(entry.node.typeName)", hint: hint)
            return nil
        }
        return Section(label: label, table: table, position: entry.node.position)
    }

    /// The elements of a list of tables; `header` is what stands above each, if it is not the key alone.
    mutating func elements(_ key: String, header: String? = nil, of section: Section) -> [ConfigNode] {
        guard let entry = section.table[key] else { return [] }
        let header = header ?? key
        switch entry.node.value {
        case .array(let elements):
            return elements
        case .table(let table):
            let areNamed = !table.entries.isEmpty && table.entries.allSatisfy { $0.node.table != nil }
            let hint = table.entries.first.map { areNamed ? " and below it name = \($0.key.quoted)" : "" } ?? ""
            diagnostics.error(
                .wrongType, at: entry.node.position, in: section.label.text,
                "\"\(key)\" takes a list of tables, not a table",
                hint: "write [[\(header)]] with double brackets\(hint)")
        default:
            diagnostics.error(
                .wrongType, at: entry.node.position, in: section.label.text,
                "\"\(key)\" takes a list of tables, not \(entry.node.typeName)", hint: "write [[\(header)]]")
        }
        return []
    }

    /// Reports every key that is not among `known`.
    mutating func judgeKeys(of section: inout Section, _ known: [KeySpec]) {
        let names = known.map(\.name)
        for entry in section.table.entries where !names.contains(entry.key) {
            let free = names.filter { section.table[$0] == nil }
            reportUnknown(entry, in: &section, proposing: free, known: names)
        }
    }

    /// Reports one unknown key with what was probably meant: the nearest of `free`, the keys that are not used yet,
    /// else the section where this very key belongs, else all that there is.
    mutating func reportUnknown(
        _ entry: ConfigEntry, in section: inout Section, proposing free: [String], known: [String],
        options: [OptionSpec] = []
    ) {
        let isTop = section.label.text == nil
        let what: String =
            switch entry.node.value {
            case .table where isTop: "section [\(entry.key.printedKey)]"
            case .array(let elements) where isTop && elements.contains(where: { $0.table != nil }):
                "section [[\(entry.key.printedKey)]]"
            default: "key \(entry.key.quoted)"
            }
        let hint: String?
        if let nearest = NearestKey.of(entry.key, among: free) ?? NearestKey.of(entry.key, among: known) {
            section.proposed.insert(nearest)
            hint = "did you mean \"\(nearest)\"?"
        } else if section.isDevice,
            let key = NearestKey.of(entry.key, among: ConfigSchema.Link.section.keys.map(\.name))
        {
            hint = "write it as link.\(key)"
        } else if entry.node.table == nil, let (key, home) = ConfigSchema.home(of: entry.key) {
            hint = key == entry.key ? "it is a key of \(home)" : "did you mean \(key) of \(home)?"
        } else if let option = options.first(where: { $0.help.plainWords.contains(entry.key[...]) }) {
            // Who writes a radio's port finds where it goes.
            hint = "see \"\(option.name)\": \(option.help.asHint)"
        } else {
            hint = known.isEmpty ? nil : "known are \(known.joined(separator: ", "))"
        }
        diagnostics.error(
            .unknownKey, at: entry.keyPosition, in: section.label.text, "unknown \(what)", hint: hint)
    }

    /// Reports every required key that is missing.
    mutating func reportMissing(_ specs: [KeySpec], in section: Section, hint: String? = nil) {
        guard isComplete else { return }
        for spec in specs where spec.isRequired && section.table[spec.name] == nil {
            if section.proposed.contains(spec.name) { continue }
            diagnostics.error(
                .missingKey, at: section.position, in: section.label.text, "\"\(spec.name)\" is missing",
                hint: hint ?? "\(spec.help.asHint) (\(spec.typeText))")
        }
    }

    /// For an element that only overrides speak of: they may mean one that exists.
    func overrideHint(_ section: Section, list: String, names: [String]) -> String? {
        guard section.position.isOverride, let name = section.table["name"]?.node.text else { return nil }
        let nearest = NearestName.of(name, among: names.filter { $0 != name })
        return "no [[\(list)]] is named \(name.quoted)" + (nearest.map { "; did you mean \"\($0)\"?" } ?? "")
    }
}

extension ConfigSchema {
    /// The section that has this key, or else the one with the nearest key.
    fileprivate static func home(of key: String) -> (key: String, header: String)? {
        let homes = sections.filter { !$0.header.isEmpty }
        if let home = homes.first(where: { $0.keys.contains { $0.name == key } }) {
            return (key, home.header)
        }
        for home in homes {
            if let nearest = NearestKey.of(key, among: home.keys.map(\.name)) {
                return (nearest, home.header)
            }
        }
        return nil
    }
}

/// ``NearestName``, and also what was cut short or spelt out, such as `warn` or `maximum`.
enum NearestKey {
    /// Nobody means a known key by a longer one, and the time that a search takes grows with the length.
    private static let maximumLength = 64

    static func of(_ name: String, among candidates: [String]) -> String? {
        guard name.utf8.count <= maximumLength else { return nil }
        if let nearest = NearestName.of(name, among: candidates) { return nearest }
        let matches = candidates.filter {
            min($0.count, name.count) >= 3 && ($0.hasPrefix(name) || name.hasPrefix($0))
        }
        return matches.count == 1 ? matches[0] : nil
    }
}

extension String {
    /// A sentence as the end of another one.
    var asHint: String {
        let body = last == "." ? dropLast() : self[...]
        // An abbreviation stays as it is.
        guard body.dropFirst().first?.isUppercase != true else { return String(body) }
        return body.prefix(1).lowercased() + body.dropFirst()
    }

    /// As a key in a header: bare where TOML allows that.
    fileprivate var printedKey: String { isBareKey ? self : quoted }

    /// Whether TOML takes it as a key without quotes.
    var isBareKey: Bool {
        !isEmpty
            && utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
                    || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
            }
    }
}

extension String {
    /// Its words, as a key is one.
    fileprivate var plainWords: [Substring] {
        split { !$0.isLetter && !$0.isNumber && $0 != "_" }
    }
}
