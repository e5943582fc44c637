// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshCrypto
import MeshTransportAPI
import MeshWire
import Testing

/// Packets of channels: A1 to A5 of companion-protocol §3.5 are those of meshcore-decoder's tests (michaelhart), the
/// others were made with openhop_core 1.1.3 (`PacketBuilder.create_group_datagram`, `create_group_data_packet`).
struct GroupMessageTests {
    /// Text of 2024 in #bot, flags and umlauts and all.
    static let bergen =
        "1500caee2505805745eeb938e16fd120f8ee9620f8b0772a2d05050184bc4ffd12de4f5e2f233563290df44411d3ec530cc676f20e"
    static let vectors: [(row: String, hex: String, channel: String, timestamp: UInt32, sender: String, text: String)] =
        [
            ("A1", MeshPacketTests.vectors[0], "Public", 1_758_484_279, "🌲 Tree", "☁️"),
            ("A2", MeshPacketTests.vectors[1], "#bot", 1_772_919_297, "Roy B V4", "P"),
            ("A3", MeshPacketTests.vectors[2], "#bot", 1_772_918_551, "Howl 👾", "prefix 0101"),
            ("openhop", bergen, "#bot", 1_704_067_200, "Ann", "Grüße aus den Bergen: 🏔️"),
        ]

    static func channels() throws -> [ChannelKey] { [try .public(), try .hashtag("#bot")] }

