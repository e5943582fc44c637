// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import MeshWire
import Testing

struct NodeRequestTests {
    // Requests as meshcore_py 2.3.17 builds them (`commands/binary.py`).
    @Test(arguments: [
        ("01", BinaryRequest.status), ("03", .telemetry(inverseMask: nil)), ("03fe", .telemetry(inverseMask: 0xFE)),
        ("04100e0000000000000000", .minMaxAverage(startSecondsAgo: 3_600, endSecondsAgo: 0)), ("050000", .accessList),
        (
            "0600ff0200000401020304",
            .neighbours(NeighboursRequest(count: 255, offset: 2, order: 0, prefixLength: 4, nonce: 0x0403_0201))
        ), ("07", .owner), ("0200000000", .keepAlive(Data(count: 4))), ("0901", .unknown(type: 9, bytes: Data([1]))),
    ])
    func `requests as other implementations build them`(hex: String, request: BinaryRequest) throws {
        #expect(CompanionFrame.hex(try request.encoded()) == hex)
        #expect(try BinaryRequest(decoding: try data(hex)) == request)
        #expect(throws: DecodeError.self) { try BinaryRequest(decoding: Data()) }
    }

    @Test(arguments: [
        ("0100", AnonymousRequest.regions(replyPath: .zeroHops)),
        ("02020a0b", .owner(replyPath: PacketPath(hashSize: 1, hashes: Data([0x0A, 0x0B]))!)),
        ("0300", .basic(replyPath: .zeroHops)), ("0901", .unknown(type: 9, bytes: Data([1]))),
    ])
    func `anonymous requests`(hex: String, request: AnonymousRequest) throws {
        #expect(CompanionFrame.hex(try request.encoded()) == hex)
        #expect(try AnonymousRequest(decoding: try data(hex)) == request)
    }

    @Test func `an access list`() throws {
        let answer = try BinaryAnswer(decoding: try data("01020304050603" + "0a0b0c0d0e0f01" + "0000"), to: .accessList)
        #expect(
            answer
                == .accessList([
                    .init(node: KeyPrefix(hex: "010203040506")!, permissions: 3),
                    .init(node: KeyPrefix(hex: "0a0b0c0d0e0f")!, permissions: 1),
                ]))
        #expect(answer.json["access_list"]?.arrayValue?.first?["node"] == "010203040506")
        #expect(try BinaryAnswer(decoding: Data(count: 16), to: .accessList) == .accessList([]))
    }

    @Test func `neighbours with as much of their keys as was asked for`() throws {
        let request = BinaryRequest.neighbours(NeighboursRequest(prefixLength: 4))
        let bytes = try data("0500" + "0200" + "aabbccdd" + "3c000000" + "f8" + "11223344" + "00000000" + "14")
        let answer = try BinaryAnswer(decoding: bytes, to: request)
        #expect(
            answer
                == .neighbours(
                    total: 5,
                    [
                        .init(
                            keyPrefix: Data([0xAA, 0xBB, 0xCC, 0xDD]), secondsAgo: 60,
                            signalToNoise: SignalToNoise(quarters: -8)),
                        .init(
                            keyPrefix: Data([0x11, 0x22, 0x33, 0x44]), secondsAgo: 0,
                            signalToNoise: SignalToNoise(quarters: 20)),
                    ]))
        #expect(answer.json["neighbours"]?.arrayValue?[0]["snr_db"] == .double(-2))
        for length in 0..<bytes.count {
            #expect(throws: DecodeError.self) { try BinaryAnswer(decoding: bytes.prefix(length), to: request) }
        }
    }

    @Test func `minimum, maximum and average in the sizes of the sensor firmware`() throws {
        // examples/simple_sensor/SensorMesh.cpp: humidity has two bytes of tenths there.
        let request = BinaryRequest.minMaxAverage(startSecondsAgo: 3_600, endSecondsAgo: 0)
        let answer = try BinaryAnswer(
            decoding: try data("80009265" + "0167ff9c00ff0000" + "0268019002580200" + "0000"), to: request)
        #expect(
            answer
                == .minMaxAverage(
                    clock: 1_704_067_200,
                    [
                        .init(channel: 1, kind: .temperature, minimum: [-100], maximum: [255], average: [0]),
                        .init(channel: 2, kind: .humidity, minimum: [400], maximum: [600], average: [512]),
                    ]))
        #expect(answer.json["ranges"]?.arrayValue?[1]["average"] == .double(51.2))
        #expect(throws: DecodeError(.truncated(missing: 1), offset: 10)) {
            try BinaryAnswer(decoding: try data("80009265" + "0167ff9c00ff00"), to: request)
        }
    }

    @Test func `status, telemetry and owner`() throws {
        let status = CompanionSamples.status
        let push = CompanionPush.statusResponse(StatusResponse(node: .zero, status: status))
        let bytes = try push.encoded().dropFirst(8)
        #expect(try BinaryAnswer(decoding: Data(bytes), to: .status) == .status(status))
        #expect(
            try BinaryAnswer(decoding: try data("016700ff0000"), to: .telemetry(inverseMask: nil))
                == .telemetry([CayenneLPP.Reading(channel: 1, kind: .temperature, raw: [255])]))
        let owner = Data("v1.17.1\nHill\nAnn\nann@example.org".utf8) + [0, 0]
        #expect(
            try BinaryAnswer(decoding: owner, to: .owner)
                == .owner(.init(firmware: "v1.17.1", nodeName: "Hill", owner: "Ann\nann@example.org")))
        #expect(
            try BinaryAnswer(decoding: Data(), to: .owner) == .owner(.init(firmware: "", nodeName: "", owner: "")))
    }

    @Test func `answers of a repeater that this node has not logged in to`() throws {
        let clock = try data("80009265")
        let regions = try AnonymousAnswer(
            decoding: clock + Data("*,alps\0\0".utf8), to: .regions(replyPath: .zeroHops))
        #expect(regions == .regions(clock: 1_704_067_200, "*,alps"))
        #expect(regions.json["regions"] == ["*", "alps"])
        #expect(
            try AnonymousAnswer(decoding: clock + Data("Hill\nAnn".utf8), to: .owner(replyPath: .zeroHops))
                == .owner(clock: 1_704_067_200, nodeName: "Hill", owner: "Ann"))
        #expect(
            try AnonymousAnswer(decoding: clock, to: .owner(replyPath: .zeroHops))
                == .owner(clock: 1_704_067_200, nodeName: "", owner: ""))
        #expect(
            try AnonymousAnswer(decoding: clock + [0x83], to: .basic(replyPath: .zeroHops))
                == .basic(clock: 1_704_067_200, features: 0x83))
        #expect(throws: DecodeError(.truncated(missing: 1), offset: 4)) {
            try AnonymousAnswer(decoding: clock, to: .basic(replyPath: .zeroHops))
        }
    }
}
