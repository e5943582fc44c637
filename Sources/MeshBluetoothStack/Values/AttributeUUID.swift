// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// The UUID of an attribute's type: 16 bits where one is assigned, else 128 (Core Specification 5.4, Vol 3 Part B
/// §2.5.1, Part F §3.2.1). Both forms of the same UUID are equal.
public struct AttributeUUID: Sendable, Hashable {
    /// The upper 64 bits.
    public let high: UInt64
    /// The lower 64 bits.
    public let low: UInt64

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// An assigned number, which stands for `0000xxxx-0000-1000-8000-00805f9b34fb`.
    public init(_ assigned: UInt16) {
        high = UInt64(assigned) << 32 | 0x1000
        low = Self.baseLow
    }

    /// The assigned number, if this is one.
    public var assigned: UInt16? {
        low == Self.baseLow && high & 0xFFFF_0000_FFFF_FFFF == 0x1000 ? UInt16(truncatingIfNeeded: high >> 32) : nil
    }

    /// As ATT sends it: 2 or 16 bytes, the least significant first.
    public var wireBytes: [UInt8] {
        var writer = ByteWriter(capacity: 16)
        if let assigned {
            writer.write(assigned)
        } else {
            writer.write(low)
            writer.write(high)
        }
        return writer.bytes
    }

    private static let baseLow: UInt64 = 0x8000_0080_5F9B_34FB

    /// Primary Service declaration.
    public static let primaryService = AttributeUUID(0x2800)
    /// Secondary Service declaration.
    public static let secondaryService = AttributeUUID(0x2801)
    /// Include declaration.
    public static let include = AttributeUUID(0x2802)
    /// Characteristic declaration.
    public static let characteristic = AttributeUUID(0x2803)
    /// Client Characteristic Configuration descriptor (CCCD).
    public static let clientConfiguration = AttributeUUID(0x2902)
    /// Generic Attribute service.
    public static let genericAttribute = AttributeUUID(0x1801)
    /// Service Changed characteristic.
    public static let serviceChanged = AttributeUUID(0x2A05)
    /// Database Hash characteristic.
    public static let databaseHash = AttributeUUID(0x2B2A)
}

extension AttributeUUID: CustomStringConvertible {
    /// Four digits for an assigned number, else 36 characters in lower case.
    public var description: String {
        func hex(_ value: UInt64, _ digits: Int) -> String {
            let text = String(value, radix: 16)
            return String(repeating: "0", count: digits - text.count) + text
        }
        if let assigned { return hex(UInt64(assigned), 4) }
        return [
            hex(high >> 32, 8), hex(high >> 16 & 0xFFFF, 4), hex(high & 0xFFFF, 4), hex(low >> 48, 4),
            hex(low & 0xFFFF_FFFF_FFFF, 12),
        ].joined(separator: "-")
    }
}

extension ByteReader {
    /// A UUID of 2 or 16 bytes.
    mutating func readUUID(byteCount: Int) throws(DecodeError) -> AttributeUUID {
        if byteCount == 2 { return AttributeUUID(try read(UInt16.self)) }
        guard byteCount == 16 else { throw DecodeError(.invalidField("UUID length"), offset: offset) }
        let low = try read(UInt64.self)
        return AttributeUUID(high: try read(), low: low)
    }
}
