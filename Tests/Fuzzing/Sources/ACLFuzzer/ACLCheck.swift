// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshWire

/// What must hold for any pieces of a link's data, and for what is sent: credits are never lost, frames never mixed.
/// The first byte of each step chooses what happens.
enum ACLCheck {
    static func run(_ input: UnsafeRawBufferPointer) {
        receive(input)
        send(input)
        for role in [LinkRole.central, .peripheral] {
            var machine = SignallingStateMachine(role: role)
            _ = machine.updateRequested(.relaxed, now: .zero)
            _ = machine.frameReceived(Array(input))
            _ = machine.frameReceived(Array(input.dropFirst()))
            _ = machine.deadlineReached(now: .seconds(60))
            precondition(machine.nextDeadline == nil, "a request without an end")
        }
    }

    private static func receive(_ input: UnsafeRawBufferPointer) {
        var reassembler = ACLReassembler()
        var order = InboundOrderStateMachine()
        var rest = input[...]
        var bytes = 0
        while let step = rest.popFirst() {
            let piece = Array(rest.prefix(Int(step & 0x3F)))
            rest = rest.dropFirst(piece.count)
            let boundary = ACLPacket.Boundary(rawValue: step >> 6) ?? .continuation
            if case .frame(let frame) = reassembler.pieceReceived(boundary, piece) { bytes += frame.payload.count + 4 }
            if let frame = reassembler.takeWholeFrame() { bytes += frame.payload.count + 4 }
            let packet = ACLPacket(handle: ConnectionHandle(UInt16(step & 3)), boundary: boundary, payload: piece)
            precondition(
                (try? ACLPacket.decode(packet.packet.span.bytes)) == packet, "a packet that does not read back")
            _ = order.packetReceived(packet, now: .milliseconds(Int(step)))
            if step & 0x10 != 0 { _ = order.linkOpened(packet.handle) }
            if step & 0x20 != 0 { order.encryptionBegan(packet.handle) }
        }
        precondition(bytes <= input.count, "more frames than there were bytes")
        _ = try? ACLPacket.decode(input.bytes)
        _ = try? L2CAPFrame.decode(input.bytes)
    }

    private static func send(_ input: UnsafeRawBufferPointer) {
        let total = 3
        var machine = ACLTransmitStateMachine(
            .init(buffers: .init(packetLength: 27, count: total), queueLimit: 1000))
        var outstanding: [UInt16: Int] = [:]
        for byte in input {
            let handle = ConnectionHandle(UInt16(byte & 3))
            switch byte >> 2 & 3 {
            case 0:
                machine.linkOpened(handle)
                outstanding[handle.rawValue] = 0
            case 1:
                _ = machine.linkClosed(handle)
                outstanding[handle.rawValue] = nil
            case 2: _ = machine.frameRequested([UInt8](repeating: byte, count: Int(byte)), on: handle)
            default:
                machine.packetsCompleted(.init(handle: handle, count: UInt16(byte >> 4)))
                if let count = outstanding[handle.rawValue] {
                    outstanding[handle.rawValue] = max(0, count - Int(byte >> 4))
                }
            }
            while let packet = machine.nextPacket() {
                guard let decoded = try? ACLPacket.decode(packet.span.bytes) else {
                    preconditionFailure("a packet that is none")
                }
                outstanding[decoded.handle.rawValue, default: 0] += 1
            }
            let inController = outstanding.values.reduce(0, +)
            precondition(machine.credits + inController == total, "credits got lost")
        }
    }
}
