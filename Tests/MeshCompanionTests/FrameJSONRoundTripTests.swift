// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import Testing

/// What `decode` tells of a frame is what `encode` takes.
struct FrameJSONRoundTripTests {
    /// The text of a frame's JSON, as a program would pass it on, back to bytes.
    static func recoded(_ frame: Data, _ direction: FrameDirection) throws -> Data {
        var json = CompanionFrame.json(frame, direction, channels: [try .public()], showsSecrets: true).objectValue
        json?["direction"] = .string(direction.rawValue)
        let text = JSONValue.object(try #require(json)).serialized()
        return try CompanionFrame.encoded(json: try JSONValue(parsing: text))
    }

    @Test(arguments: CompanionSamples.commands)
    func `commands`(command: CompanionCommand) throws {
        let frame = try command.encoded()
        #expect(try Self.recoded(frame, .fromClient) == frame)
    }

    @Test(arguments: CompanionSamples.replies)
    func `replies`(reply: CompanionReply) throws {
        let frame = try reply.encoded()
        #expect(try Self.recoded(frame, .fromRadio) == frame)
        let json = try JSONValue(parsing: reply.json(showsSecrets: true).serialized())
        #expect(try CompanionReply(json: json) == reply)
    }

    @Test(arguments: CompanionSamples.pushes)
    func `pushes`(push: CompanionPush) throws {
        let frame = try push.encoded()
        #expect(try Self.recoded(frame, .fromRadio) == frame)
        let json = try JSONValue(parsing: push.json(showsSecrets: true).serialized())
        #expect(try CompanionPush(json: json) == push)
    }

    @Test func `the vectors of the reference`() throws {
        for (row, hex, _) in CommandVectorTests.vectors {
            #expect(CompanionFrame.hex(try Self.recoded(try data(hex), .fromClient)) == hex, "\(row)")
        }
        for (call, hex, _) in PythonClientVectorTests.commands {
            #expect(CompanionFrame.hex(try Self.recoded(try data(hex), .fromClient)) == hex, "\(call)")
        }
        let answers =
            AnswerVectorTests.replies.map { ($0.row, $0.hex) } + AnswerVectorTests.pushes.map { ($0.row, $0.hex) }
        for (row, hex) in answers {
            #expect(CompanionFrame.hex(try Self.recoded(try data(hex), .fromRadio)) == hex, "\(row)")
        }
    }

    @Test(arguments: MeshPacketTests.vectors + PacketHashTests.adverts)
    func `packets`(hex: String) throws {
        let packet = try MeshPacket(decoding: try data(hex))
        let json = try packet.json(channels: try GroupMessageTests.channels())
        #expect(try MeshPacket(json: try JSONValue(parsing: json.serialized())) == packet)
        #expect(try MeshPacket(json: packet.json) == packet)
    }

    @Test func `packets within a region, and JSON that is no packet`() throws {
        let packet = MeshPacket(
            route: .transportFlood, payloadType: .acknowledgement,
            transportCodes: .init(first: 0x1234, second: 7), path: CompanionSamples.path, payload: Data([1, 2, 3, 4]))
        #expect(try MeshPacket(json: packet.json) == packet)
        #expect(throws: FieldError("packet", .wrongType(expected: "an object"))) { try MeshPacket(json: 1) }
        #expect(throws: FieldError("header", .missing)) { try MeshPacket(json: [:]) }
        #expect(throws: FieldError("hash", .unknown)) {
            var json = packet.json.objectValue ?? [:]
            json["hash"] = 1
            return try MeshPacket(json: .object(json))
        }
    }

