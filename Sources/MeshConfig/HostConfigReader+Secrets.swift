// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI

extension HostConfigReader {
    /// A secret: a reference, or the text itself with a warning. Nil after an error.
    mutating func readSecret(_ entry: ConfigEntry, in section: Section) -> SecretReference? {
        switch entry.node.value {
        case .unparsed(let text):
            if entry.node.position.isArgument {
                diagnostics.warning(
                    .secretInline, at: entry.node.position, in: section.label.text,
                    "everyone on this host can see the secret \"\(entry.key)\" among the arguments",
                    hint: "set the environment variable \(Self.variable(section, entry.key)), or \(entry.key).file")
            }
            return .inline(SecretText(text))
        case .string(let text):
            if !text.isEmpty {
                diagnostics.warning(
                    .secretInline, at: entry.node.position, in: section.label.text,
                    "the secret \"\(entry.key)\" stands in the configuration itself",
                    hint: "write \(Self.examples(entry.key))")
            }
            return .inline(SecretText(text))
        case .table(let table):
            return readReference(table, of: entry, in: section)
        case .array, .integer, .real, .boolean, .dateOrTime, .null:
            diagnostics.error(
                .wrongType, at: entry.node.position, in: section.label.text,
                "the secret \"\(entry.key)\" takes a reference, not \(entry.node.typeName)",
                hint: "write \(Self.examples(entry.key))")
            return nil
        }
    }

    private mutating func readReference(
        _ table: ConfigTable, of entry: ConfigEntry, in section: Section
    ) -> SecretReference? {
        var inner = Section(label: section.label, table: table, position: entry.node.position)
        let unknown = table.entries.filter { !SecretReference.kinds.contains($0.key) }
        for member in unknown {
            reportUnknown(
                member, in: &inner, proposing: SecretReference.kinds, known: SecretReference.kinds)
        }
        guard unknown.isEmpty else { return nil }
        guard table.entries.count == 1, let member = table.entries.first else {
            diagnostics.error(
                .secretReferenceMalformed, at: entry.node.position, in: section.label.text,
                "the secret \"\(entry.key)\" needs exactly one of file, env and credential",
                hint: "write \(Self.examples(entry.key))")
            return nil
        }
        // What stands here may be the secret itself by mistake, so no message shows it.
        guard let text = member.node.text else {
            report(.wrongType(member.key, takes: "a text", member.node), at: member.node.position, in: section)
            return nil
        }
        let (rule, reference): (TextRule, SecretReference) =
            switch member.key {
            case "file": (.absolutePath, .file(text))
            case "env": (.variable, .environment(text))
            default: (.credential, .credential(text))
            }
        if let advice = rule.advice(text) {
            diagnostics.error(
                .secretReferenceMalformed, at: member.node.position, in: section.label.text,
                "\"\(member.key)\" of the secret \"\(entry.key)\" is malformed", hint: advice)
            return nil
        }
        return reference
    }

    private static func examples(_ key: String) -> String {
        "\(key) = { file = \"/path\" }, { credential = \"name\" } or { env = \"VARIABLE\" }"
    }

    private static func variable(_ section: Section, _ key: String) -> String {
        let path = (section.overridePath + [key]).joined(separator: "__")
        return "\(ConfigOverride.environmentPrefix)\(path)".uppercased()
            .split(separator: "-", omittingEmptySubsequences: false).joined(separator: "_")
    }
}

extension TextRule {
    /// The name of an environment variable.
    fileprivate static let variable = TextRule { text in
        let isName =
            text.isBareKey && !text.utf8.contains(UInt8(ascii: "-")) && !(0x30...0x39).contains(text.utf8.first ?? 0x30)
        return isName ? nil : "write the name of an environment variable, without $"
    }

    /// The name of a systemd credential, which is also a file name.
    fileprivate static let credential = TextRule { text in
        text.isEmpty || text == "." || text == ".." || text.utf8.contains { $0 == UInt8(ascii: "/") || $0 == 0 }
            ? "write the name of a credential, which is no path" : nil
    }
}
