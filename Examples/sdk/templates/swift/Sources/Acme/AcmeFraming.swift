// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// YOURS: where a frame begins and ends. Here each stands behind its length, two bytes, little-endian. No socket, no clock.
struct AcmeFraming {
    /// A frame of no possible length.
    struct Nonsense: Error {}

    /// What the host takes.
    static let maximumFrame = 4_096

    private var bytes: [UInt8] = []

    static func encode(_ frame: some Collection<UInt8>) -> [UInt8] {
        [UInt8(truncatingIfNeeded: frame.count), UInt8(truncatingIfNeeded: frame.count >> 8)] + frame
    }

    /// Hands each whole frame to `deliver`. Any bytes are taken.
    mutating func bytesReceived(_ new: UnsafeRawBufferPointer, _ deliver: (ArraySlice<UInt8>) -> Void) throws(Nonsense)
    {
        bytes += new
        var rest = bytes[...]
        while rest.count >= 2 {
            let length = Int(rest[rest.startIndex]) | Int(rest[rest.startIndex + 1]) << 8
            guard (1...Self.maximumFrame).contains(length) else { throw Nonsense() }
            guard rest.count >= 2 + length else { break }
            deliver(rest.dropFirst(2).prefix(length))
            rest = rest.dropFirst(2 + length)
        }
        bytes = Array(rest)
    }
}
