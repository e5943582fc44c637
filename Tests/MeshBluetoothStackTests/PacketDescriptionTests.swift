// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBluetoothStack
import MeshTestSupport
import MeshWire
import Testing

struct PacketDescriptionTests {
    /// What Bumble 0.0.236 reads in a packet of the transcripts (`Tests/Rigs/hci/describe`).
    struct Reading: Decodable {
        var `protocol`: String
        var hex: String
        var name: String
        var numbers: [String: Int64]

        static func all() throws -> [Reading] {
            let file = URL(filePath: #filePath).deletingLastPathComponent()
                .appending(path: "Transcripts/described.jsonl")
            let lines = try Data(contentsOf: file).split(separator: UInt8(ascii: "\n"))
            return try lines.map { try JSONDecoder().decode(Reading.self, from: Data($0)) }
        }
    }

    private static func describe(_ protocol: String, _ bytes: [UInt8]) -> PacketDescription {
        switch `protocol` {
        case "att": ATTPacketDescriber.describe(bytes)
        case "smp": SMPPacketDescriber.describe(bytes)
        default: HCIPacketDescriber.describe(h4: bytes)[0]
        }
    }

    /// Core Specification 5.4, Vol 4 Part E §7.7, §7.8: the units of what Bumble gives as it stands there.
    private static let units: [String: (suffix: String, factor: Double)] = [
        "le_scan_interval": ("_ms", 0.625), "le_scan_window": ("_ms", 0.625), "connection_interval": ("_ms", 1.25),
        "connection_interval_min": ("_ms", 1.25), "connection_interval_max": ("_ms", 1.25),
        "supervision_timeout": ("_ms", 10), "min_ce_length": ("_ms", 0.625), "max_ce_length": ("_ms", 0.625),
        "duration": ("_ms", 10), "period": ("_ms", 1_280), "suggested_max_tx_time": ("_us", 1),
    ]

    private static func number(_ name: String, in packet: PacketDescription) -> Double? {
        let name = name.hasPrefix("hc_") ? String(name.dropFirst(3)) : name
        guard let field = packet.fields.first(where: { $0.name == name }) else { return nil }
        return switch field.value {
        case .number(let number): Double(number)
        case .fraction(let number): number
        case .flag(let flag): flag ? 1 : 0
        case .text(let text) where text.hasPrefix("0x"): Int64(text.dropFirst(2), radix: 16).map { Double($0) }
        default: nil
        }
    }

    private static func plain(_ name: String) -> String {
        name.replacing("[v1]", with: "").lowercased().filter { $0.isLetter || $0.isNumber }
    }

    @Test func `packets have the names and numbers that Bumble reads in them`() throws {
        var compared = 0
        for reading in try Reading.all() {
            let packet = Self.describe(reading.protocol, hex(reading.hex))
            #expect(packet.error == nil, "\(reading.name)")
            // Renamed in version 5.3 of the specification.
            let name = reading.name == "Master Identification" ? "Central Identification" : reading.name
            #expect(Self.plain(packet.name) == Self.plain(name))
            #expect(!packet.fields.contains { $0.name == "additional" }, "\(reading.name)")
            for (field, number) in reading.numbers {
                let unit = Self.units[field]
                guard let found = Self.number(field + (unit?.suffix ?? ""), in: packet) else { continue }
                compared += 1
                #expect(found == Double(number) * (unit?.factor ?? 1), "\(field) of \(reading.name)")
            }
            if let status = reading.numbers["status"].flatMap({ UInt8(exactly: $0) }), reading.protocol == "hci" {
                #expect(packet["status"] == .text(HCIStatus(rawValue: status).specificationName))
            }
        }
        #expect(compared > 120)
    }

    @Test func `a packet that is cut anywhere says where`() throws {
        for reading in try Reading.all() {
            let bytes = hex(reading.hex)
            for count in 0..<bytes.count {
                let packet = Self.describe(reading.protocol, Array(bytes.prefix(count)))
                for error in packet.all.compactMap(\.error) {
                    #expect((0...count).contains(error.offset), "\(reading.name) cut at \(count): \(error)")
                }
                guard reading.protocol == "hci" else { continue }
                guard case .truncated(let missing)? = packet.error?.reason else {
                    Issue.record("\(reading.name) cut at \(count): \(packet)")
                    continue
                }
                #expect(packet.error?.offset == count || missing > 0)
            }
        }
    }

    @Test func `whatever the bytes are, there is a description`() {
        var generator = SplitMix(state: 7)
        for _ in 0..<20_000 {
            var bytes = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                UInt8.random(in: .min ... .max, using: &generator)
            }
            // Most of them begin like a packet.
            if !bytes.isEmpty, Bool.random(using: &generator) { bytes[0] = UInt8.random(in: 1...5, using: &generator) }
            for name in ["hci", "att", "smp"] {
                let packet = Self.describe(name, bytes)
                #expect(packet.all.allSatisfy { $0.error.map { (0...bytes.count).contains($0.offset) } ?? true })
                #expect(!packet.line().isEmpty)
            }
        }
    }

    // MARK: Layers

