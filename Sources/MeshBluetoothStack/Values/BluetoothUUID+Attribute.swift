// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// UUIDs as the attribute protocol sends them: 16 bits where those are assigned, else 128; it has no form of 32 bits (Core
/// Specification 5.4, Vol 3 Part B §2.5.1, Part F §3.2.1).
extension BluetoothUUID {
    /// The 16 bits, if they are enough.
    public var shortForm: UInt16? { assigned.flatMap { UInt16(exactly: $0) } }

    /// 2 or 16 bytes, the least significant first.
    public var attributeBytes: [UInt8] {
        guard let shortForm else { return longAttributeBytes }
        var writer = ByteWriter(capacity: 2)
        writer.write(shortForm)
        return writer.bytes
    }

    /// In 16 bytes, also where 2 would do.
    var longAttributeBytes: [UInt8] {
        var writer = ByteWriter(capacity: 16)
        writer.write(low)
        writer.write(high)
        return writer.bytes
    }

    /// Reads 2 or 16 bytes. Nil for any other number of them.
    init?(attributeBytes bytes: [UInt8]) {
        let uuid = try? ByteReader.decode(bytes) { (reader) throws(DecodeError) in
            try reader.readUUID(byteCount: bytes.count)
        }
        guard let uuid else { return nil }
        self = uuid
    }

    /// Primary Service declaration.
    public static let primaryService = BluetoothUUID(0x2800)
    /// Secondary Service declaration.
    public static let secondaryService = BluetoothUUID(0x2801)
    /// Include declaration.
    public static let include = BluetoothUUID(0x2802)
    /// Characteristic declaration.
    public static let characteristic = BluetoothUUID(0x2803)
    /// Client Characteristic Configuration descriptor (CCCD).
    public static let clientConfiguration = BluetoothUUID(0x2902)
    /// Generic Attribute service.
    public static let genericAttribute = BluetoothUUID(0x1801)
    /// Service Changed characteristic.
    public static let serviceChanged = BluetoothUUID(0x2A05)
    /// Database Hash characteristic.
    public static let databaseHash = BluetoothUUID(0x2B2A)
}

extension ByteReader {
    /// A UUID of 2 or 16 bytes.
    mutating func readUUID(byteCount: Int) throws(DecodeError) -> BluetoothUUID {
        if byteCount == 2 { return BluetoothUUID(UInt32(try read(UInt16.self))) }
        guard byteCount == 16 else { throw DecodeError(.invalidField("UUID length"), offset: offset) }
        let low = try read(UInt64.self)
        return BluetoothUUID(high: try read(), low: low)
    }
}