    @Test func `a frame carries its packet decoded, decrypted where the key is known`() throws {
        let frame = try data("8820ab" + MeshPacketTests.vectors[1])
        let plain = CompanionFrame.json(frame, .fromRadio)
        #expect(plain["decoded"]?["payload_type"] == "GRP_TXT")
        #expect(plain["decoded"]?["packet_hash"] == nil)
        let opened = CompanionFrame.json(frame, .fromRadio, channels: try GroupMessageTests.channels())
        #expect(opened["decoded"]?["decrypted"]?["sender"] == "Roy B V4")
        #expect(opened["decoded"]?["packet_hash"] == "d6fc7dd34dfd54ad")
        // EXPORT_CONTACT's answer and IMPORT_CONTACT are adverts.
        for (frame, direction) in [("0b", FrameDirection.fromRadio), ("12", .fromClient)] {
            let json = CompanionFrame.json(
                try data(frame + PacketHashTests.adverts[0]), direction, channels: [try .public()])
            #expect(json["decoded"]?["contents"]?["node_name"] == "Hügel")
            #expect(json["decoded"]?["signature_valid"] == true)
        }
        let raw = CompanionFrame.json(try data("4100" + MeshPacketTests.vectors[5]), .fromClient)
        #expect(raw["decoded"]?["payload_type"] == "REQ")
        #expect(
            CompanionFrame.json(try data("8820ab15"), .fromRadio)["decoded"]?["error"] == "1 bytes missing at offset 1")
    }

    @Test func `a request to a node is told in parts`() throws {
        let binary = CompanionFrame.json(
            try data("32" + CommandVectorTests.keyHex + "0600ff0200000401020304"), .fromClient)
        #expect(
            binary["decoded"] == [
                "request_type": 6, "count": 255, "offset": 2, "order": 0, "prefix_length": 4, "nonce": "01020304",
            ])
        let anonymous = CompanionFrame.json(try data("39" + CommandVectorTests.keyHex + "0300"), .fromClient)
        #expect(anonymous["decoded"] == ["request_type": 3, "reply_path_byte": 0, "reply_path": ""])
        let cut = CompanionFrame.json(try data("32" + CommandVectorTests.keyHex + "06"), .fromClient)
        #expect(cut["decoded"]?["error"] == "1 bytes missing at offset 1")
        for request in [
            BinaryRequest.status, .accessList, .telemetry(inverseMask: 3), .neighbours(NeighboursRequest()),
        ] {
            #expect(try BinaryRequest(json: request.json) == request)
        }
        let owner = AnonymousRequest.owner(replyPath: CompanionSamples.path)
        #expect(try AnonymousRequest(json: owner.json) == owner)
    }

    @Test func `JSON that is no frame says which field is to blame`() throws {
        func error(_ json: JSONValue) -> FieldError? {
            do throws(FieldError) {
                _ = try CompanionFrame.encoded(json: json)
                return nil
            } catch {
                return error
            }
        }
        #expect(error([]) == FieldError("frame", .wrongType(expected: "an object")))
        #expect(error([:]) == FieldError("name", .missing))
        #expect(error(["name": 1]) == FieldError("name", .wrongType(expected: "a string")))
        #expect(error(["name": "reply.nothing"]) == FieldError("name", .invalid))
        #expect(error(["name": "push.nothing"]) == FieldError("name", .invalid))
        #expect(error(["name": "reply.currentTime"]) == FieldError("time", .missing))
        #expect(error(["name": "reply.currentTime", "time": 1, "code": 8]) == FieldError("code", .invalid))
        #expect(error(["name": "push.contactsFull", "code": 300]) == FieldError("code", .outOfRange(0...255)))
        #expect(error(["name": "push.contactsFull", "full": true]) == FieldError("full", .unknown))
        #expect(error(["name": "push.contactsFull", "direction": "up"]) == FieldError("direction", .invalid))
        #expect(error(["name": "push.contactsFull", "direction": "from-client"]) == FieldError("direction", .invalid))
        #expect(error(["name": "GET_DEVICE_TIME", "direction": "from-radio"]) == FieldError("direction", .invalid))
        #expect(error(["name": "UNKNOWN", "bytes": ""]) == FieldError("code", .missing))
        // A known code has a layout, and another name.
        #expect(error(["name": "UNKNOWN", "code": 5, "bytes": ""]) == FieldError("code", .invalid))
        #expect(error(["name": "UNKNOWN", "code": 131, "bytes": ""]) == FieldError("code", .invalid))
        #expect(
            error(["name": "UNKNOWN", "code": 5, "bytes": "", "direction": "from-radio"])
                == FieldError("code", .invalid))
        #expect(
            try CompanionFrame.encoded(json: ["name": "UNKNOWN", "code": 126, "bytes": "01", "direction": "from-radio"])
                == Data([126, 1]))
        #expect(try CompanionFrame.encoded(json: ["name": "UNKNOWN", "code": 240, "bytes": "01"]) == Data([240, 1]))
        #expect(try CompanionFrame.encoded(json: ["name": "UNKNOWN", "code": 99, "bytes": "01"]) == Data([99, 1]))
        #expect(
            try CompanionFrame.encoded(
                json: ["name": "UNKNOWN", "code": 200, "bytes": "01", "direction": "from-client"]) == Data([200, 1]))
    }
}
