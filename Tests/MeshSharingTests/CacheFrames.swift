// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion

/// Frames for tests of what the host keeps.
enum CacheFrames {
    /// SELF_INFO of a real radio (companion-protocol §3.3, R1).
    static let selfInfo = hex(
        "05010a16a72a0122f898a608e157ee6016bb05c26be809d654a3e810f7ede26f19dfafe4dc47d9028eb0cbff0000000095440d00"
            + "90d003000b05435436325f66646c")
    /// The most that firmware v1.17.1 says: 82 bytes.
    static let deviceInfo =
        Data([0x0D, 13, 175, 40, 0x40, 0xE2, 1, 0]) + Data(repeating: 0x41, count: 72) + Data([0, 1])
    static let ok = Data([0x00])
    static let notFound = Data([0x01, 0x02])
    static let unsupported = Data([0x01, 0x01])

    /// The bytes of hexadecimal digits; spaces are for reading.
    static func hex(_ text: String) -> Data {
        let digits = text.filter { $0 != " " }
        precondition(digits.count.isMultiple(of: 2))
        var data = Data()
        var rest = digits[...]
        while !rest.isEmpty {
            data.append(UInt8(rest.prefix(2), radix: 16)!)
            rest = rest.dropFirst(2)
        }
        return data
    }

    static func number(_ code: UInt8, _ value: UInt32) -> Data {
        Data([code]) + Data(bytes(value))
    }

    static func bytes(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    /// A public key of 32 times the same byte.
    static func key(_ byte: UInt8) -> Data { Data(repeating: byte, count: 32) }

    static func publicKey(_ byte: UInt8) -> PublicKey { PublicKey(key(byte))! }

    static func channel(_ index: UInt8, secret: UInt8 = 7) -> Data {
        Data([0x12, index]) + Data("Public".utf8) + Data(count: 26) + Data(repeating: secret, count: 16)
    }

    /// A CONTACT frame, 148 bytes.
    static func contact(_ key: UInt8, changed: UInt32, pathByte: UInt8 = 2, name: String = "Node") -> Data {
        Data([0x03]) + self.key(key) + Data([1, 0, pathByte]) + Data(repeating: 0xAB, count: 64) + Data(name.utf8)
            + Data(count: 32 - name.utf8.count) + Data(bytes(1_700_000_000)) + Data(bytes(48_000_000))
            + Data(bytes(11_000_000)) + Data(bytes(changed))
    }
}
