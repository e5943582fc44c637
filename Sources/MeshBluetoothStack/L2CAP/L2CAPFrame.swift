// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// A frame of L2CAP's basic mode (Core Specification 5.4, Vol 3 Part A §3.1).
public struct L2CAPFrame: Sendable, Hashable {
    /// Attribute protocol (§2.1, table 2.3).
    public static let attributeChannel: UInt16 = 4
    /// LE signalling.
    public static let signallingChannel: UInt16 = 5
    /// Security Manager.
    public static let securityChannel: UInt16 = 6

    public var channel: UInt16
    public var payload: [UInt8]

    public init(channel: UInt16, payload: [UInt8]) {
        precondition(payload.count <= 65_535)
        self.channel = channel
        self.payload = payload
    }

    /// With the header.
    public var bytes: [UInt8] {
        var writer = ByteWriter(capacity: 4 + payload.count)
        writer.write(UInt16(payload.count))
        writer.write(channel)
        writer.write(contentsOf: payload)
        return writer.bytes
    }

    /// Reads a whole frame.
    public static func decode(_ bytes: RawSpan) throws(DecodeError) -> L2CAPFrame {
        try ByteReader.decode(bytes) { (reader) throws(DecodeError) in
            let count = Int(try reader.read(UInt16.self))
            let channel = try reader.read(UInt16.self)
            let payload = try reader.readBytes(count)
            try reader.expectEnd()
            return L2CAPFrame(channel: channel, payload: payload)
        }
    }
}
