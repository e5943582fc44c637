// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The payload of ``ModuleMessage/Kind/found``: a device as it was seen. The signal strength is the message's code.
///
/// Two lengths of 16 bits, little-endian, of address and name; address; name; the advertisement is the rest.
public struct ModuleSighting: Sendable, Hashable {
    /// UTF-8 as the module says, which nobody has checked.
    public var address: [UInt8]
    /// UTF-8 as it came from the air, which nobody has checked.
    public var name: [UInt8]
    public var advertisement: [UInt8]

    public init(address: [UInt8], name: [UInt8], advertisement: [UInt8]) {
        self.address = address
        self.name = name
        self.advertisement = advertisement
    }

    public init(decoding bytes: UnsafeRawBufferPointer) throws(DecodeError) {
        var reader = ByteReader(bytes)
        let address = try reader.read(UInt16.self)
        let name = try reader.read(UInt16.self)
        self.address = try reader.readBytes(Int(address))
        self.name = try reader.readBytes(Int(name))
        advertisement = reader.readRest()
    }

    /// Address and name are cut to 4,096 bytes each, the advertisement to 2,048.
    public var encoded: [UInt8] {
        let (address, name) = (address.prefix(4_096), name.prefix(4_096))
        var bytes: [UInt8] = []
        bytes.reserveCapacity(4 + address.count + name.count + min(advertisement.count, 2_048))
        for count in [address.count, name.count] {
            bytes.append(UInt8(truncatingIfNeeded: count))
            bytes.append(UInt8(truncatingIfNeeded: count >> 8))
        }
        return bytes + address + name + advertisement.prefix(2_048)
    }
}
