// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTestSupport
import MeshTransportAPI
import MeshWire
import Testing

/// Random bytes against every decoder: 20,000 inputs each, from a fixed seed. Half begin with a known code, so that
/// they get past it; and half of those are a whole frame with some bytes changed.
struct CompanionFuzzTests {
    static let rounds = 20_000

    static func inputs(
        seed: UInt64, codes: [UInt8], frames: [Data], _ body: (Data) throws -> Void
    ) throws {
        var random = SplitMix(state: seed)
        for _ in 0..<rounds {
            var bytes: Data
            let pick = random.next() % 4
            if pick == 0, !frames.isEmpty {
                bytes = frames[Int(random.next() % UInt64(frames.count))]
                for _ in 0...random.next() % 3 where !bytes.isEmpty {
                    bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
                }
                bytes = bytes.prefix(Int(random.next() % UInt64(bytes.count + 4)))
            } else {
                bytes = Data((0..<Int(random.next() % 180)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
                if pick == 1, !bytes.isEmpty { bytes[0] = codes[Int(random.next() % UInt64(codes.count))] }
            }
            try body(bytes)
        }
    }

    /// Decodes; if that gives a value which can be written, writing and reading it gives it again.
    static func check<Value: Equatable>(
        _ bytes: Data, _ decode: (Data) throws(DecodeError) -> Value, _ encode: (Value) throws(FieldError) -> Data
    ) -> Value? {
        do throws(DecodeError) {
            let value = try decode(bytes)
            guard let written = try? encode(value) else { return value }
            // Not `#expect`: it is slow where it holds, and it nearly always does.
            if try decode(written) != value { Issue.record("\(CompanionFrame.hex(bytes)): \(value)") }
            return value
        } catch {
            if !(0...bytes.count).contains(error.offset) { Issue.record("\(CompanionFrame.hex(bytes)): \(error)") }
            return nil
        }
    }

    @Test func `commands`() throws {
        let frames = try CompanionSamples.commands.map { try $0.encoded() }
        try Self.inputs(seed: 1, codes: CommandCode.allCases.map(\.rawValue), frames: frames) { bytes in
            let command = Self.check(
                bytes, { (data) throws(DecodeError) in try CompanionCommand(decoding: data) },
                { (value) throws(FieldError) in try value.encoded() })
            guard let command else { return }
            let json = command.json(showsSecrets: true)
            if json["error"] != nil { Issue.record("\(CompanionFrame.hex(bytes))") }
            // The reserved bytes of APP_START are not in JSON.
            if case .appStart = command { return }
            if try CompanionCommand(json: json) != command { Issue.record("\(CompanionFrame.hex(bytes))") }
        }
    }

    @Test func `replies`() throws {
        let frames = try CompanionSamples.replies.map { try $0.encoded() }
        try Self.inputs(seed: 2, codes: ReplyCode.allCases.map(\.rawValue), frames: frames) { bytes in
            let reply = Self.check(
                bytes, { (data) throws(DecodeError) in try CompanionReply(decoding: data) },
                { (value) throws(FieldError) in try value.encoded() })
            if reply?.json()["error"] != nil { Issue.record("\(CompanionFrame.hex(bytes))") }
        }
    }

    @Test func `pushes`() throws {
        let frames = try CompanionSamples.pushes.map { try $0.encoded() }
        try Self.inputs(seed: 3, codes: PushCode.allCases.map(\.rawValue), frames: frames) { bytes in
            let push = Self.check(
                bytes, { (data) throws(DecodeError) in try CompanionPush(decoding: data) },
                { (value) throws(FieldError) in try value.encoded() })
            if push?.json()["error"] != nil { Issue.record("\(CompanionFrame.hex(bytes))") }
        }
    }

    @Test func `packets and what is in them`() throws {
        let frames = try MeshPacketTests.vectors.map { try data($0) }
        try Self.inputs(seed: 4, codes: (0...255).map { UInt8($0) }, frames: frames) { bytes in
            let packet = Self.check(
                bytes, { (data) throws(DecodeError) in try MeshPacket(decoding: data) },
                { (value) throws(FieldError) in try value.encoded() })
            guard let packet else { return }
            _ = packet.json
            _ = Self.check(
                packet.payload, { (_) throws(DecodeError) in try packet.contents() },
                { (value) throws(FieldError) in try value.encoded() })
        }
    }

    @Test func `telemetry`() throws {
        let frames = [try data("016700ff026882"), try data("048805c395ed51fe0003e8")]
        try Self.inputs(seed: 5, codes: [1, 2], frames: frames) { bytes in
            _ = Self.check(
                bytes, { (data) throws(DecodeError) in try CayenneLPP.decode(data) },
                { (value) throws(FieldError) in try CayenneLPP.encode(value) })
            _ = CayenneLPP.json(bytes)
        }
    }

    @Test func `requests to nodes and their answers`() throws {
        let requests: [BinaryRequest] = [
            .status, .keepAlive(Data()), .telemetry(inverseMask: nil),
            .minMaxAverage(startSecondsAgo: 0, endSecondsAgo: 0), .accessList,
            .neighbours(NeighboursRequest(prefixLength: 255)), .neighbours(NeighboursRequest(prefixLength: 0)), .owner,
            .unknown(type: 99, bytes: Data()),
        ]
        let anonymous: [AnonymousRequest] = [
            .regions(replyPath: .zeroHops), .owner(replyPath: .zeroHops), .basic(replyPath: .zeroHops),
            .unknown(type: 99, bytes: Data()),
        ]
        try Self.inputs(seed: 6, codes: (1...7).map { UInt8($0) }, frames: [try data("80009265016700ff00ff00ff")]) {
            bytes in
            _ = Self.check(
                bytes, { (data) throws(DecodeError) in try BinaryRequest(decoding: data) },
                { (value) throws(FieldError) in try value.encoded() })
            _ = Self.check(
                bytes, { (data) throws(DecodeError) in try AnonymousRequest(decoding: data) },
                { (value) throws(FieldError) in try value.encoded() })
            for request in requests { _ = try? BinaryAnswer(decoding: bytes, to: request).json }
            for request in anonymous { _ = try? AnonymousAnswer(decoding: bytes, to: request).json }
        }
    }
}
