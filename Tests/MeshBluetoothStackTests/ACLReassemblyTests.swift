// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshTestSupport
import Testing

struct ACLReassemblyTests {
    @Test func `frames come out whole however they are cut`() {
        var random = SplitMix(state: 3)
        for length in [0, 1, 3, 4, 23, 27, 251, 517, 65_535] {
            let frame = L2CAPFrame(channel: 4, payload: (0..<length).map { UInt8(truncatingIfNeeded: $0) })
            for _ in 0..<4 {
                var reassembler = ACLReassembler()
                var rest = frame.bytes[...]
                var boundary = ACLPacket.Boundary.firstFromController
                var result = ACLReassembler.Result.incomplete
                while !rest.isEmpty {
                    #expect(result == .incomplete)
                    let piece = rest.prefix(Int.random(in: 1...max(1, min(length + 4, 700)), using: &random))
                    rest = rest.dropFirst(piece.count)
                    result = reassembler.pieceReceived(boundary, Array(piece))
                    boundary = .continuation
                }
                #expect(result == .frame(frame))
            }
        }
    }

    @Test func `pieces that do not fit are dropped, and the next frame is not`() {
        var reassembler = ACLReassembler()
        let frame = L2CAPFrame(channel: 6, payload: [1, 2, 3])
        #expect(reassembler.pieceReceived(.continuation, [1]) == .dropped(.continuationWithoutStart))
        #expect(reassembler.pieceReceived(.firstFromController, [3, 0]) == .incomplete)
        // A new start, whole: the old one is gone, the new one there.
        #expect(reassembler.pieceReceived(.firstFromController, frame.bytes) == .dropped(.unfinishedFrame))
        #expect(reassembler.takeWholeFrame() == frame)
        #expect(reassembler.takeWholeFrame() == nil)
        #expect(reassembler.pieceReceived(.firstFromHost, frame.bytes + [9]) == .dropped(.tooLong))
        #expect(reassembler.pieceReceived(.firstFromHost, frame.bytes) == .frame(frame))
        #expect(reassembler.faults == 3)
    }

    @Test(arguments: Transcript.names) func `packets of the transcripts`(name: String) throws {
        for record in try Transcript(name).records where record.kind == .acl {
            let packet = try ACLPacket.decode(record.packet.span.bytes)
            #expect(packet.packet == record.packet)
            DecoderVerifier { try ACLPacket.decode($0) }.verify(record.packet)
        }
        for channel in [L2CAPFrame.attributeChannel, L2CAPFrame.securityChannel] {
            for frame in try Transcript(name).frames(channel: channel) {
                let bytes = L2CAPFrame(channel: channel, payload: frame.payload).bytes
                #expect(try L2CAPFrame.decode(bytes.span.bytes).payload == frame.payload)
                DecoderVerifier { try L2CAPFrame.decode($0) }.verify(bytes)
            }
        }
    }
}

struct InboundOrderTests {
    private let handle = ConnectionHandle(0x40)

    private func packet(_ number: UInt8, _ handle: UInt16 = 0x40) -> ACLPacket {
        ACLPacket(handle: ConnectionHandle(handle), boundary: .firstFromController, payload: [number])
    }

    @Test func `data that comes before its link waits for it`() {
        var machine = InboundOrderStateMachine()
        #expect(machine.packetReceived(packet(1), now: at(0)) == .hold)
        #expect(machine.packetReceived(packet(2, 0x41), now: at(0)) == .hold)
        #expect(machine.packetReceived(packet(3), now: at(0.05)) == .hold)
        #expect(machine.linkOpened(handle) == [packet(1), packet(3)])
        #expect(machine.packetReceived(packet(4), now: at(0.06)) == .deliver([packet(4)]))
        #expect(machine.nextDeadline == at(0.1))
        machine.deadlineReached(now: at(0.1))
        #expect(machine.dropped == 1)
        #expect(machine.nextDeadline == nil)
    }

    @Test func `data of links that never come has an end`() {
        var machine = InboundOrderStateMachine()
        for number: UInt8 in 0..<8 { #expect(machine.packetReceived(packet(number), now: at(0)) == .hold) }
        #expect(machine.packetReceived(packet(9), now: at(0)) == .drop)
        machine.linkClosed(handle)
        #expect(machine.linkOpened(handle) == [])
    }

    @Test func `encrypted data waits for the event that says so`() {
        var machine = InboundOrderStateMachine()
        _ = machine.linkOpened(handle)
        machine.encryptionBegan(handle)
        #expect(machine.packetReceived(packet(1), now: at(0)) == .hold)
        #expect(machine.packetReceived(packet(2), now: at(0)) == .hold)
        #expect(machine.nextDeadline == nil)
        #expect(machine.encryptionChanged(handle) == [packet(1), packet(2)])
        #expect(machine.packetReceived(packet(3), now: at(0)) == .deliver([packet(3)]))
        // More than is held: the event is not what it waits for.
        machine.encryptionBegan(handle)
        for number: UInt8 in 0..<8 { #expect(machine.packetReceived(packet(number), now: at(0)) == .hold) }
        #expect(machine.packetReceived(packet(8), now: at(0)) == .deliver((0...8).map { packet($0) }))
        #expect(machine.packetReceived(packet(9), now: at(0)) == .deliver([packet(9)]))
    }
}
