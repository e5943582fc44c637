// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What a Bluetooth LE device says of itself, to everybody: advertising data and scan responses (Core Specification,
/// Vol 3 Part C §11; Supplement Part A §1).
///
/// A sequence of structures: a length byte, a type byte, content. Decoding never fails: what comes from the air is read
/// as far as it makes sense, and the rest is passed over and counted. Several advertisements put one behind the other
/// (an advertisement and its scan response) are one.
public struct AdvertisingData: Sendable, Hashable {
    /// Bits of the flags (Supplement Part A §1.3).
    public struct Flags: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8

        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        public static let limitedDiscoverable = Flags(rawValue: 1 << 0)
        public static let generalDiscoverable = Flags(rawValue: 1 << 1)
        /// Speaks LE only, not BR/EDR.
        public static let lowEnergyOnly = Flags(rawValue: 1 << 2)
    }

    /// A name; a shortened one is the beginning of a longer name.
    public struct LocalName: Sendable, Hashable {
        public var text: String
        public var isShortened: Bool

        public init(_ text: String, isShortened: Bool = false) {
            self.text = text
            self.isShortened = isShortened
        }
    }

    /// What a manufacturer puts there, by its company identifier.
    public struct ManufacturerData: Sendable, Hashable {
        public var company: UInt16
        public var bytes: [UInt8]

        public init(company: UInt16, bytes: [UInt8]) {
            self.company = company
            self.bytes = bytes
        }
    }

    /// What a service says without a connection.
    public struct ServiceData: Sendable, Hashable {
        public var service: BluetoothUUID
        public var bytes: [UInt8]

        public init(service: BluetoothUUID, bytes: [UInt8]) {
            self.service = service
            self.bytes = bytes
        }
    }

    /// A structure of a type that is not read here.
    public struct Other: Sendable, Hashable {
        public var type: UInt8
        public var bytes: [UInt8]

        public init(type: UInt8, bytes: [UInt8]) {
            self.type = type
            self.bytes = bytes
        }
    }

    public var flags: Flags?
    /// The services, each once, in the order they come in.
    public var services: [BluetoothUUID] = []
    /// A complete name wins over a shortened one.
    public var localName: LocalName?
    /// In dBm, at one metre or at the antenna, as the device sees it.
    public var transmitPower: Int8?
    public var manufacturerData: [ManufacturerData] = []
    public var serviceData: [ServiceData] = []
    public var others: [Other] = []

    public init() {}
}

/// The types of structures that are read (Bluetooth Assigned Numbers §2.3).
enum AdvertisingType {
    static let flags: UInt8 = 0x01
    static let someServices16: UInt8 = 0x02
    static let allServices16: UInt8 = 0x03
    static let someServices32: UInt8 = 0x04
    static let allServices32: UInt8 = 0x05
    static let someServices128: UInt8 = 0x06
    static let allServices128: UInt8 = 0x07
    static let shortName: UInt8 = 0x08
    static let completeName: UInt8 = 0x09
    static let transmitPower: UInt8 = 0x0A
    static let serviceData16: UInt8 = 0x16
    static let serviceData32: UInt8 = 0x20
    static let serviceData128: UInt8 = 0x21
    static let manufacturerData: UInt8 = 0xFF
}
