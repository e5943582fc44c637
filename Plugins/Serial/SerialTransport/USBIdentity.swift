// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Which USB device is meant: vendor and product, and a serial number where there are several of a kind.
public struct USBIdentity: Sendable, Hashable {
    public var vendor: UInt16
    public var product: UInt16
    /// Nil: any.
    public var serialNumber: String?

    public init(vendor: UInt16, product: UInt16, serialNumber: String? = nil) {
        self.vendor = vendor
        self.product = product
        self.serialNumber = serialNumber
    }

    /// Reads `239a:8029`, as `lsusb` prints it, or `239a:8029:SERIAL`.
    public init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, let vendor = Self.number(parts[0]), let product = Self.number(parts[1]) else {
            return nil
        }
        if parts.count == 3, parts[2].isEmpty { return nil }
        self.init(vendor: vendor, product: product, serialNumber: parts.count == 3 ? String(parts[2]) : nil)
    }

    /// Four hexadecimal digits and nothing else.
    static func number(_ text: Substring) -> UInt16? {
        text.utf8.count == 4 && text.allSatisfy(\.isHexDigit) ? UInt16(text, radix: 16) : nil
    }

    /// Whether a device that is there is the one meant.
    func matches(_ other: USBIdentity) -> Bool {
        vendor == other.vendor && product == other.product
            && (serialNumber == nil || serialNumber == other.serialNumber)
    }
}

extension USBIdentity: CustomStringConvertible {
    /// As it is read.
    public var description: String {
        func hex(_ number: UInt16) -> String {
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: 4 - digits.count) + digits
        }
        return "\(hex(vendor)):\(hex(product))" + (serialNumber.map { ":\($0)" } ?? "")
    }
}
