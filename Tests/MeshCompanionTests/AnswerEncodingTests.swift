// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import MeshWire
import Testing

/// Answers of nodes as bytes: composed from the firmware's layouts (examples/simple_repeater/MyMesh.cpp,
/// `handleRequest`; examples/simple_sensor/SensorMesh.cpp) and, where it has a reader for them, read so by meshcore_py
/// 2.3.17 (`meshcore/parsing.py`).
struct AnswerEncodingTests {
    static let neighbours = BinaryRequest.neighbours(NeighboursRequest(prefixLength: 4))
    static let ranges = BinaryRequest.minMaxAverage(startSecondsAgo: 3_600, endSecondsAgo: 0)

    static let binary: [(request: BinaryRequest, hex: String, answer: BinaryAnswer)] = [
        (
            .accessList, "01020304050603" + "0a0b0c0d0e0f01",
            .accessList([
                .init(node: KeyPrefix(hex: "010203040506")!, permissions: 3),
                .init(node: KeyPrefix(hex: "0a0b0c0d0e0f")!, permissions: 1),
            ])
        ),
        (.accessList, "", .accessList([])),
        (
            neighbours, "0500" + "0200" + "aabbccdd" + "3c000000" + "f8" + "11223344" + "00000000" + "14",
            .neighbours(
                total: 5,
                [
                    .init(
                        keyPrefix: Data([0xAA, 0xBB, 0xCC, 0xDD]), secondsAgo: 60,
                        signalToNoise: SignalToNoise(quarters: -8)),
                    .init(
                        keyPrefix: Data([0x11, 0x22, 0x33, 0x44]), secondsAgo: 0,
                        signalToNoise: SignalToNoise(quarters: 20)),
                ])
        ),
        (neighbours, "00000000", .neighbours(total: 0, [])),
        (
            ranges, "80009265" + "0167ff9c00ff0000" + "0268019002580200",
            .minMaxAverage(
                clock: 1_704_067_200,
                [
                    .init(channel: 1, kind: .temperature, minimum: [-100], maximum: [255], average: [0]),
                    .init(channel: 2, kind: .humidity, minimum: [400], maximum: [600], average: [512]),
                ])
        ),
        (
            .telemetry(inverseMask: 0), "016700ff",
            .telemetry([CayenneLPP.Reading(channel: 1, kind: .temperature, raw: [255])])
        ),
        (
            .owner, "76312e31372e31" + "0a" + "48696c6c" + "0a" + "416e6e0a614062",
            .owner(.init(firmware: "v1.17.1", nodeName: "Hill", owner: "Ann\na@b"))
        ),
        (
            // A carriage return and a line break are one character, but two bytes.
            .owner, "76310d0a480d0a410d0a42",
            .owner(.init(firmware: "v1\r", nodeName: "H\r", owner: "A\r\nB"))
        ),
        (.keepAlive(Data()), "010203", .unknown(Data([1, 2, 3]))),
    ]

    @Test(arguments: binary)
    func `answers to binary requests`(request: BinaryRequest, hex: String, answer: BinaryAnswer) throws {
        #expect(CompanionFrame.hex(try answer.encoded()) == hex)
        let bytes = try data(hex)
        #expect(try BinaryAnswer(decoding: bytes, to: request) == answer)
        for length in 0..<bytes.count {
            do {
                let shorter = try BinaryAnswer(decoding: Data(bytes.prefix(length)), to: request)
                #expect(try BinaryAnswer(decoding: try shorter.encoded(), to: request) == shorter)
            } catch let error as DecodeError {
                #expect((0...length).contains(error.offset))
            }
        }
    }

    @Test func `a status in all three lengths`() throws {
        var status = CompanionSamples.status
        for length in [56, 52, 48] {
            let bytes = try BinaryAnswer.status(status).encoded()
            #expect(bytes.count == length)
            #expect(try BinaryAnswer(decoding: bytes, to: .status) == .status(status))
            if length == 56 { status.receiveErrors = nil } else { status.receiveAirtimeSeconds = nil }
        }
    }

