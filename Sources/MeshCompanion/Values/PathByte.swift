// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How long a path is, in one byte: the low six bits are the hops, the top two the bytes of each hop's hash less one.
/// 0xFF means that there is no path: unknown for a contact, direct for a message that was received, flood for a send
/// (companion-protocol §1.8; firmware `Packet::isValidPathLen`).
public struct PathByte: RawRepresentable, Sendable, Hashable {
    /// The most bytes of a path (`MAX_PATH_SIZE`, firmware src/MeshCore.h).
    public static let maximumPathLength = 64
    /// No path: unknown, direct or flood, by where it stands.
    public static let none = PathByte(rawValue: 0xFF)
    /// A path of no hops with hashes of one byte.
    public static let zeroHops = PathByte(rawValue: 0)

    public var rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Nil for hash sizes other than 1 to 3 and for more than 63 hops. What does not fit a packet can still be written.
    public init?(hashSize: Int, hops: Int) {
        guard (1...3).contains(hashSize), (0...63).contains(hops) else { return nil }
        rawValue = UInt8(hashSize - 1) << 6 | UInt8(hops)
    }

    /// How many nodes pass the packet on; nil where there is no path or the byte has no meaning.
    public var hops: Int? { hashSize == nil ? nil : Int(rawValue & 0x3F) }

    /// How many bytes name a node, 1 to 3; nil where there is no path or the byte has no meaning (size 4 is reserved).
    public var hashSize: Int? {
        let size = Int(rawValue >> 6) + 1
        return size == 4 ? nil : size
    }

    /// How many bytes the hashes take; nil where there is no path, or none that fits a packet.
    public var pathLength: Int? {
        guard let hashSize, let hops, hashSize * hops <= Self.maximumPathLength else { return nil }
        return hashSize * hops
    }

    /// Whether the byte may stand in front of a packet's path.
    public var isValidInPacket: Bool { pathLength != nil }
}
