// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension ConfigSchema {
    /// Every key with type, default and help, for people: what `meshhost config schema` prints.
    public static func reference() -> String {
        sections.map(\.reference).joined(separator: "\n")
    }
}

extension SectionSpec {
    fileprivate var reference: String {
        var lines = header.isEmpty ? [] : [header]
        lines.append("# \(help)")
        for key in keys {
            lines.append("")
            lines.append("  \(key.name)  (\(key.facts.joined(separator: "; ")))")
            lines.append("      \(key.help)")
        }
        return lines.map { $0 + "\n" }.joined()
    }
}

extension KeySpec {
    fileprivate var facts: [String] {
        var facts = [typeText]
        if isRequired {
            facts.append("required")
        }
        if let defaultText {
            facts.append("default \(defaultText)")
        }
        if needsRestart {
            facts.append("needs a restart")
        }
        return facts
    }
}
