// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshWire
import Testing

struct BTSnoopTests {
    @Test(arguments: Transcript.names) func `Bumble's recordings come out as they went in`(name: String) throws {
        let file = try Transcript.file(name)
        let records = try BTSnoopFile.decode(file.span.bytes)
        #expect(BTSnoopFile.header + records.flatMap(\.bytes) == file)
        // Recorded in 2026, as its text says.
        #expect(records.allSatisfy { (1_767_225_600_000_000..<1_798_761_600_000_000).contains($0.time) })
        let first = try #require(records.first)
        #expect(first.kind == .command && !first.isFromController)
    }

    @Test func `packets that are missing are counted where RFC 1761 says`() throws {
        let record = BTSnoopFile.Record(
            kind: .event, isFromController: true, time: 5, packet: hex("0e 04 01 03 0c 00"), drops: 0x0102_0304)
        #expect(Array(record.bytes[12..<16]) == [1, 2, 3, 4])
        #expect(try BTSnoopFile.decode((BTSnoopFile.header + record.bytes).span.bytes) == [record])
    }

    @Test func `a file that was cut is read up to the cut`() throws {
        let record = BTSnoopFile.Record(kind: .event, isFromController: true, time: 5, packet: hex("0e 04 01 03 0c 00"))
        let file = BTSnoopFile.header + record.bytes + record.bytes
        for count in 0...file.count {
            let bytes = Array(file.prefix(count))
            if count < BTSnoopFile.header.count {
                #expect(throws: DecodeError.self) { try BTSnoopFile.decode(bytes.span.bytes) }
            } else {
                let records = try BTSnoopFile.decode(bytes.span.bytes)
                #expect(records.count == (count - BTSnoopFile.header.count) / record.bytes.count)
                #expect(records.allSatisfy { $0 == record })
            }
        }
        let other = Array("btsnoop\0".utf8) + [0, 0, 0, 2, 0, 0, 0x03, 0xEA]
        #expect(throws: DecodeError.self) { try BTSnoopFile.decode(other.span.bytes) }
        var wrong = file
        wrong[BTSnoopFile.header.count + 24] = 9
        #expect(throws: DecodeError.self) { try BTSnoopFile.decode(wrong.span.bytes) }
    }
}