    @Test(arguments: vectors)
    func `a text is read, and written as it was`(
        row: String, hex: String, channel: String, timestamp: UInt32, sender: String, text: String
    ) throws {
        let packet = try MeshPacket(decoding: try data(hex))
        let opened = try #require(try packet.opened(with: try Self.channels()), "\(row)")
        #expect(opened.channel.name == channel)
        guard case .text(let message) = try opened.message() else {
            Issue.record("\(row): no text")
            return
        }
        #expect(message.timestamp == timestamp && message.type == .plain && message.attempt == 0)
        #expect(message.sender == sender && message.text == text)
        let sealed = try PacketContents.Group(sealing: try opened.message().encoded(), for: opened.channel)
        #expect(try PacketContents.group(sealed).encoded() == packet.payload)
        let json = try packet.json(channels: try Self.channels())
        #expect(
            json["decrypted"] == [
                "channel": .string(channel), "timestamp": .int(Int64(timestamp)), "text_type": 0, "attempt": 0,
                "sender": .string(sender), "text": .string(text),
            ])
    }

    @Test func `A5: a channel whose key nobody gave stays closed`() throws {
        let packet = try MeshPacket(decoding: try data(MeshPacketTests.vectors[3]))
        #expect(try packet.opened(with: try Self.channels()) == nil)
        #expect(try packet.json(channels: try Self.channels())["decrypted"] == .null)
        #expect(packet.json["decrypted"] == nil)
    }

    @Test func `the keys of Public and of hashtags`() throws {
        // companion-protocol §1.8; the key of #bot was computed with hashlib.
        let bot = try ChannelKey.hashtag("#bot")
        #expect(CompanionFrame.hex(bot.secret) == "eb50a1bcb3e4e5d7bf69a57c9dada211" && bot.hash == 0xCA)
        #expect(try ChannelKey.hashtag("bot") == bot)
        let everybody = try ChannelKey.public()
        #expect(CompanionFrame.hex(everybody.secret) == "8b3387e9c5cdea6ac9e5edbaa115cd72" && everybody.hash == 0x11)
    }

    @Test func `a datagram`() throws {
        let packet = try MeshPacket(decoding: try data("1900caed6aacb250a2c684552fa4dac086aae84342"))
        let opened = try #require(try packet.opened(with: try Self.channels()))
        #expect(try opened.message() == .data(type: 0x0102, Data("hello".utf8)))
        #expect(opened.json == ["channel": "#bot", "data_type": 0x0102, "data": "68656c6c6f"])
        let sealed = try PacketContents.Group(sealing: try opened.message().encoded(), for: opened.channel)
        #expect(try PacketContents.group(sealed).encoded() == packet.payload)
    }

    @Test func `a datagram that ends before its data does is an error at an offset`() throws {
        let packet = try MeshPacket(decoding: try data("1900ca549918b520cb1ff4992a3ef6fd1304359ffa"))
        let opened = try #require(try packet.opened(with: try Self.channels()))
        #expect(throws: DecodeError(.truncated(missing: 187), offset: 3)) { try opened.message() }
        #expect(opened.json["error"] == "187 bytes missing at offset 3")
        #expect(opened.json["plain_text"] == "0201c868656c6c6f0000000000000000")
    }

    @Test func `a key of 32 bytes`() throws {
        let packet = try MeshPacket(decoding: try data("15006366c2822e767c60243241c10350679f981f25"))
        let channel = try ChannelKey(name: "long", secret: Data(0..<32))
        #expect(channel.hash == 0x63)
        #expect(
            try packet.opened(with: [channel])?.message()
                == .text(GroupText(timestamp: 1_704_067_200, line: "Bob: hi")))
        // One whose second half is zeros is a key of 16 bytes.
        let padded = try ChannelKey(name: "#bot", secret: try ChannelKey.hashtag("bot").secret + Data(count: 16))
        #expect(try padded.hash == ChannelKey.hashtag("bot").hash)
        #expect(try MeshPacket(decoding: try data(Self.bergen)).opened(with: [padded]) != nil)
    }

    @Test(arguments: [0, 15, 17, 31, 33]) func `a key of another length is none`(count: Int) {
        #expect(throws: CryptoError.invalidLength(.key, count: count)) {
            try ChannelKey(name: "x", secret: Data(count: count))
        }
    }

    @Test func `any changed bit closes a packet, and a key with the same hash does not open it`() throws {
        let whole = try data(Self.bergen)
        let channels = try Self.channels()
        for bit in 16..<whole.count * 8 {
            var changed = whole
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(try MeshPacket(decoding: changed).opened(with: channels) == nil, "bit \(bit)")
        }
        for length in 3..<whole.count {
            #expect(try MeshPacket(decoding: Data(whole.prefix(length))).opened(with: channels) == nil, "\(length)")
        }
        var other = 0
        var same: ChannelKey
        repeat {
            same = try .hashtag("other \(other)")
            other += 1
        } while same.hash != 0xCA
        #expect(try MeshPacket(decoding: whole).opened(with: [same]) == nil)
    }

    @Test func `other packets are not opened`() throws {
        for hex in MeshPacketTests.vectors[4...] {
            #expect(try MeshPacket(decoding: try data(hex)).opened(with: try Self.channels()) == nil)
        }
        // GRP_TXT of a version that nobody knows yet.
        var packet = try MeshPacket(decoding: try data(Self.bergen))
        packet.version = 1
        #expect(try packet.opened(with: try Self.channels()) == nil)
    }

    @Test(
        arguments: [
            ("Bob: Hi", "Bob", "Hi"), ("Bob: a: b", "Bob", "a: b"), ("Bob:Hi", nil, "Bob:Hi"), ("", nil, ""),
            ("a:b: c", "a:b", "c"), (": x", "", "x"), ("Bob: ", "Bob", ""), ("Bob:", nil, "Bob:"),
            ("Bob: \u{301}x", "Bob", "\u{301}x"),
        ] as [(String, String?, String)])
    func `who a text says it is from`(line: String, sender: String?, text: String) {
        let message = GroupText(timestamp: 0, line: line)
        #expect(message.sender == sender && message.text == text)
    }

    @Test func `plain text of every length is a message or an error at an offset`() throws {
        let text = try GroupMessage.text(
            GroupText(timestamp: 9, type: TextType(rawValue: 0x3F), attempt: 3, line: "Bob: Hi")
        ).encoded()
        #expect(CompanionFrame.hex(text) == "09000000ff426f623a204869")
        for length in 0..<text.count {
            let cut = Data(text.prefix(length))
            if length < 5 {
                #expect(throws: DecodeError.self) { try GroupMessage(decoding: cut, as: .groupText) }
            } else {
                #expect(try GroupMessage(decoding: cut, as: .groupText).encoded() == cut)
            }
        }
        let datagram = try GroupMessage.data(type: 1, Data([1, 2, 3])).encoded()
        for length in 0..<datagram.count {
            #expect(throws: DecodeError.self) {
                try GroupMessage(decoding: Data(datagram.prefix(length)), as: .groupData)
            }
        }
        #expect(throws: DecodeError(.unknownCode(4), offset: 0)) { try GroupMessage(decoding: text, as: .advert) }
    }

    @Test func `what no plain text can hold is refused`() {
        let many = GroupMessage.text(GroupText(timestamp: 0, attempt: 4, line: ""))
        #expect(throws: FieldError("attempt", .outOfRange(0...3))) { try many.encoded() }
        let type = GroupMessage.text(GroupText(timestamp: 0, type: TextType(rawValue: 64), line: ""))
        #expect(throws: FieldError("text_type", .outOfRange(0...0x3F))) { try type.encoded() }
        let cut = GroupMessage.text(GroupText(timestamp: 0, line: "a\0b"))
        #expect(throws: FieldError("text", .holdsNUL)) { try cut.encoded() }
        #expect(throws: FieldError("data", .tooLong(limit: 255))) {
            try GroupMessage.data(type: 0, Data(count: 256)).encoded()
        }
        #expect(GroupMessage.data(type: 0, Data()).payloadType == .groupData)
    }
}
