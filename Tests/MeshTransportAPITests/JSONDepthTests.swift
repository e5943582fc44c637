// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshTransportAPI
import Testing

struct JSONDepthTests {
    static func nested(_ depth: Int, _ open: String = "[", _ close: String = "]") -> Data {
        Data((String(repeating: open, count: depth) + String(repeating: close, count: depth)).utf8)
    }

    @Test func `a document may be so deep and no deeper`() throws {
        #expect(throws: Never.self) { try JSONValue(parsing: Self.nested(JSONValue.maximumDepth)) }
        for document in [
            Self.nested(JSONValue.maximumDepth + 1), Self.nested(100_000), Data(repeating: 0x5B, count: 65_536),
            Self.nested(3_000, "{\"a\":[", "]}"),
        ] {
            let error = #expect(throws: MeshError.self) { try JSONValue(parsing: document) }
            #expect(error?.code == .invalidArgument)
            #expect(error?.message.contains("deep") == true)
        }
    }

    @Test(arguments: [
        #"["[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["]"#, #"["\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["]"#,
        #"["\\", "{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{"]"#,
    ])
    func `brackets inside of texts do not count`(_ text: String) throws {
        #expect(try JSONValue(parsing: Data(text.utf8)).arrayValue?.first?.stringValue != nil)
    }

    @Test(arguments: ["", "{", "nul", "\u{0}", "[]]"])
    func `what is no document is refused`(_ text: String) {
        let error = #expect(throws: MeshError.self) { try JSONValue(parsing: Data(text.utf8)) }
        #expect(error?.code == .invalidArgument)
    }

    @Test func `only UTF-8 is read`() {
        let wide = Data("[1]".utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] })
        #expect(throws: MeshError.self) { try JSONValue(parsing: wide) }
    }
}
