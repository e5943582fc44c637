// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// Recordings of what a host and its controller say to each other, in the format that Wireshark and btmon read:
/// btsnoop, version 1, data link 1002, HCI with H4's indicators (RFC 1761 with Symbian's flags).
public enum BTSnoopFile {
    /// One packet.
    public struct Record: Sendable, Hashable {
        public var kind: HCIPacketKind
        public var isFromController: Bool
        /// Microseconds since 1970.
        public var time: Int64
        /// Without H4's indicator.
        public var packet: [UInt8]
        /// How many packets before this one are not in the file, in all.
        public var drops: UInt32

        public init(kind: HCIPacketKind, isFromController: Bool, time: Int64, packet: [UInt8], drops: UInt32 = 0) {
            self.kind = kind
            self.isFromController = isFromController
            self.time = time
            self.packet = packet
            self.drops = drops
        }

        /// As it stands in a file.
        public var bytes: [UInt8] {
            var writer = ByteWriter(capacity: 25 + packet.count)
            let length = UInt32(packet.count + 1)
            writer.write(length, .big)
            writer.write(length, .big)
            // Bit 0: from the controller. Bit 1: a command or an event.
            let isControl = kind == .command || kind == .event
            writer.write((isFromController ? 1 as UInt32 : 0) | (isControl ? 2 : 0), .big)
            writer.write(drops, .big)
            writer.write(UInt64(bitPattern: time &+ BTSnoopFile.epoch), .big)
            writer.write(kind.rawValue)
            writer.write(contentsOf: packet)
            return writer.bytes
        }
    }

    /// What a file begins with, whatever kind of packets it has.
    public static let identification = Array("btsnoop\0".utf8)

    /// What a file of H4 packets begins with: the identification, version 1, data link type 1002.
    public static let header: [UInt8] = identification + [0, 0, 0, 1, 0, 0, 0x03, 0xEA]

    /// From year 0 to 1970 in microseconds, as the format counts.
    static let epoch: Int64 = 0x00DC_DDB3_0F2F_8000

    /// Reads a whole file. A last record that is cut, as a host leaves it that was ended, is left out. For one of any size there is
    /// ``BTSnoopReader``.
    public static func decode(_ file: RawSpan) throws(DecodeError) -> [Record] {
        var reader = BTSnoopReader()
        var records: [Record] = []
        try reader.bytesReceived(file.withUnsafeBytes { Array($0) }) { records.append($0) }
        guard reader.hasHeader else {
            throw DecodeError(.truncated(missing: header.count - reader.unfinished), offset: reader.unfinished)
        }
        return records
    }
}
