// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension AdvertisingData {
    /// The structures, in the order of their types. What one structure cannot hold (254 bytes) is cut: text between
    /// characters, lists between UUIDs into as many structures as they need, other content at its end.
    public func encoded() -> [UInt8] {
        typealias Types = AdvertisingType
        var writer = ByteWriter()
        if let flags { Self.write(Types.flags, [flags.rawValue], to: &writer) }
        writeServices(to: &writer)
        if let localName {
            let name = WireText.prefix(of: localName.text, bytes: Self.contentLimit)
            let isShortened = localName.isShortened || name.utf8.count < localName.text.utf8.count
            Self.write(isShortened ? Types.shortName : Types.completeName, Array(name.utf8), to: &writer)
        }
        if let transmitPower { Self.write(Types.transmitPower, [UInt8(bitPattern: transmitPower)], to: &writer) }
        for entry in serviceData {
            let (size, uuid) = entry.service.wireForm
            let type = size == 2 ? Types.serviceData16 : size == 4 ? Types.serviceData32 : Types.serviceData128
            Self.write(type, uuid + entry.bytes, to: &writer)
        }
        for other in others { Self.write(other.type, other.bytes, to: &writer) }
        for entry in manufacturerData {
            let company = [UInt8(truncatingIfNeeded: entry.company), UInt8(entry.company >> 8)]
            Self.write(Types.manufacturerData, company + entry.bytes, to: &writer)
        }
        return writer.bytes
    }

    /// What a connectable peripheral that speaks LE only says: its flags, and one service.
    public static func announcing(_ service: BluetoothUUID) -> AdvertisingData {
        var data = AdvertisingData()
        data.flags = [.generalDiscoverable, .lowEnergyOnly]
        data.services = [service]
        return data
    }

    /// A name for the scan response: whole, or cut to what fits a legacy packet of 31 bytes.
    public static func naming(_ name: String) -> AdvertisingData {
        let shown = WireText.prefix(of: name, bytes: 29)
        var data = AdvertisingData()
        data.localName = LocalName(String(shown), isShortened: shown.utf8.count < name.utf8.count)
        return data
    }

    /// The length byte counts the type, too.
    private static let contentLimit = 254

    private static func write(_ type: UInt8, _ content: [UInt8], to writer: inout ByteWriter) {
        let content = content.prefix(contentLimit)
        writer.write(UInt8(1 + content.count))
        writer.write(type)
        writer.write(contentsOf: content)
    }

    /// Lists of one size each, the short ones first.
    private func writeServices(to writer: inout ByteWriter) {
        typealias Types = AdvertisingType
        let forms = services.map(\.wireForm)
        for (size, type) in [(2, Types.allServices16), (4, Types.allServices32), (16, Types.allServices128)] {
            let list = forms.filter { $0.size == size }.map(\.bytes)
            let share = Self.contentLimit / size
            for start in stride(from: 0, to: list.count, by: share) {
                Self.write(type, Array(list[start..<min(start + share, list.count)].joined()), to: &writer)
            }
        }
    }
}

extension BluetoothUUID {
    /// The shortest form, the least significant byte first.
    fileprivate var wireForm: (size: Int, bytes: [UInt8]) {
        func littleEndian(_ value: some FixedWidthInteger) -> [UInt8] {
            withUnsafeBytes(of: value.littleEndian) { Array($0) }
        }
        switch assigned {
        case let number? where number <= 0xFFFF: return (2, littleEndian(UInt16(number)))
        case let number?: return (4, littleEndian(number))
        case nil: return (16, littleEndian(low) + littleEndian(high))
        }
    }
}
