// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// The nodes that a packet passed or will pass, each named by the start of its key; or none known.
public struct PacketPath: Sendable, Hashable {
    /// No path: unknown, direct or flood, by where it stands.
    public static let none = PacketPath(unchecked: .none, Data())
    /// A path of no hops.
    public static let zeroHops = PacketPath(unchecked: .zeroHops, Data())

    /// Hops and hash size.
    public let byte: PathByte
    /// The hashes, one after the other.
    public let hashes: Data

    private init(unchecked byte: PathByte, _ hashes: Data) {
        self.byte = byte
        self.hashes = hashes
    }

    /// A path from its byte and exactly the bytes it asks for; nil if they do not fit each other.
    public init?(byte: PathByte, hashes: Data) {
        guard hashes.count == byte.pathLength ?? (byte == .none ? 0 : -1) else { return nil }
        self.init(unchecked: byte, hashes)
    }

    /// A path from hashes of 1 to 3 bytes; nil if they are no whole number of hashes, or more than 64 bytes.
    public init?(hashSize: Int, hashes: Data) {
        guard (1...3).contains(hashSize), hashes.count.isMultiple(of: hashSize),
            hashes.count <= PathByte.maximumPathLength,
            let byte = PathByte(hashSize: hashSize, hops: hashes.count / hashSize)
        else { return nil }
        self.init(unchecked: byte, hashes)
    }

    /// Each node's hash.
    public var hops: [Data] {
        guard let size = byte.hashSize else { return [] }
        return stride(from: 0, to: hashes.count, by: size).map { Data(hashes.dropFirst($0).prefix(size)) }
    }
}

extension PacketPath: CustomStringConvertible {
    /// Such as `3fa002,860cca`, or `none`.
    public var description: String {
        byte == .none ? "none" : hops.map { HexText.text($0) }.joined(separator: ",")
    }
}
