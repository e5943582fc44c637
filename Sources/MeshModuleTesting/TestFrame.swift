// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Frames that harm no radio: none begins like a command that one may obey.
enum TestFrame {
    /// No command of MeshCore's.
    private static let first: UInt8 = 0xFF
    static let short = of(1)

    /// So many bytes, of which the second is the number, if there are so many.
    static func of(_ length: Int, number: Int = 0) -> [UInt8] {
        (0..<length).map { $0 == 0 ? first : UInt8(truncatingIfNeeded: ($0 - 1) &* 7 &+ number) }
    }

    /// Bytes that no other frame has.
    static func random(_ length: Int) -> [UInt8] {
        (0..<length).map { $0 == 0 ? first : UInt8.random(in: 0...255) }
    }
}
