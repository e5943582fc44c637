// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// The address of a Bluetooth LE device, with its kind: the same six bytes public and random are two devices (Core
/// Specification 5.4, Vol 6 Part B §1.3).
public struct DeviceAddress: Sendable, Hashable {
    /// Where an address comes from; the values are those of HCI.
    public enum Kind: UInt8, Sendable, Hashable {
        /// Assigned by the IEEE.
        case `public` = 0
        /// Made by the device.
        case random = 1
    }

    /// The 48 bits as people write them: the first pair of digits is the most significant byte.
    public let value: UInt64
    public let kind: Kind

    /// Takes the low 48 bits of `value`.
    public init(_ value: UInt64, _ kind: Kind) {
        self.value = value & 0xFFFF_FFFF_FFFF
        self.kind = kind
    }

    /// The six bytes as HCI and SMP send them, the least significant first.
    public var wireBytes: [UInt8] { (0..<6).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }

    /// Whether the device can be recognised only with its identity resolving key (Vol 6 Part B §1.3.2.2).
    public var isResolvablePrivate: Bool { kind == .random && value >> 46 == 0b01 }

    /// Whether this is a random address that the device keeps (Vol 6 Part B §1.3.2.1).
    public var isStaticRandom: Bool { kind == .random && value >> 46 == 0b11 }

    /// A static random address from 46 random bits (Vol 6 Part B §1.3.2.1). Nil if these are all zeros or all ones,
    /// which the specification excludes.
    public static func staticRandom(_ bits: UInt64) -> DeviceAddress? {
        let random = bits & 0x3FFF_FFFF_FFFF
        guard random != 0, random != 0x3FFF_FFFF_FFFF else { return nil }
        return DeviceAddress(random | 0b11 << 46, .random)
    }
}

extension DeviceAddress: CustomStringConvertible {
    /// Such as `C0:11:22:33:44:55/random`.
    public var description: String {
        BluetoothAddressText.text(value) + (kind == .public ? "/public" : "/random")
    }
}

extension ByteReader {
    /// The six bytes of an address.
    mutating func readAddressValue() throws(DecodeError) -> UInt64 {
        let low = UInt64(try read(UInt32.self))
        return low | UInt64(try read(UInt16.self)) << 32
    }

    /// An address whose kind stands before it, as in HCI events. Controllers that resolve addresses add 2 to the kind:
    /// the address is an identity then (Vol 4 Part E §7.7.65.10).
    mutating func readKindAndAddress() throws(DecodeError) -> (address: DeviceAddress, isResolved: Bool) {
        let start = offset
        let kind = try read(UInt8.self)
        let value = try readAddressValue()
        // 0xFF: an anonymous advertiser. 0xFE: a private address that the controller could not resolve.
        guard kind <= 3 || kind >= 0xFE else { throw DecodeError(.invalidField("address kind"), offset: start) }
        return (DeviceAddress(value, kind == 0 || kind == 2 ? .public : .random), kind == 2 || kind == 3)
    }
}

extension ByteWriter {
    mutating func write(_ address: DeviceAddress) { write(contentsOf: address.wireBytes) }
}
