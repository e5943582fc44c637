// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Collects diagnostics while a configuration is read, and brings them into the order of the sources at the end.
struct DiagnosticList {
    private(set) var found: [ConfigDiagnostic] = []
    private var linesWithSecrets: Set<SourceLine> = []

    private struct SourceLine: Hashable {
        var source: String
        var line: Int
    }

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
        linesWithSecrets.insert(SourceLine(source: position.source, line: position.line))
    }

    /// Everything found, ordered by source, line and column, with the source lines filled in.
    ///
    /// `overrides` are the sources that are no files, in their order.
    func finished(texts: [ConfigText], overrides: [String]) -> [ConfigDiagnostic] {
        var order: [String: Int] = [:]
        for source in texts.map(\.path) + overrides {
            order[source] = order[source] ?? order.count
        }
        let lines = Dictionary(texts.map { ($0.path, $0.lines) }) { first, _ in first }
        var diagnostics = found
        for index in diagnostics.indices {
            let position = diagnostics[index].position
            let place = SourceLine(source: position.source, line: position.line)
            if let all = lines[position.source], all.indices.contains(position.line - 1),
                !linesWithSecrets.contains(place)
            {
                diagnostics[index].sourceLine = all[position.line - 1]
            }
        }
        func rank(_ diagnostic: ConfigDiagnostic) -> (Int, Int, Int) {
            let position = diagnostic.position
            return (order[position.source] ?? order.count, position.line, position.column)
        }
        // `sort` is not documented to be stable, and what was found first at one place should stay first.
        return diagnostics.enumerated().sorted { left, right in
            let (a, b) = (rank(left.element), rank(right.element))
            return a == b ? left.offset < right.offset : a < b
        }.map(\.element)
    }
}
