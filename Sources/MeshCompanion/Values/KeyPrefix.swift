// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// The first six bytes of a node's public key: how messages and pushes name nodes (companion-protocol §1.5, `pub6`).
public struct KeyPrefix: Sendable, Hashable {
    /// How many bytes a prefix has.
    public static let length = 6
    /// The prefix of zeros.
    public static let zero = KeyPrefix(word: 0)

    /// The bytes as a big-endian number of 48 bits.
    private let word: UInt64

    init(word: UInt64) {
        self.word = word
    }

    /// A prefix from exactly six bytes; nil for any other number.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.length else { return nil }
        word = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// A prefix from twelve hexadecimal digits.
    public init?(hex: String) {
        guard let bytes = HexText.bytes(hex) else { return nil }
        self.init(bytes)
    }

    /// The six bytes.
    public var data: Data {
        Data(stride(from: 40, through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> $0) })
    }
}

extension KeyPrefix: CustomStringConvertible {
    /// Twelve lower-case hexadecimal digits.
    public var description: String { HexText.text(data) }
}
