// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A Bluetooth UUID in 128 bits (Core Specification, Vol 3 Part B §2.5.1).
public struct BluetoothUUID: Sendable, Hashable {
    /// Bytes 0 to 7, the most significant first.
    public var high: UInt64
    /// Bytes 8 to 15.
    public var low: UInt64

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// An assigned number: it stands for `0000xxxx-0000-1000-8000-00805f9b34fb`.
    public init(_ assigned: UInt32) {
        high = UInt64(assigned) << 32 | 0x1000
        low = 0x8000_0080_5F9B_34FB
    }

    /// Reads 36 characters with hyphens, or 4, 8 or 32 hexadecimal digits. Nil for anything else.
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

    /// The assigned number that it stands for, if it does.
    public var assigned: UInt32? {
        let number = UInt32(truncatingIfNeeded: high >> 32)
        return self == BluetoothUUID(number) ? number : nil
    }

    /// The service that carries bytes as a serial line does, Nordic's "UART": `6e400001-b5a3-f393-e0a9-e50e24dcca9e`.
    public static let nordicUART = BluetoothUUID(high: 0x6E40_0001_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)
}

extension BluetoothUUID: CustomStringConvertible {
    /// 36 characters in lower case.
    public var description: String {
        func hex(_ value: UInt64, _ digits: Int) -> String {
            let text = String(value, radix: 16)
            return String(repeating: "0", count: digits - text.utf8.count) + text
        }
        let low = low
        return "\(hex(high >> 32, 8))-\(hex(high >> 16 & 0xFFFF, 4))-\(hex(high & 0xFFFF, 4))"
            + "-\(hex(low >> 48, 4))-\(hex(low & 0xFFFF_FFFF_FFFF, 12))"
    }
}
