// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshTestSupport
import Testing

struct ACLTransmitTests {
    private let a = ConnectionHandle(0x40)
    private let b = ConnectionHandle(0x41)

    private func machine(_ count: Int, length: Int = 27) -> ACLTransmitStateMachine {
        var machine = ACLTransmitStateMachine(.init(buffers: .init(packetLength: length, count: count)))
        machine.linkOpened(a)
        machine.linkOpened(b)
        return machine
    }

    private func drain(_ machine: inout ACLTransmitStateMachine) throws -> [ACLPacket] {
        var packets: [ACLPacket] = []
        while let packet = machine.nextPacket() { packets.append(try ACLPacket.decode(packet.span.bytes)) }
        return packets
    }

    @Test func `a frame goes in pieces as in the transcript with buffers of 27 bytes`() throws {
        let transcript = try Transcript("acl_27x2_fragments")
        let sent = try transcript.records.filter { $0.kind == .acl && !$0.isFromController }
            .map { try ACLPacket.decode($0.packet.span.bytes) }
        let handle = try #require(sent.first).handle
        let frames = try [L2CAPFrame.attributeChannel, L2CAPFrame.securityChannel].flatMap { channel in
            try transcript.frames(channel: channel).filter { !$0.isFromController }
                .map { L2CAPFrame(channel: channel, payload: $0.payload) }
        }
        // Every frame of the recording is cut as Bumble cut it.
        var pieces: [[UInt8]] = []
        for frame in frames {
            var machine = ACLTransmitStateMachine(.init(buffers: .init(packetLength: 27, count: 64)))
            machine.linkOpened(handle)
            #expect(machine.frameRequested(frame.bytes, on: handle) == .accepted)
            while let packet = machine.nextPacket() { pieces.append(packet) }
        }
        #expect(Set(pieces) == Set(sent.map(\.packet)))
        #expect(pieces.count == sent.count)
    }

    @Test func `no more is sent than the controller has room for`() throws {
        var machine = machine(2)
        #expect(machine.frameRequested([UInt8](repeating: 1, count: 100), on: a) == .accepted)
        let first = try drain(&machine)
        #expect(first.map(\.payload.count) == [27, 27])
        #expect(first.map(\.boundary) == [.firstFromHost, .continuation])
        #expect(machine.credits == 0)
        #expect(machine.waitingByteCount(a) == 46)
        machine.packetsCompleted(.init(handle: a, count: 2))
        let rest = try drain(&machine)
        #expect(rest.map(\.payload.count) == [27, 19])
        #expect(rest.allSatisfy { $0.boundary == .continuation })
    }

    @Test func `one buffer is enough (R27)`() throws {
        var machine = machine(1)
        for handle in [a, b] {
            #expect(machine.frameRequested([UInt8](repeating: 7, count: 60), on: handle) == .accepted)
        }
        var order: [ConnectionHandle] = []
        while let packet = try drain(&machine).first {
            order.append(packet.handle)
            machine.packetsCompleted(.init(handle: packet.handle, count: 1))
        }
        #expect(order == [a, b, a, b, a, b])
        #expect(machine.credits == 1)
    }

