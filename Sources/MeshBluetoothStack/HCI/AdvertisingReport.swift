// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// One advertisement that a scanner heard (Core Specification 5.4, Vol 4 Part E §7.7.65.2, §7.7.65.13).
public struct AdvertisingReport: Sendable, Hashable {
    /// What kind of packet it was: the bits of the extended report's event type.
    public struct Kind: OptionSet, Sendable, Hashable {
        public let rawValue: UInt16

        public init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        public static let connectable = Kind(rawValue: 1 << 0)
        public static let scannable = Kind(rawValue: 1 << 1)
        public static let directed = Kind(rawValue: 1 << 2)
        public static let scanResponse = Kind(rawValue: 1 << 3)
        public static let legacy = Kind(rawValue: 1 << 4)
        /// More of the data comes in another report.
        public static let incomplete = Kind(rawValue: 1 << 5)
        /// The rest of the data is lost.
        public static let truncated = Kind(rawValue: 1 << 6)
    }

    public var kind: Kind
    public var address: DeviceAddress
    /// The controller resolved the address: it is the device's identity.
    public var isResolved: Bool
    /// dBm; nil where the controller does not know it.
    public var rssi: Int8?
    /// To be read with `AdvertisingData` of MeshWire.
    public var data: [UInt8]

    public init(kind: Kind, address: DeviceAddress, isResolved: Bool = false, rssi: Int8?, data: [UInt8]) {
        self.kind = kind
        self.address = address
        self.isResolved = isResolved
        self.rssi = rssi
        self.data = data
    }

    /// Several reports lie one after the other, each with its data in it; the tables of the specification list arrays,
    /// which §5.2 sends interleaved.
    static func readLegacy(_ reader: inout ByteReader) throws(DecodeError) -> [AdvertisingReport] {
        var reports: [AdvertisingReport] = []
        for _ in 0..<(try reader.read(UInt8.self)) {
            let type = try reader.read(UInt8.self)
            let peer = try reader.readKindAndAddress()
            let data = try reader.readBytes(Int(try reader.read(UInt8.self)))
            let rssi = try reader.readRSSI()
            // A later type is a packet that this host has no use for.
            guard let kind = kind(legacyType: type) else { continue }
            reports.append(
                AdvertisingReport(
                    kind: kind, address: peer.address, isResolved: peer.isResolved, rssi: rssi, data: data))
        }
        return reports
    }

    /// Table 7.1 of §7.7.65.13 says which bits the five legacy types have.
    private static func kind(legacyType: UInt8) -> Kind? {
        switch legacyType {
        case 0: [.legacy, .connectable, .scannable]
        case 1: [.legacy, .connectable, .directed]
        case 2: [.legacy, .scannable]
        case 3: [.legacy]
        case 4: [.legacy, .scannable, .scanResponse]
        default: nil
        }
    }

    static func readDirected(_ reader: inout ByteReader) throws(DecodeError) -> [AdvertisingReport] {
        var reports: [AdvertisingReport] = []
        for _ in 0..<(try reader.read(UInt8.self)) {
            try reader.skip(1)
            let peer = try reader.readKindAndAddress()
            try reader.skip(7)
            reports.append(
                AdvertisingReport(
                    kind: [.legacy, .connectable, .directed], address: peer.address, isResolved: peer.isResolved,
                    rssi: try reader.readRSSI(), data: []))
        }
        return reports
    }

    static func readExtended(_ reader: inout ByteReader) throws(DecodeError) -> [AdvertisingReport] {
        var reports: [AdvertisingReport] = []
        for _ in 0..<(try reader.read(UInt8.self)) {
            let kind = Kind(rawValue: try reader.read())
            let peer = try reader.readKindAndAddress()
            try reader.skip(4)  // modes, set, transmit power
            let rssi = try reader.readRSSI()
            try reader.skip(9)  // periodic interval, whom it was directed to
            let data = try reader.readBytes(Int(try reader.read(UInt8.self)))
            reports.append(
                AdvertisingReport(
                    kind: kind, address: peer.address, isResolved: peer.isResolved, rssi: rssi, data: data))
        }
        return reports
    }
}

extension ByteReader {
    /// 127 stands for "unknown".
    fileprivate mutating func readRSSI() throws(DecodeError) -> Int8? {
        let value = try read(Int8.self)
        return value == 127 ? nil : value
    }
}
