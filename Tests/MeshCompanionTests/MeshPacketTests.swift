// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import MeshWire
import Testing

/// Golden bytes of companion-protocol §3.5: meshcore-decoder's tests (michaelhart). What A1 to A5 say is in
/// ``GroupMessageTests``, the packets' hashes are in ``PacketHashTests``.
struct MeshPacketTests {
    static let vectors = [
        "150011C3C1354D619BAE9590E4D177DB7EEAF982F5BDCF78005D75157D9535FA90178F785D",
        "15833fa002860ccae0eed9ca78b9ab0775d477c1f6490a398bf4edc75240",
        "1540cab3b15626481a5ba64247ab25766e410b026e0678a32da9f0c3946fae5b714cab170f",
        "150013752F15A1BF3C018EB1FC4F26B5FAEB417BB0F1AE8FF07655484EBAA05CB9A927D689",
        "0600DE1FDFCAD56E6C38B756FEE81C24199C6043AC5B", "0200D1DEB01B2F8B72DD363AA4EF07E0BDA2266A8979",
        "09046F17C47ED00A13E16AB5B94B1CC2D1A5059C6E5A6253C60D",
    ]

    static func group(_ hex: String) throws -> (MeshPacket, PacketContents.Group) {
        let packet = try MeshPacket(decoding: try data(hex))
        guard case .group(let group) = try packet.contents() else { throw FieldError("contents", .invalid) }
        return (packet, group)
    }

    static func addressed(_ hex: String) throws -> (MeshPacket, PacketContents.Addressed) {
        let packet = try MeshPacket(decoding: try data(hex))
        guard case .addressed(let fields) = try packet.contents() else { throw FieldError("contents", .invalid) }
        return (packet, fields)
    }

    @Test func `A1: a channel text that nobody has passed on yet`() throws {
        let (packet, group) = try Self.group(Self.vectors[0])
        #expect(packet.route == .flood && packet.payloadType == .groupText && packet.version == 0)
        #expect(packet.path == .zeroHops && packet.transportCodes == nil)
        #expect(group.channelHash == 0x11 && CompanionFrame.hex(group.mac) == "c3c1")
        #expect(group.cipherText.count == 32)
    }

    @Test func `A2: three hops of three bytes`() throws {
        let (packet, group) = try Self.group(Self.vectors[1])
        #expect(packet.path.description == "3fa002,860cca,e0eed9")
        #expect(group.channelHash == 0xCA && group.cipherText.count == 16)
    }

    @Test func `A3: no hops yet, of two bytes each`() throws {
        let (packet, group) = try Self.group(Self.vectors[2])
        #expect(packet.path.byte.hashSize == 2 && packet.path.hops.isEmpty)
        #expect(group.channelHash == 0xCA)
    }

