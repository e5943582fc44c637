// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A Bluetooth UUID, in 128 bits (Core Specification, Vol 3 Part B §2.5.1).
public struct BLEUUID: Sendable, Hashable {
    /// The bytes, the most significant first.
    public let high: UInt64
    public let low: UInt64

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// An assigned number: it stands for `0000xxxx-0000-1000-8000-00805f9b34fb`.
    public init(_ assigned: UInt32) {
        high = UInt64(assigned) << 32 | 0x1000
        low = 0x8000_0080_5F9B_34FB
    }

    /// Reads 36 characters with hyphens, or 4 or 8 hexadecimal digits. Nil for anything else.
    public init?(_ text: String) {
        let digits = text.utf8.filter { $0 != UInt8(ascii: "-") }
        guard text.utf8.count == 36 || text.utf8.count == digits.count,
            digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit })
        else { return nil }
        let hex = String(decoding: digits, as: UTF8.self)
        switch hex.count {
        case 4, 8:
            guard let assigned = UInt32(hex, radix: 16) else { return nil }
            self.init(assigned)
        case 32:
            guard let high = UInt64(hex.prefix(16), radix: 16), let low = UInt64(hex.suffix(16), radix: 16) else {
                return nil
            }
            self.init(high: high, low: low)
        default: return nil
        }
    }
}

extension BLEUUID: CustomStringConvertible {
    /// 36 characters in lower case, as BlueZ writes them.
    public var description: String {
        func hex(_ value: UInt64, _ digits: Int) -> String {
            let text = String(value, radix: 16)
            return String(repeating: "0", count: digits - text.count) + text
        }
        return [
            hex(high >> 32, 8), hex(high >> 16 & 0xFFFF, 4), hex(high & 0xFFFF, 4), hex(low >> 48, 4),
            hex(low & 0xFFFF_FFFF_FFFF, 12),
        ].joined(separator: "-")
    }
}
