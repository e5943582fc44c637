// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import MeshTransportAPI
import Testing

@Suite struct DiagnosticTests {
    @Test func `a diagnostic is rendered for people and for programs`() throws {
        let diagnostic = try #require(
            read("[[device]]\nname = \"roof\"\nmodule = \"bluez\"\nadress = \"F8:5B:1B:A6:7E:25\"").diagnostics.first)
        #expect(
            diagnostic.rendered() == """
                a.toml:4:1: error[C0102]: unknown key "adress" in [[device]] "roof"; did you mean "address"?
                  4 | adress = "F8:5B:1B:A6:7E:25"
                    | ^
                """)
        #expect(
            diagnostic.json == [
                "file": "a.toml", "line": 4, "column": 1, "severity": "error", "code": "C0102",
                "section": "[[device]] \"roof\"", "message": "unknown key \"adress\"",
                "hint": "did you mean \"address\"?",
            ])
    }

    @Test func `members that do not apply are null`() {
        let diagnostic = ConfigDiagnostic(.warning, .nothingFound, at: SourcePosition(source: "x"), "none")
        #expect(diagnostic.json["section"] == .null)
        #expect(diagnostic.json["hint"] == .null)
        #expect(diagnostic.rendered() == "x: warning[C0003]: none")
    }

    @Test func `control characters do not reach the terminal`() {
        let rendered = read("[daemon]\n\"\\u001b[31m\" = 1 # \u{7F}").diagnostics.rendered()
        #expect(!rendered.unicodeScalars.contains { $0 == "\u{1B}" || $0 == "\u{7F}" })
        let path = ConfigDiagnostic(.error, .syntax, at: SourcePosition(source: "a\u{1B}[2J.toml"), "x")
        #expect(path.rendered() == "a\u{FFFD}[2J.toml: error[C0002]: x")
    }

    @Test func `codes are stable and unique`() {
        let codes = ConfigDiagnostic.Code.allCases.map(\.rawValue)
        #expect(Set(codes).count == codes.count)
        #expect(codes.allSatisfy { $0.count == 5 && $0.hasPrefix("C") })
        #expect(ConfigDiagnostic.Code.unknownKey.rawValue == "C0102")
    }
}
