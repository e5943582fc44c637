// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// A node's identity: its Ed25519 public key, 32 bytes (`PUB_KEY_SIZE`, firmware src/MeshCore.h).
public struct PublicKey: Sendable, Hashable {
    /// How many bytes a key has.
    public static let length = 32
    /// The key of zeros, where a layout has a key that nobody set.
    public static let zero = PublicKey(words: .zero)

    // Four big-endian words rather than an array: a key is copied often and never grows.
    private let words: SIMD4<UInt64>

    private init(words: SIMD4<UInt64>) {
        self.words = words
    }

    /// A key from exactly 32 bytes; nil for any other number.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.length else { return nil }
        var words = SIMD4<UInt64>.zero
        for (index, byte) in bytes.enumerated() { words[index / 8] = words[index / 8] << 8 | UInt64(byte) }
        self.words = words
    }

    /// A key from 64 hexadecimal digits.
    public init?(hex: String) {
        guard let bytes = HexText.bytes(hex) else { return nil }
        self.init(bytes)
    }

    /// The 32 bytes.
    public var data: Data {
        Data((0..<Self.length).map { UInt8(truncatingIfNeeded: words[$0 / 8] >> (56 - $0 % 8 * 8)) })
    }

    /// The first six bytes, by which messages and many pushes name a node.
    public var prefix: KeyPrefix { KeyPrefix(word: words[0] >> 16) }
}

extension PublicKey: CustomStringConvertible {
    /// 64 lower-case hexadecimal digits.
    public var description: String { HexText.text(data) }
}
