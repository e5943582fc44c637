// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// A piece of a link's data (Core Specification 5.4, Vol 4 Part E §5.4.2).
public struct ACLPacket: Sendable, Hashable {
    /// Where a piece stands in its L2CAP frame: the PB flag.
    public enum Boundary: UInt8, Sendable, Hashable {
        /// The first, from a host.
        case firstFromHost = 0b00
        case continuation = 0b01
        /// The first, from a controller.
        case firstFromController = 0b10
        /// A whole frame, which LE does not use.
        case complete = 0b11

        /// Whether a frame begins here.
        public var isFirst: Bool { self != .continuation }
    }

    public var handle: ConnectionHandle
    public var boundary: Boundary
    public var payload: [UInt8]

    public init(handle: ConnectionHandle, boundary: Boundary, payload: [UInt8]) {
        self.handle = handle
        self.boundary = boundary
        self.payload = payload
    }

    /// The packet without H4's indicator.
    public var packet: [UInt8] {
        var writer = ByteWriter(capacity: 4 + payload.count)
        writer.write(handle.rawValue | UInt16(boundary.rawValue) << 12)
        writer.write(UInt16(payload.count))
        writer.write(contentsOf: payload)
        return writer.bytes
    }

    /// Reads a packet without H4's indicator.
    public static func decode(_ bytes: RawSpan) throws(DecodeError) -> ACLPacket {
        try ByteReader.decode(bytes) { (reader) throws(DecodeError) in
            let word = try reader.read(UInt16.self)
            let count = Int(try reader.read(UInt16.self))
            let payload = try reader.readBytes(count)
            try reader.expectEnd()
            return ACLPacket(
                handle: ConnectionHandle(word), boundary: Boundary(rawValue: UInt8(word >> 12 & 0b11)) ?? .complete,
                payload: payload)
        }
    }
}
