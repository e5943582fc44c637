// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension AdvertisingData {
    /// Reads structures. `skipped` counts the bytes that make none: a structure that the end cuts, or whose content is too
    /// short for its type. Zeros between structures are padding.
    public static func decode(_ bytes: [UInt8]) -> (data: AdvertisingData, skipped: Int) {
        var data = AdvertisingData()
        var skipped = 0
        var rest = bytes[...]
        while let length = rest.first {
            // Padding (Vol 3 Part C §11). Behind that of an advertisement its scan response may begin.
            guard length > 0 else {
                rest = rest.dropFirst()
                continue
            }
            guard rest.count > Int(length) else {
                skipped += rest.count
                break
            }
            let structure = rest.dropFirst().prefix(Int(length))
            rest = rest.dropFirst(1 + Int(length))
            do throws(DecodeError) {
                try data.take(structure[structure.startIndex], Array(structure.dropFirst()))
            } catch {
                skipped += 1 + Int(length)
            }
        }
        return (data, skipped)
    }

    private mutating func take(_ type: UInt8, _ content: [UInt8]) throws(DecodeError) {
        typealias Types = AdvertisingType
        switch type {
        case Types.flags:
            // More bytes may follow; none is defined.
            flags = Flags(
                rawValue: try ByteReader.decode(content) { (reader) throws(DecodeError) in try reader.read() })
        case Types.someServices16, Types.allServices16: try takeServices(content, size: 2)
        case Types.someServices32, Types.allServices32: try takeServices(content, size: 4)
        case Types.someServices128, Types.allServices128: try takeServices(content, size: 16)
        case Types.shortName, Types.completeName:
            let isShortened = type == Types.shortName
            if isShortened, localName?.isShortened == false { break }
            localName = LocalName(content.withUnsafeBytes { WireText.decode($0) }, isShortened: isShortened)
        case Types.transmitPower:
            transmitPower = try ByteReader.decode(content) { (reader) throws(DecodeError) in try reader.read() }
        case Types.serviceData16: try takeServiceData(content, size: 2)
        case Types.serviceData32: try takeServiceData(content, size: 4)
        case Types.serviceData128: try takeServiceData(content, size: 16)
        case Types.manufacturerData:
            let entry = try ByteReader.decode(content) { (reader) throws(DecodeError) in
                ManufacturerData(company: try reader.read(), bytes: reader.readRest())
            }
            manufacturerData.append(entry)
        default: others.append(Other(type: type, bytes: content))
        }
    }

    /// All or nothing: a list that ends inside of a UUID is garbage.
    private mutating func takeServices(_ content: [UInt8], size: Int) throws(DecodeError) {
        let list = try ByteReader.decode(content) { (reader) throws(DecodeError) in
            var list: [BluetoothUUID] = []
            while reader.remaining > 0 { list.append(try BluetoothUUID(&reader, size: size)) }
            return list
        }
        // At most 1,650 bytes come as one advertisement (extended advertising), so this stays small.
        for service in list where !services.contains(service) { services.append(service) }
    }

    private mutating func takeServiceData(_ content: [UInt8], size: Int) throws(DecodeError) {
        let entry = try ByteReader.decode(content) { (reader) throws(DecodeError) in
            ServiceData(service: try BluetoothUUID(&reader, size: size), bytes: reader.readRest())
        }
        serviceData.append(entry)
    }
}

extension BluetoothUUID {
    /// Reads 2, 4 or 16 bytes, the least significant first.
    fileprivate init(_ reader: inout ByteReader, size: Int) throws(DecodeError) {
        switch size {
        case 2: self.init(UInt32(try reader.read(UInt16.self)))
        case 4: self.init(try reader.read(UInt32.self))
        default:
            let low = try reader.read(UInt64.self)
            self.init(high: try reader.read(UInt64.self), low: low)
        }
    }
}