    static let anonymous: [(request: AnonymousRequest, hex: String, answer: AnonymousAnswer)] = [
        (.regions(replyPath: .zeroHops), "80009265" + "2a2c616c7073", .regions(clock: 1_704_067_200, "*,alps")),
        (
            .owner(replyPath: .zeroHops), "80009265" + "48696c6c0a416e6e",
            .owner(clock: 1_704_067_200, nodeName: "Hill", owner: "Ann")
        ),
        (
            .owner(replyPath: .zeroHops), "80009265" + "480d0a410d0a42",
            .owner(clock: 1_704_067_200, nodeName: "H\r", owner: "A\r\nB")
        ),
        (.basic(replyPath: .zeroHops), "80009265" + "83", .basic(clock: 1_704_067_200, features: 0x83)),
        (.unknown(type: 9, bytes: Data()), "0102", .unknown(Data([1, 2]))),
    ]

    @Test(arguments: anonymous)
    func `answers to anonymous requests`(request: AnonymousRequest, hex: String, answer: AnonymousAnswer) throws {
        #expect(CompanionFrame.hex(try answer.encoded()) == hex)
        let bytes = try data(hex)
        #expect(try AnonymousAnswer(decoding: bytes, to: request) == answer)
        for length in 0..<bytes.count {
            do {
                let shorter = try AnonymousAnswer(decoding: Data(bytes.prefix(length)), to: request)
                #expect(try AnonymousAnswer(decoding: try shorter.encoded(), to: request) == shorter)
            } catch let error as DecodeError {
                #expect((0...length).contains(error.offset))
            }
        }
    }

    @Test func `what would be read as something else is refused`() {
        func error(_ encode: () throws(FieldError) -> Data) -> FieldError? {
            do throws(FieldError) {
                _ = try encode()
                return nil
            } catch {
                return error
            }
        }
        func neighbour(_ count: Int) -> BinaryAnswer.Neighbour {
            .init(keyPrefix: Data(count: count), secondsAgo: 0, signalToNoise: SignalToNoise(quarters: 0))
        }
        func range(_ channel: UInt8, _ kind: CayenneLPP.Kind, _ numbers: [Int64]) -> BinaryAnswer {
            .minMaxAverage(
                clock: 0, [.init(channel: channel, kind: kind, minimum: numbers, maximum: numbers, average: numbers)])
        }
        let cases: [(BinaryAnswer, FieldError)] = [
            (.accessList([.init(node: .zero, permissions: 1)]), FieldError("node", .invalid)),
            (.neighbours(total: 2, [neighbour(4), neighbour(5)]), FieldError("node", .wrongLength(expected: 4))),
            (.neighbours(total: 1, [neighbour(33)]), FieldError("node", .tooLong(limit: 32))),
            (range(0, .temperature, [0]), FieldError("channel", .invalid)),
            (range(1, .polyline, []), FieldError("type", .invalid)),
            (range(1, .temperature, [0, 0]), FieldError("type", .invalid)),
            (range(1, .humidity, [65_536]), FieldError("value", .outOfRange(0...65_535))),
            (.owner(.init(firmware: "1\n2", nodeName: "", owner: "")), FieldError("firmware", .invalid)),
            (.owner(.init(firmware: "", nodeName: "a\nb", owner: "")), FieldError("node_name", .invalid)),
            (.owner(.init(firmware: "", nodeName: "", owner: "a\0b")), FieldError("owner", .holdsNUL)),
        ]
        for (answer, wanted) in cases { #expect(error { () throws(FieldError) in try answer.encoded() } == wanted) }
        let owner = AnonymousAnswer.owner(clock: 0, nodeName: "a\nb", owner: "")
        #expect(error { () throws(FieldError) in try owner.encoded() } == FieldError("node_name", .invalid))
        let regions = AnonymousAnswer.regions(clock: 0, "a\0b")
        #expect(error { () throws(FieldError) in try regions.encoded() } == FieldError("regions", .holdsNUL))
    }
}
