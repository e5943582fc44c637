// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire
import Testing

struct ByteReaderTests {
    @Test func `integers are read in both orders`() throws {
        let values = try ByteReader.decode(hex("01 0203 0302 fffffffe 7bd60d00 0102030405060708")) {
            (reader) throws(DecodeError) in
            (
                try reader.read(UInt8.self), try reader.read(UInt16.self, .big), try reader.read(UInt16.self),
                try reader.read(Int32.self, .big), try reader.read(UInt32.self), try reader.read(UInt64.self, .big)
            )
        }
        #expect(values == (1, 0x0203, 0x0203, -2, 906_875, 0x0102_0304_0506_0708))
    }

    @Test func `a short buffer gives an error with the offset, and the position stays`() throws {
        try ByteReader.decode([1, 2, 3]) { (reader) throws(DecodeError) in
            try reader.skip(1)
            #expect(throws: DecodeError(.truncated(missing: 2), offset: 1)) { try reader.read(UInt32.self) }
            #expect(throws: DecodeError(.truncated(missing: 7), offset: 1)) { try reader.readBytes(9) }
            #expect(reader.offset == 1)
            #expect(try reader.read(UInt16.self) == 0x0302)
            try reader.expectEnd()
        }
    }

    @Test func `bytes left over are an error`() {
        #expect(throws: DecodeError(.trailing(count: 2), offset: 1)) {
            try ByteReader.decode([1, 2, 3]) { (reader) throws(DecodeError) in
                try reader.skip(1)
                try reader.expectEnd()
            }
        }
    }

    @Test func `fixed text ends at its NUL and drops a cut character`() throws {
        let tree = Array("🌲".utf8)
        for (field, text) in [
            (Array("abc".utf8) + [0, 0x66, 0x67], "abc"), (Array("abcdef".utf8), "abcdef"),
            (Array("abc".utf8) + tree.prefix(3), "abc"), (Array("abcde".utf8) + tree.prefix(1), "abcde"),
            (Array("ab".utf8) + tree, "ab🌲"), ([0, 1, 2, 3, 4, 5], ""), ([0x61, 0xFF, 0x62, 0, 0, 0], "a\u{FFFD}b"),
            ([0x61, 0x62, 0x63, 0x64, 0x65, 0x80], "abcde\u{FFFD}"),
        ] {
            let decoded = try ByteReader.decode(field + [0x2A]) { (reader) throws(DecodeError) in
                (try reader.readFixedText(6), reader.readRest())
            }
            #expect(decoded == (text, [0x2A]), "\(field)")
        }
    }

    @Test func `text ends at a NUL or with the bytes`() throws {
        let parts = try ByteReader.decode(hex("4869 00 05")) { (reader) throws(DecodeError) in
            (reader.readText(), try reader.read(UInt8.self), reader.readText(), reader.remaining)
        }
        #expect(parts == ("Hi", 5, "", 0))
        #expect(try ByteReader.decode(hex("4869")) { (reader) throws(DecodeError) in reader.readText() } == "Hi")
    }

    @Test func `the writer writes what the reader reads`() throws {
        var writer = ByteWriter(capacity: 64)
        writer.write(UInt8(5))
        writer.write(Int8(-2))
        writer.write(UInt16(0x0102), .big)
        writer.write(Int32(-122_419_400))
        writer.write(contentsOf: [9, 9])
        writer.writeFixedText("grün🌲🌲🌲", length: 8)
        writer.writeText("grün", limit: 3)
        #expect(writer.bytes == hex("05 fe 0102 3807b4f8 0909 6772c3bc6e 000000 6772"))
    }
}