    @Test func `a thousand links that die in the middle of a burst cost no buffer (R27)`() throws {
        var machine = ACLTransmitStateMachine(.init(buffers: .init(packetLength: 27, count: 5)))
        var random = SplitMix(state: 27)
        for round in 0..<1000 {
            let handle = ConnectionHandle(UInt16(round % 3))
            machine.linkOpened(handle)
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                _ = machine.frameRequested(
                    [UInt8](repeating: 1, count: Int.random(in: 1...300, using: &random)), on: handle)
            }
            let sent = try drain(&machine).count
            machine.packetsCompleted(
                .init(handle: handle, count: UInt16(Int.random(in: 0...sent, using: &random))))
            _ = try drain(&machine)
            _ = machine.linkClosed(handle)
            #expect(machine.credits == 5, "round \(round)")
            // What is reported of it afterwards counts for nothing.
            machine.packetsCompleted(.init(handle: handle, count: 3))
            #expect(machine.credits == 5)
        }
    }

    @Test func `a handle that is given again begins anew (R28)`() throws {
        var machine = machine(1)
        _ = machine.frameRequested([UInt8](repeating: 1, count: 60), on: a)
        #expect(try drain(&machine).count == 1)
        // Its end got lost: the handle is open still.
        machine.linkOpened(a)
        #expect(machine.credits == 1)
        #expect(machine.waitingByteCount(a) == 0)
        _ = machine.frameRequested([2], on: a)
        #expect(try drain(&machine).map(\.boundary) == [.firstFromHost])
    }

    @Test func `completions beyond what was sent are counted and give nothing`() throws {
        var machine = machine(3)
        _ = machine.frameRequested([1], on: a)
        _ = try drain(&machine)
        machine.packetsCompleted(.init(handle: a, count: 9))
        #expect(machine.credits == 3)
        #expect(machine.excessCompletions == 8)
    }

    @Test func `eight links get the same share`() throws {
        var machine = ACLTransmitStateMachine(
            .init(buffers: .init(packetLength: 27, count: 4), queueLimit: 1 << 20))
        let handles = (0..<8).map { ConnectionHandle(UInt16($0)) }
        for handle in handles {
            machine.linkOpened(handle)
            // Long frames here and short ones there.
            for _ in 0..<200 {
                _ = machine.frameRequested(
                    [UInt8](repeating: 1, count: handle.rawValue % 2 == 0 ? 500 : 20), on: handle)
            }
        }
        var counts: [ConnectionHandle: Int] = [:]
        for _ in 0..<800 {
            for packet in try drain(&machine) {
                counts[packet.handle, default: 0] += 1
                machine.packetsCompleted(.init(handle: packet.handle, count: 1))
            }
            if counts.values.reduce(0, +) >= 800 { break }
        }
        let values = handles.map { counts[$0] ?? 0 }
        #expect((values.max() ?? 0) - (values.min() ?? 0) <= 1, "\(values)")
    }

    /// One of eight peers has gone out of range: what it was sent stays in the controller until its link times out.
    @Test(arguments: [8, 12, 64]) func `a peer that takes nothing does not hold up the others`(buffers: Int) throws {
        var machine = ACLTransmitStateMachine(.init(buffers: .init(packetLength: 27, count: buffers)))
        let handles = (0..<8).map { ConnectionHandle(UInt16($0)) }
        for handle in handles { machine.linkOpened(handle) }
        var counts: [ConnectionHandle: Int] = [:]
        for _ in 0..<500 {
            for handle in handles { _ = machine.frameRequested([UInt8](repeating: 1, count: 200), on: handle) }
            for packet in try drain(&machine) where packet.handle != handles[3] {
                counts[packet.handle, default: 0] += 1
                machine.packetsCompleted(.init(handle: packet.handle, count: 1))
            }
        }
        #expect(machine.outstandingCount(handles[3]) <= max(1, buffers - 7))
        let values = handles.filter { $0 != handles[3] }.map { counts[$0] ?? 0 }
        let (least, most) = (values.min() ?? 0, values.max() ?? 0)
        #expect(least > 100 && most - least <= most / 10, "\(values)")
    }

    @Test func `bursts of eight links are served within 10 % of each other, and none is lost`() throws {
        var random = SplitMix(state: 8)
        var machine = ACLTransmitStateMachine(.init(buffers: .init(packetLength: 251, count: 8)))
        let handles = (0..<8).map { ConnectionHandle(UInt16($0)) }
        for handle in handles { machine.linkOpened(handle) }
        var asked: [ConnectionHandle: Int] = [:]
        var sent: [ConnectionHandle: Int] = [:]
        var inController: [ConnectionHandle] = []
        while asked.values.reduce(0, +) < 8 * 400 {
            // Each has something to say at any time; completions come in heaps of any size.
            for handle in handles where asked[handle, default: 0] < 400 {
                while machine.waitingByteCount(handle) < 1000, asked[handle, default: 0] < 400 {
                    #expect(
                        machine.frameRequested([UInt8](repeating: 1, count: 244), on: handle, isValue: true)
                            == .accepted)
                    asked[handle, default: 0] += 1
                }
            }
            for packet in try drain(&machine) { inController.append(packet.handle) }
            for handle in inController.prefix(Int.random(in: 1...8, using: &random)) {
                inController.removeFirst()
                machine.packetsCompleted(.init(handle: handle, count: 1))
                sent[handle, default: 0] += 1
            }
            let values = handles.map { sent[$0] ?? 0 }
            let (least, most) = (values.min() ?? 0, values.max() ?? 0)
            if least >= 50 { #expect(most - least <= most / 10 + 2, "\(values)") }
        }
        for packet in try drain(&machine) { inController.append(packet.handle) }
        while !inController.isEmpty {
            let handle = inController.removeFirst()
            machine.packetsCompleted(.init(handle: handle, count: 1))
            sent[handle, default: 0] += 1
            for packet in try drain(&machine) { inController.append(packet.handle) }
        }
        #expect(handles.allSatisfy { sent[$0] == 400 })
        #expect(machine.credits == 8)
    }

    @Test func `writes that nobody answers fill the controller, and leave room for what the peer waits for`() throws {
        var machine = machine(8)
        let command = [UInt8](repeating: 1, count: 27)
        var taken = 0
        while machine.frameRequested(command, on: a, isValue: true) == .accepted { taken += 1 }
        #expect(taken * 27 > 8_000)
        #expect(try drain(&machine).count == 8)
        #expect(machine.outstandingCount(a) >= 4)
        #expect(machine.frameRequested(command, on: a) == .accepted)
    }

    @Test func `a queue has an end`() {
        var machine = ACLTransmitStateMachine(.init(buffers: .init(packetLength: 27, count: 1), queueLimit: 100))
        #expect(machine.frameRequested([1], on: a) == .noLink)
        machine.linkOpened(a)
        // A frame longer than the limit goes where nothing waits.
        #expect(machine.frameRequested([UInt8](repeating: 1, count: 300), on: a) == .accepted)
        #expect(machine.frameRequested([1], on: a) == .full)
        #expect(machine.linkClosed(a) == 1)
    }

    @Test func `many frames in a queue keep their order`() throws {
        var machine = ACLTransmitStateMachine(.init(buffers: .init(packetLength: 251, count: 1000)))
        machine.linkOpened(a)
        for number in 0..<500 {
            _ = machine.frameRequested([UInt8(number & 0xFF), UInt8(number >> 8)], on: a)
            if number % 3 == 0 { _ = try drain(&machine) }
        }
        #expect(machine.outstandingCount(a) + (try drain(&machine)).count == 500)
    }
}