    @Test func `a write stands in a frame of L2CAP in a piece of data`() throws {
        let packet = HCIPacketDescriber.describe(h4: hex("02 0620 0800 0400 0400 12 1500 f0"))[0]
        #expect(packet.all.map(\.layer) == [.acl, .l2cap, .att])
        #expect(packet.all.map(\.name) == ["ACL Data", "Attribute Protocol", "Write Request"])
        #expect(packet["connection_handle"] == .text("0x0006"))
        let write = try #require(packet.all.last)
        #expect(write["attribute_handle"] == .text("0x0015") && write["attribute_value"] == .bytes([0xF0]))
        #expect(
            packet.line().hasSuffix("| att Write Request attribute_handle=0x0015 attribute_value=f0"))
    }

    @Test func `what is wrong inside is told inside, with its place in the whole`() {
        let packet = HCIPacketDescriber.describe(h4: hex("02 0620 0600 0200 0400 12 15"))[0]
        #expect(packet.error == nil)
        #expect(packet.all.last?.error == DecodeError(.truncated(missing: 1), offset: 10))
    }

    @Test func `an advertisement is taken apart`() throws {
        let packet = HCIPacketDescriber.describe(
            h4: hex("04 3e 15 02 01 00 01 5544332211c0 09 020106 0509526f6f66 c4"))[0]
        #expect(packet.name == "LE Advertising Report" && packet.error == nil)
        guard case .list(let reports)? = packet["reports"], case .group(let report)? = reports.first else {
            Issue.record("\(packet)")
            return
        }
        let fields = Dictionary(uniqueKeysWithValues: report.map { ($0.name, $0.value) })
        #expect(fields["event_type"] == .text("ADV_IND") && fields["address_type"] == .text("random"))
        #expect(fields["address"] == .text("C0:11:22:33:44:55") && fields["rssi_dbm"] == .number(-60))
        #expect(
            fields["data"]
                == .list([
                    .group([.init("flags", .text("0x06"))]), .group([.init("complete_local_name", .text("Roof"))]),
                ]))
    }

    @Test func `what has no layout is shown as it is`() {
        let packets = HCIPacketDescriber.describe(h4: hex("01 34fc 02 0102  04 77 01 05"))
        #expect(packets.map(\.name) == ["unknown", "unknown"])
        #expect(packets[0]["opcode"] == .text("0xfc34") && packets[0]["parameters"] == .bytes([1, 2]))
        #expect(packets[1]["event_code"] == .text("0x77") && packets[1]["parameters"] == .bytes([5]))
        #expect(ATTPacketDescriber.describe([0x77, 1])["parameters"] == .bytes([1]))
        #expect(SMPPacketDescriber.describe([0x77, 1])["data"] == .bytes([1]))
        #expect(HCIPacketDescriber.describe(h4: [9])[0].error == DecodeError(.unknownCode(9), offset: 0))
    }

    @Test func `keys are shown to who asks for them`() {
        let packet = SMPPacketDescriber.describe([0x06] + [UInt8](repeating: 0xAB, count: 16))
        #expect(packet.line() == "smp Encryption Information")
        #expect(packet.line(showsSecrets: true).hasSuffix("long_term_key=" + String(repeating: "ab", count: 16)))
    }

    // MARK: Recordings

    @Test(arguments: Transcript.names) func `frames that were sent in pieces are shown whole`(name: String) throws {
        let transcript = try Transcript(name)
        var describer = HCIRecordingDescriber()
        let packets = transcript.records.map { describer.describe($0) }
        #expect(packets.allSatisfy { $0.all.allSatisfy { $0.error == nil && $0.name != "unknown" } })
        for (layer, channel) in [
            (PacketDescription.Layer.att, L2CAPFrame.attributeChannel), (.smp, L2CAPFrame.securityChannel),
        ] {
            let frames = try transcript.frames(channel: channel)
            let described = packets.flatMap(\.all).filter { $0.layer == layer }
            #expect(
                described
                    == frames.map {
                        layer == .att
                            ? ATTPacketDescriber.describe($0.payload) : SMPPacketDescriber.describe($0.payload)
                    })
        }
    }

    @Test func `a recording that comes in pieces of any size is the same recording`() throws {
        let file = try Transcript.file("passkey_sc")
        let whole = try BTSnoopFile.decode(file.span.bytes)
        for size in [1, 7, 24, 1_000, file.count] {
            var reader = BTSnoopReader()
            var records: [BTSnoopFile.Record] = []
            for start in stride(from: 0, to: file.count, by: size) {
                try reader.bytesReceived(Array(file[start..<min(start + size, file.count)])) { records.append($0) }
            }
            #expect(records == whole && reader.unfinished == 0)
        }
    }

    @Test func `a record that is longer than any packet ends the reading`() throws {
        var reader = BTSnoopReader()
        try reader.bytesReceived(BTSnoopFile.header) { _ in }
        let record: [UInt8] = [0, 1, 0, 5, 0, 1, 0, 5] + [UInt8](repeating: 0, count: 16)
        #expect(throws: DecodeError(.invalidField("length"), offset: 16)) {
            try reader.bytesReceived(record) { _ in }
        }
    }
}

extension PacketDescription {
    fileprivate subscript(name: String) -> Value? { fields.first { $0.name == name }?.value }
}
