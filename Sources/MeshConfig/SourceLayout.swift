// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The order of a configuration's sources, and which of their lines may be shown.
struct SourceLayout: Sendable {
    struct Line: Hashable {
        var source: String
        var line: Int
    }

    private var order: [String: Int] = [:]
    private var lines: [String: [String]]
    /// Lines that hold secrets.
    private var hidden: Set<Line>

    init(texts: [ConfigText], overrides: [String], hidden: Set<Line>) {
        for source in texts.map(\.path) + overrides {
            order[source] = order[source] ?? order.count
        }
        lines = Dictionary(texts.map { ($0.path, $0.lines) }) { first, _ in first }
        self.hidden = hidden
    }

    /// The diagnostics ordered by source, line and column, with the source lines filled in.
    func arranged(_ found: [ConfigDiagnostic]) -> [ConfigDiagnostic] {
        let diagnostics = found.map { diagnostic in
            var diagnostic = diagnostic
            diagnostic.sourceLine = line(at: diagnostic.position)
            return diagnostic
        }
        // `sort` is not documented to be stable, and what was found first at one place should stay first.
        return diagnostics.enumerated().sorted { left, right in
            let (a, b) = (rank(left.element.position), rank(right.element.position))
            return a == b ? left.offset < right.offset : a < b
        }.map(\.element)
    }

    private func line(at position: SourcePosition) -> String? {
        guard let all = lines[position.source], all.indices.contains(position.line - 1),
            !hidden.contains(Line(source: position.source, line: position.line))
        else { return nil }
        return all[position.line - 1]
    }

    private func rank(_ position: SourcePosition) -> (Int, Int, Int) {
        (order[position.source] ?? order.count, position.line, position.column)
    }
}
