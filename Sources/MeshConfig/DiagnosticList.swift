// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Collects diagnostics while a configuration is read.
struct DiagnosticList {
    private(set) var found: [ConfigDiagnostic] = []
    private var linesWithSecrets: Set<SourceLayout.Line> = []

    mutating func error(
        _ code: ConfigDiagnostic.Code, at position: SourcePosition, in section: String?, _ message: String,
        hint: String? = nil
    ) {
        found.append(ConfigDiagnostic(.error, code, at: position, in: section, message, hint: hint))
    }

    mutating func warning(
        _ code: ConfigDiagnostic.Code, at position: SourcePosition, in section: String?, _ message: String,
        hint: String? = nil
    ) {
        found.append(ConfigDiagnostic(.warning, code, at: position, in: section, message, hint: hint))
    }

    mutating func append(_ diagnostic: ConfigDiagnostic) {
        found.append(diagnostic)
    }

    /// Keeps the line at this position out of everything that is shown.
    mutating func hideLine(at position: SourcePosition) {
        linesWithSecrets.insert(SourceLayout.Line(source: position.source, line: position.line))
    }

    /// How the sources are shown. `overrides` are those that are no files, in their order.
    func layout(texts: [ConfigText], overrides: [String]) -> SourceLayout {
        SourceLayout(texts: texts, overrides: overrides, hidden: linesWithSecrets)
    }
}
