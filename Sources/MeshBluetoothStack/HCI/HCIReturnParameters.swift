// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// What commands return beside their status: the parameters of Command Complete without the first byte (Core
/// Specification 5.4, Vol 4 Part E §7.4, §7.8).
enum HCIReturnParameters {
    /// §7.4.1
    struct LocalVersion {
        var hciVersion: UInt8
        var hciRevision: UInt16
        var linkVersion: UInt8
        var company: UInt16
        var linkSubversion: UInt16
    }

    static func localVersion(_ bytes: [UInt8]) throws(DecodeError) -> LocalVersion {
        try ByteReader.decode(bytes) { (reader) throws(DecodeError) in
            try LocalVersion(
                hciVersion: reader.read(), hciRevision: reader.read(), linkVersion: reader.read(),
                company: reader.read(),
                // For people only, so its lack is no reason to refuse a controller.
                linkSubversion: reader.remaining >= 2 ? reader.read() : 0)
        }
    }

    /// §7.4.6
    static func address(_ bytes: [UInt8]) throws(DecodeError) -> DeviceAddress {
        try ByteReader.decode(bytes) { (reader) throws(DecodeError) in
            DeviceAddress(try reader.readAddressValue(), .public)
        }
    }

    /// §7.8.3, §7.4.3
    static func features(_ bytes: [UInt8]) throws(DecodeError) -> UInt64 {
        try ByteReader.decode(bytes) { (reader) throws(DecodeError) in try reader.read() }
    }

    /// §7.8.2, both versions: what follows is of isochronous channels.
    static func leBuffers(_ bytes: [UInt8]) throws(DecodeError) -> (length: Int, count: Int) {
        try ByteReader.decode(bytes) { (reader) throws(DecodeError) in
            (Int(try reader.read(UInt16.self)), Int(try reader.read(UInt8.self)))
        }
    }

    /// §7.4.5
    static func sharedBuffers(_ bytes: [UInt8]) throws(DecodeError) -> (length: Int, count: Int) {
        try ByteReader.decode(bytes) { (reader) throws(DecodeError) in
            let length = Int(try reader.read(UInt16.self))
            try reader.skip(1)
            return (length, Int(try reader.read(UInt16.self)))
        }
    }

    /// §7.8.14, §7.8.41
    static func size(_ bytes: [UInt8]) throws(DecodeError) -> Int {
        try ByteReader.decode(bytes) { (reader) throws(DecodeError) in Int(try reader.read(UInt8.self)) }
    }

    /// §7.8.46: what it can send comes first.
    static func maximumDataLength(_ bytes: [UInt8]) throws(DecodeError) -> DataLength {
        try ByteReader.decode(bytes) { (reader) throws(DecodeError) in
            DataLength(octets: try reader.read(), microseconds: try reader.read())
        }
    }
}
