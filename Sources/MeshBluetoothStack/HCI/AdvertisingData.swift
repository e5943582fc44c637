// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// What a device says of itself in advertisements and scan responses (Core Specification 5.4, Vol 3 Part C §11;
/// Supplement, Part A §1).
///
/// Comes from anybody: a field that does not fit its type is passed over, and a length beyond the end ends the reading,
/// as all stacks do it. What was read before stays.
public struct AdvertisingData: Sendable, Hashable {
    /// Data of a maker's own format.
    public struct ManufacturerData: Sendable, Hashable {
        public var company: UInt16
        public var data: [UInt8]

        public init(company: UInt16, data: [UInt8]) {
            self.company = company
            self.data = data
        }
    }

    /// The limited or general discoverable flags, and the others; nil if the device sent none.
    public var flags: UInt8?
    /// Services with 16 and with 128 bits, from complete and incomplete lists.
    public var services: [AttributeUUID] = []
    /// As the device wrote it; text of strangers.
    public var name: String?
    /// The name is cut.
    public var isNameShortened = false
    /// dBm
    public var transmitPower: Int8?
    /// By company.
    public var manufacturerData: [ManufacturerData] = []

    public init() {}

    /// Reads the fields of an advertisement.
    public init(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while let length = rest.popFirst().map(Int.init), length > 0, length <= rest.count {
            let field = rest.prefix(length)
            rest = rest.dropFirst(length)
            add(type: field[field.startIndex], Array(field.dropFirst()))
        }
    }

    private mutating func add(type: UInt8, _ value: [UInt8]) {
        switch type {
        case 0x01: flags = value.first
        case 0x02, 0x03: addServices(value, byteCount: 2)
        case 0x06, 0x07: addServices(value, byteCount: 16)
        case 0x08 where name == nil:
            name = Self.text(value)
            isNameShortened = true
        case 0x09:
            name = Self.text(value)
            isNameShortened = false
        case 0x0A where value.count == 1: transmitPower = Int8(bitPattern: value[0])
        case 0xFF where value.count >= 2:
            manufacturerData.append(
                ManufacturerData(
                    company: UInt16(value[0]) | UInt16(value[1]) << 8, data: Array(value.dropFirst(2))))
        default: break
        }
    }

    private static func text(_ value: [UInt8]) -> String {
        value.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            return reader.readText()
        }
    }

    private mutating func addServices(_ value: [UInt8], byteCount: Int) {
        for start in stride(from: 0, through: value.count - byteCount, by: byteCount) {
            let bytes = Array(value[start..<start + byteCount])
            guard
                let uuid = try? ByteReader.decode(
                    bytes,
                    { (reader) throws(DecodeError) in
                        try reader.readUUID(byteCount: byteCount)
                    }), !services.contains(uuid)
            else { continue }
            services.append(uuid)
        }
    }

    /// Builds a field; at most 254 bytes.
    public static func field(type: UInt8, _ value: [UInt8]) -> [UInt8] {
        precondition(value.count < 255)
        return [UInt8(value.count + 1), type] + value
    }

    /// What a connectable peripheral advertises: flags and one service.
    public static func announcing(_ service: AttributeUUID) -> [UInt8] {
        field(type: 0x01, [0x06]) + field(type: service.assigned == nil ? 0x07 : 0x03, service.wireBytes)
    }

    /// A name for the scan response: whole, or cut to what fits 31 bytes.
    public static func naming(_ name: String) -> [UInt8] {
        var writer = ByteWriter()
        writer.writeText(name, limit: 29)
        return field(type: writer.bytes.count == name.utf8.count ? 0x09 : 0x08, writer.bytes)
    }
}
