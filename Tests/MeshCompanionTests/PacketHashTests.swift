// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshCrypto
import MeshTransportAPI
import Testing

/// Hashes, codes and signatures. P8 and A1 have theirs in companion-protocol §3; all were computed with openhop_core 1.1.3
/// (`Packet.calculate_packet_hash`, `calc_transport_code`, `PacketBuilder.calc_text_ack_hash`, `create_advert`), but for
/// the acknowledgement of a signed text, which is hashlib's.
struct PacketHashTests {
    /// With the transport code of the region #alps.
    static let vectors: [(row: String, hex: String, hash: String, code: UInt16)] = [
        ("A1", MeshPacketTests.vectors[0], "b35e8ec0e974a30b", 0xCF86),
        ("A2", MeshPacketTests.vectors[1], "d6fc7dd34dfd54ad", 0x3698),
        ("A3", MeshPacketTests.vectors[2], "c70e590f3b6508b6", 0xD88A),
        ("A5", MeshPacketTests.vectors[3], "5234bdacd8c7c8e8", 0xF46A),
        ("A6", MeshPacketTests.vectors[4], "616af2bff47a09ad", 0x0F8C),
        ("A7", MeshPacketTests.vectors[5], "e5025d111eaf38ca", 0x445D),
        ("A8", MeshPacketTests.vectors[6], "ed5d121dc09272c4", 0xF7AA),
        ("P8", "1500aabbcc", "6826cc834e0067f2", 0x43CC),
        ("trace", "260204fc0700000008000000010102030405060708", "a4cc10c48cfb75bb", 0x4C3A),
    ]

    @Test(arguments: vectors)
    func `a packet's hash and its code in a region`(row: String, hex: String, hash: String, code: UInt16) throws {
        let packet = try MeshPacket(decoding: try data(hex))
        #expect(CompanionFrame.hex(try packet.hash()) == hash, "\(row)")
        #expect(try packet.transportCode(regionKey: try RegionKey.derived(from: "#alps")) == code, "\(row)")
        #expect(try packet.json(channels: [])["packet_hash"] == .string(hash))
    }

    @Test func `the way a packet takes does not change its hash, but that of a trace`() throws {
        var packet = try MeshPacket(decoding: try data(MeshPacketTests.vectors[0]))
        let hash = try packet.hash()
        packet.path = CompanionSamples.path
        packet.route = .direct
        #expect(try packet.hash() == hash)
        packet.payloadType = .trace
        let trace = try packet.hash()
        packet.path = .zeroHops
        #expect(try packet.hash() != trace)
    }

    @Test func `the codes 0 and FFFF are left out`() throws {
        let key = try RegionKey.derived(from: "alps")
        #expect(CompanionFrame.hex(key) == "424ac9eb6d5af6609b7a7a72cfa3abe5")
        for (payload, code) in [("f6720000", 1), ("5f2a0200", 0xFFFE)] as [(String, UInt16)] {
            #expect(try MeshPacket(decoding: try data("1500" + payload)).transportCode(regionKey: key) == code)
        }
        let packet = try MeshPacket(decoding: try data("1500aabbcc"))
        #expect(throws: CryptoError.invalidLength(.key, count: 15)) {
            try packet.transportCode(regionKey: key.prefix(15))
        }
    }

    /// Of the node with the seed 00 01 … 1f, in 2024: a repeater with a place, and a chat node.
    static let adverts = [
        "110003a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b880009265db9f6a0e166a1f9b1dc9f6c7bb3dd0e2a23716"
            + "193517011b263f6cef1d2a9d1c1be73c68d128c4c7e745e14bdc5bc78d36503d8f4d0fede591c944e4bff28b0c92dc47d9028eb0cbff48"
            + "c3bc67656c",
        "110003a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8800092658664a59be54f4c0fae03c3e1492796596a86d7"
            + "2afdceac373dfef4de42b250e830a987513625f392596866b3162d547a3e9a58cd90e5fcea00cb7439155a55088141",
    ]

    /// As much as a node can say of itself.
    static let longestAdvert =
        "110003a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b880009265526b50d0dcfaded8ddf528fb8991b8bdba163e"
        + "05ad685ba0d23b07f9b4d314215ce46a4ef2c979856d9851975ce600f78f9c8fb59a99481e29f4cd69deac66079260e31600a01ce9ff"
        + String(repeating: "78", count: 23)

    @Test(arguments: adverts)
    func `an advert is signed, and any changed bit tells`(hex: String) throws {
        let packet = try MeshPacket(decoding: try data(hex))
        #expect(try packet.isAdvertSignatureValid() == true)
        #expect(try packet.json(channels: [])["signature_valid"] == true)
        for bit in stride(from: 0, to: packet.payload.count * 8, by: 7) {
            var changed = packet
            changed.payload[bit / 8] ^= 1 << (bit % 8)
            #expect(try changed.isAdvertSignatureValid() == false, "bit \(bit)")
        }
        for length in 1..<packet.payload.count {
            var cut = packet
            cut.payload = packet.payload.prefix(length)
            #expect(try cut.isAdvertSignatureValid() == (length < 100 ? nil : false), "\(length) bytes")
        }
        guard case .advert(let advert) = try packet.contents() else {
            Issue.record("no advert")
            return
        }
        #expect(advert.name == (advert.type == .repeater ? "Hügel" : "A"))
    }

    @Test func `bytes after the 32 that a node says of itself are not signed, as in the firmware`() throws {
        var packet = try MeshPacket(decoding: try data(Self.longestAdvert))
        #expect(packet.payload.count == 100 + 32)
        #expect(try packet.isAdvertSignatureValid() == true)
        packet.payload += Data(count: 52)
        #expect(try packet.isAdvertSignatureValid() == true)
        packet.payload[131] ^= 1
        #expect(try packet.isAdvertSignatureValid() == false)
        let signed = try MeshPacket(decoding: try data(MeshPacketTests.vectors[0]))
        #expect(try signed.isAdvertSignatureValid() == nil)
        #expect(try signed.json(channels: [])["signature_valid"] == nil)
    }

    static let author = PublicKey(hex: "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8")!

    @Test(
        arguments: [
            (0, "Hello", "f0319c34"), (3, "Grüße 🏔️", "3295e598"), (1, "", "5f98945d"),
            // The low two bits count; what follows a NUL is another firmware's business.
            (4, "Hello", "f0319c34"), (0, "Hello\0!", "f0319c34"),
        ] as [(UInt8, String, String)])
    func `an acknowledgement`(attempt: UInt8, text: String, hash: String) throws {
        let tag = try AcknowledgementHash.plain(
            timestamp: 1_704_067_200, attempt: attempt, text: text, sender: Self.author)
        let push = CompanionPush.sendConfirmed(SendConfirmation(acknowledgement: tag))
        #expect(CompanionFrame.hex(try push.encoded()) == "82" + hash)
    }

    @Test func `an acknowledgement of a text that a room passes on`() throws {
        let tag = try AcknowledgementHash.signed(
            timestamp: 1_704_067_200, attempt: 1, author: try data("deadbeef"), text: "Hi", reader: Self.author)
        #expect(tag == 0xF958_2FF2)
        #expect(throws: CryptoError.invalidLength(.key, count: 3)) {
            try AcknowledgementHash.signed(
                timestamp: 0, attempt: 0, author: Data(count: 3), text: "", reader: Self.author)
        }
    }
}
