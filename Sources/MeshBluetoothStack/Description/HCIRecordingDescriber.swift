// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// Describes a recording packet by packet, with frames that were sent in pieces put together: what an L2CAP frame says
/// stands at its last piece.
///
/// Bounded: the pieces of as many links as a controller has at a time, and not more than ``linkLimit`` of them.
public struct HCIRecordingDescriber: ~Copyable, Sendable {
    /// A link, and which way its data goes.
    private struct Flow: Hashable {
        var handle: ConnectionHandle
        var isFromController: Bool
    }

    /// Frames that are not whole, in number.
    static let linkLimit = 64

    private var pieces: [Flow: [UInt8]] = [:]

    public init() {}

    /// The next packet of the recording.
    public mutating func describe(_ record: BTSnoopFile.Record) -> PacketDescription {
        var description = HCIPacketDescriber.describe(record.kind, record.packet)
        switch record.kind {
        case .acl:
            if description.error == nil, let packet = try? ACLPacket.decode(record.packet.span.bytes) {
                join(packet, isFromController: record.isFromController, &description)
            }
        case .event:
            if case .disconnectionComplete(_, let handle, _)? = try? HCIEvent.decode(record.packet.span.bytes) {
                for direction in [false, true] { pieces[Flow(handle: handle, isFromController: direction)] = nil }
            }
        case .command:
            if description.name == "Reset" { pieces = [:] }
        case .synchronous, .isochronous: break
        }
        return description
    }

    private mutating func join(
        _ packet: ACLPacket, isFromController: Bool, _ description: inout PacketDescription
    ) {
        let flow = Flow(handle: packet.handle, isFromController: isFromController)
        let before = pieces.removeValue(forKey: flow)
        // Whole in one packet, which has been described.
        guard description.payload.isEmpty else { return }
        guard packet.boundary.isFirst || before != nil else { return }
        var frame = packet.boundary.isFirst ? packet.payload : (before ?? []) + packet.payload
        let needed = frame.count < 4 ? nil : 4 + (Int(frame[0]) | Int(frame[1]) << 8)
        guard let needed, frame.count >= needed else {
            // One that a recording does not show the end of must not be kept for ever.
            if pieces.count >= Self.linkLimit { pieces = [:] }
            pieces[flow] = frame
            return
        }
        let surplus = frame.count - needed
        frame.removeLast(surplus)
        var whole = L2CAPDescriber.describe(
            L2CAPFrame(channel: UInt16(frame[2]) | UInt16(frame[3]) << 8, payload: Array(frame.dropFirst(4))))
        if surplus > 0 { whole.error = DecodeError(.trailing(count: surplus), offset: needed) }
        description.payload = [whole]
    }
}
