// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

extension ConfigDiagnostic {
    /// The diagnostic for people:
    ///
    ///     config.toml:9:1: error[C0102]: unknown key "adress" in [[device]] "roof"; did you mean "address"?
    ///       9 | adress = "F8:5B:1B:A6:7E:25"
    ///         | ^
    ///
    /// No line end after the last line.
    public func rendered(showingSource: Bool = true) -> String {
        let hints = hint?.split(separator: "\n", omittingEmptySubsequences: false) ?? []
        var lines = ["\(position): \(severity.rawValue)[\(code.rawValue)]: \(message)"]
        if let section {
            lines[0] += " in \(section)"
        }
        if let first = hints.first {
            lines[0] += "; \(first)"
        }
        if showingSource, let sourceLine, position.line > 0 {
            let number = "\(position.line)"
            let margin = String(repeating: " ", count: number.count)
            let (excerpt, padding) = Self.excerpt(of: sourceLine, column: position.column)
            lines.append("  \(number) | \(excerpt)")
            lines.append("  \(margin) | \(padding)^")
        }
        for line in hints.dropFirst() {
            lines.append("    \(line)")
        }
        return lines.map(Self.printable).joined(separator: "\n")
    }

    /// The diagnostic for programs; the members are always there, null where they do not apply.
    public var json: JSONValue {
        [
            "file": .string(position.source),
            "line": .int(Int64(position.line)),
            "column": .int(Int64(position.column)),
            "severity": .string(severity.rawValue),
            "code": .string(code.rawValue),
            "section": section.map { .string($0) } ?? .null,
            "message": .string(message),
            "hint": hint.map { .string($0) } ?? .null,
        ]
    }

    /// At most this much of a source line is shown.
    private static var excerptWidth: Int { 100 }

    /// The part of the line around the column, and what stands before the caret below it. Tabs stay tabs in both, so
    /// the caret is right for any tab width.
    private static func excerpt(of line: String, column: Int) -> (text: String, padding: String) {
        let scalars = Array(line.unicodeScalars)
        let target = min(max(column - 1, 0), scalars.count)
        let start = scalars.count <= excerptWidth ? 0 : max(0, target - excerptWidth / 2)
        let end = min(scalars.count, start + excerptWidth)
        var text = start > 0 ? "…" : ""
        var padding = start > 0 ? " " : ""
        text.unicodeScalars.append(contentsOf: scalars[start..<end])
        text += end < scalars.count ? "…" : ""
        padding.unicodeScalars.append(contentsOf: scalars[start..<target].map { $0 == "\t" ? "\t" : " " })
        return (text, padding)
    }

    /// A configuration may hold anything, and this goes to terminals: control characters are shown as U+FFFD.
    private static func printable(_ text: String) -> String {
        var result = ""
        result.unicodeScalars.append(
            contentsOf: text.unicodeScalars.map {
                $0.properties.generalCategory == .control && $0 != "\t" ? "\u{FFFD}" : $0
            })
        return result
    }
}

extension [ConfigDiagnostic] {
    /// Whether the configuration cannot be used.
    public var hasErrors: Bool { contains { $0.severity == .error } }

    /// All diagnostics for people, one below the other, each ended by a line end.
    public func rendered(showingSource: Bool = true) -> String {
        map { $0.rendered(showingSource: showingSource) + "\n" }.joined()
    }
}
