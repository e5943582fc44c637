// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Hashes that stand where firmware has cryptography: the same input gives the same bytes, and nobody is protected.
enum SimulatedHash {
    /// FNV-1a, 64 bits (draft-eastlake-fnv).
    static func number(of bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    /// So many bytes that depend on all of the input.
    static func bytes(_ count: Int, of input: some Sequence<UInt8>) -> [UInt8] {
        var random = SeededRandom(state: number(of: input))
        return (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next() >> 24) }
    }
}
