// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials

/// Numbers at fixed places, for parts that need one field of a frame and not the rest. Offsets count from the frame's
/// first byte, also in a slice.
extension Data {
    /// The byte at `offset`; nil past the end.
    func field8(at offset: Int) -> UInt8? {
        offset < count ? self[startIndex + offset] : nil
    }

    /// The little-endian number of four bytes at `offset`; nil if they are not all there.
    func field32(at offset: Int) -> UInt32? {
        guard offset + 4 <= count else { return nil }
        let start = startIndex + offset
        return (0..<4).reduce(0) { $0 | UInt32(self[start + $1]) << (8 * UInt32($1)) }
    }

    /// Puts a little-endian number of four bytes at `offset`, where there must be four bytes.
    mutating func setField32(_ value: UInt32, at offset: Int) {
        let start = startIndex + offset
        replaceSubrange(start..<start + 4, with: Data.field32(value))
    }

    /// The four bytes of a number.
    static func field32(_ value: UInt32) -> Data {
        Data((0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * UInt32($0))) })
    }
}