    @Test func `A4: the reserved hash size`() throws {
        #expect(throws: DecodeError(.invalidField("path_byte"), offset: 1)) {
            try MeshPacket(decoding: try data("15C1FF00"))
        }
    }

    @Test func `A5: the channel's hash`() throws {
        let (packet, group) = try Self.group(Self.vectors[3])
        #expect(group.channelHash == 0x13 && packet.path.hops.isEmpty)
    }

    @Test func `A6: a response`() throws {
        let (packet, fields) = try Self.addressed(Self.vectors[4])
        #expect(packet.route == .direct && packet.payloadType == .response)
        #expect(fields.destination == 0xDE && fields.source == 0x1F && CompanionFrame.hex(fields.mac) == "dfca")
        #expect(fields.cipherText.count == 16)
    }

    @Test func `A7: a request`() throws {
        let (packet, fields) = try Self.addressed(Self.vectors[5])
        #expect(packet.payloadType == .request)
        #expect(fields.destination == 0xD1 && fields.source == 0xDE && CompanionFrame.hex(fields.mac) == "b01b")
    }

    @Test func `A8: a text with four hops`() throws {
        let (packet, fields) = try Self.addressed(Self.vectors[6])
        #expect(packet.payloadType == .text && packet.path.description == "6f,17,c4,7e")
        #expect(fields.destination == 0xD0 && fields.source == 0x0A && CompanionFrame.hex(fields.mac) == "13e1")
    }

    @Test(arguments: vectors)
    func `a packet survives its own bytes, and a cut one is an error or a shorter one`(hex: String) throws {
        let bytes = try data(hex)
        #expect(try MeshPacket(decoding: bytes).encoded() == bytes)
        for length in 0..<bytes.count {
            let cut = Data(bytes.prefix(length))
            do {
                let packet = try MeshPacket(decoding: cut)
                #expect(try packet.encoded() == cut)
                _ = packet.json
            } catch let error as DecodeError {
                #expect((0...length).contains(error.offset))
            }
        }
    }

    @Test func `region codes follow the header`() throws {
        let packet = MeshPacket(
            route: .transportFlood, payloadType: .acknowledgement,
            transportCodes: .init(first: 0x1234, second: 0), path: CompanionSamples.path, payload: Data([1, 2, 3, 4]))
        let bytes = try packet.encoded()
        #expect(CompanionFrame.hex(bytes) == "0c34120000" + "4201020304" + "01020304")
        #expect(try MeshPacket(decoding: bytes) == packet)
        #expect(try packet.contents() == .acknowledgement(tag: 0x0403_0201, extra: Data()))
        #expect(packet.json["transport_code_1"] == 0x1234)
        let without = MeshPacket(route: .transportFlood, payloadType: .acknowledgement, payload: Data([1]))
        #expect(throws: FieldError("transport_code_1", .invalid)) { try without.encoded() }
    }

    @Test func `limits of the firmware`() throws {
        #expect(throws: DecodeError(.truncated(missing: 1), offset: 2)) { try MeshPacket(decoding: try data("1500")) }
        let long = try data("1500") + Data(count: 185)
        #expect(throws: DecodeError(.invalidField("payload"), offset: 2)) { try MeshPacket(decoding: long) }
        #expect(throws: DecodeError(.invalidField("path_byte"), offset: 1)) {
            try MeshPacket(decoding: try data("15FF00"))
        }
        // 33 hops of two bytes are 66.
        #expect(throws: DecodeError(.invalidField("path_byte"), offset: 1)) {
            try MeshPacket(decoding: try data("1561") + Data(count: 100))
        }
    }

    @Test func `a later version's payload is kept as it is`() throws {
        let packet = try MeshPacket(decoding: try data("550001"))
        #expect(packet.version == 1)
        #expect(try packet.contents() == .opaque(Data([1])))
    }

    static let contents: [(PayloadType, PacketContents)] = [
        (.path, .addressed(.init(destination: 1, source: 2, mac: Data([3, 4]), cipherText: Data([5])))),
        (.acknowledgement, .acknowledgement(tag: 9, extra: Data([1, 2]))),
        (.advert, .advert(advert())),
        (.advert, .advert(advert(full: true))),
        (.groupData, .group(.init(channelHash: 1, mac: Data([3, 4]), cipherText: Data()))),
        (
            .anonymousRequest,
            .anonymousRequest(
                .init(
                    destination: 1, sender: CompanionSamples.key, mac: Data([3, 4]), cipherText: Data([5])))
        ),
        (.trace, .trace(.init(tag: 1, authCode: 2, flags: 1, hashes: Data([1, 2, 3, 4])))),
        (.multipart, .multipart(remaining: 3, type: .acknowledgement, payload: Data([1, 2]))),
        (.control, .opaque(Data([0x92, 1]))),
        (.rawCustom, .opaque(Data([1]))),
        (PayloadType(rawValue: 13), .opaque(Data([1]))),
    ]

    static func advert(full: Bool = false) -> Advert {
        Advert(
            publicKey: CompanionSamples.key, timestamp: 5, signature: Data(0..<64), type: .sensor,
            location: full ? CompanionSamples.place : nil, firstFeature: full ? 1 : nil, secondFeature: full ? 2 : nil,
            name: full ? "Ann" : nil)
    }

    @Test(arguments: contents)
    func `payloads survive their own bytes`(type: PayloadType, contents: PacketContents) throws {
        let packet = MeshPacket(route: .direct, payloadType: type, payload: try contents.encoded())
        #expect(try packet.contents() == contents)
        #expect(try MeshPacket(decoding: try packet.encoded()) == packet)
        #expect(packet.json["contents"]?["error"] == nil)
        for length in 0..<packet.payload.count {
            var cut = packet
            cut.payload = packet.payload.prefix(length)
            do {
                #expect(try cut.contents().encoded() == cut.payload || type == .advert)
            } catch let error as DecodeError {
                #expect((0...length).contains(error.offset))
            }
        }
    }
}
