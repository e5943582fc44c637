// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshConfig
import MeshTestSupport
import MeshTransportAPI
import Testing

/// Nothing that a file, a variable or an argument may hold makes the reader trap, and whatever is refused is refused
/// with an error.
@Suite struct HostileInputTests {
    private func verify(_ bytes: [UInt8], path: String = "x.toml") {
        let reading = HostConfig.reading(
            ConfigInput(texts: [ConfigText(path: path, bytes: bytes)]), modules: SampleModule.lookUp)
        #expect((reading.config == nil) == reading.diagnostics.hasErrors)
        for diagnostic in reading.diagnostics {
            #expect(!diagnostic.message.isEmpty && diagnostic.position.source == path)
            _ = diagnostic.rendered()
        }
        if let config = reading.config {
            _ = config.shownTOML()
        }
    }

    @Test(arguments: ["sample.toml", "sample.json"])
    func `a file may be cut off at every byte`(name: String) throws {
        let bytes = try Fixtures.bytes("Valid/\(name)")
        for length in 0...bytes.count {
            verify(Array(bytes.prefix(length)), path: name)
        }
    }

    @Test(arguments: 0..<8)
    func `any bytes may be anywhere`(seed: UInt64) throws {
        var random = SplitMix(state: seed)
        let sample = try Fixtures.bytes("Valid/sample.toml")
        let alphabet = Array("[]{}=.,\"'#\\\n\t -+_:0123456789abtruefalsinf".utf8)
        for _ in 0..<150 {
            verify((0..<Int.random(in: 0...200, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) })
            verify(
                (0..<Int.random(in: 0...200, using: &random)).map { _ in
                    alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
                })
            var bent = sample
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let at = Int.random(in: 0..<bent.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: bent[at] = UInt8.random(in: 0...255, using: &random)
                case 1: bent[at] = alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
                case 2: bent.remove(at: at)
                default: bent.insert(contentsOf: bent[at..<min(at + 40, bent.count)], at: at)
                }
            }
            verify(bent)
        }
    }

    @Test(arguments: LongText.all)
    func `depth and length are bounded`(long: LongText) {
        verify(Array(long.text.utf8))
        verify(Array(long.text.utf8), path: "x.json")
    }

    @Test func `overrides may hold anything`() {
        var random = SplitMix(state: 1)
        let parts = [
            "device", "share", "module", "daemon", "roof", "name", "link", "", "__", "_", "é", "options", "file",
        ]
        for _ in 0..<500 {
            let path = (0..<Int.random(in: 0...6, using: &random)).map { _ in
                parts[Int.random(in: 0..<parts.count, using: &random)]
            }
            let reading = read(
                "[[device]]\nname = \"roof\"\nmodule = \"tcp\"\nhost = \"x\"\nlink = {}",
                environment: ["MESHHOST__" + path.joined(separator: "__").uppercased(): "x"],
                settings: [path.joined(separator: ".") + "=x"])
            #expect((reading.config == nil) == reading.diagnostics.hasErrors)
        }
        let deep = String(repeating: "a.", count: 100_000) + "a=1"
        #expect(read(settings: [deep]).config == nil)
    }
}

/// A text that is too long to be its own name.
struct LongText: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var text: String

    init(_ name: String, _ text: String) {
        self.testDescription = name
        self.text = text
    }

    static let all: [LongText] = [
        LongText("headers in headers", "[".times(500_000)),
        LongText("lists in lists", "a=" + "[".times(500_000)),
        LongText("tables in tables", "a=" + "{a=".times(300_000)),
        LongText("a header of many keys", "[" + "a.".times(500_000) + "a]"),
        LongText("a key of many keys", "a.".times(500_000) + "a=1"),
        LongText("a key of many keys before a syntax error", "a.".times(500_000) + "a=1\nb"),
        LongText("a key of many keys after quotes in quotes", "x=\"\"\"\\\"\"\"\"\n" + "a.".times(500_000) + "a=1"),
        LongText("a key of many keys after a comment", "# \"\"\"\n" + "a.".times(500_000) + "a=1"),
        LongText("a key of many keys after an unclosed text", "x=\"a\n" + "a.".times(500_000) + "a=1"),
        LongText("depth below depth", "[" + "a.".times(900) + "a]\n" + "b.".times(900) + "b=1\nx"),
        LongText("depth inside depth", "a={" + "a.".times(60) + "a=" + "{a.a.a=".times(100)),
        LongText("a text of dots", "x='" + ".".times(500_000) + "'"),
        LongText("a text of backslashes", "x=\"" + "\\".times(500_001)),
        LongText("a comment of dots", "# " + ".".times(500_000)),
        LongText("many devices", "[[device]]\n".times(5_000)),
        LongText("many keys", (0..<1_000).map { "k\($0)=1\n" }.joined()),
        LongText(
            "many options", "[[device]]\nname=\"a\"\nmodule=\"tcp\"\n" + (0..<1_000).map { "k\($0)=1\n" }.joined()),
        LongText("a long value", "name = \"\("x".times(500_000))\""),
        LongText("a long key", "x".times(500_000) + " = 1"),
        LongText("a NUL", "\u{0}"), LongText("a byte order mark", "\u{FEFF}"),
        LongText("two byte order marks", "\u{FEFF}\u{FEFF}"), LongText("a carriage return", "\r"),
        LongText("carriage returns", "\r\r\n"),
    ]
}

extension String {
    fileprivate func times(_ count: Int) -> String { String(repeating: self, count: count) }
}
