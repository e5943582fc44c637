// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// What a server has: attributes by handle, made from services (Core Specification 5.4, Vol 3 Part G §3).
public struct AttributeDatabase: Sendable {
    /// What a link has to be like for an access.
    public enum Protection: Int, Sendable, Hashable, Comparable {
        case open
        case encrypted
        /// Encrypted with keys that a passkey has protected.
        case authenticated

        public static func < (one: Protection, other: Protection) -> Bool { one.rawValue < other.rawValue }
    }

    /// A characteristic to be served.
    public struct Characteristic: Sendable, Hashable {
        public var uuid: BluetoothUUID
        /// The declaration's bits (§3.3.1.1): read 0x02, write without response 0x04, write 0x08, notify 0x10, indicate
        /// 0x20.
        public var properties: UInt8
        public var value: [UInt8]
        public var readProtection: Protection
        /// Of writes, and of the CCCD.
        public var writeProtection: Protection

        public init(
            uuid: BluetoothUUID, properties: UInt8, value: [UInt8] = [], readProtection: Protection = .open,
            writeProtection: Protection = .open
        ) {
            self.uuid = uuid
            self.properties = properties
            self.value = value
            self.readProtection = readProtection
            self.writeProtection = writeProtection
        }
    }

    public struct Service: Sendable, Hashable {
        public var uuid: BluetoothUUID
        public var characteristics: [Characteristic]

        public init(uuid: BluetoothUUID, characteristics: [Characteristic]) {
            self.uuid = uuid
            self.characteristics = characteristics
        }
    }

    struct Attribute: Sendable {
        enum Kind: Sendable {
            case declaration
            case value
            /// Which characteristic value it configures.
            case clientConfiguration(of: UInt16)
        }

        var type: BluetoothUUID
        var kind: Kind
        var value: [UInt8]
        /// Nil: cannot be read.
        var readProtection: Protection?
        /// Nil: cannot be written with a response.
        var writeProtection: Protection?
        /// Nil: cannot be written without.
        var commandProtection: Protection?
        /// Of a service: its last attribute.
        var groupEnd: UInt16 = 0
        /// Of a characteristic's value.
        var properties: UInt8 = 0
        /// Of a characteristic's value: what its CCCD needs, and so what is sent by it.
        var subscriptionProtection = Protection.open
    }

    /// The first has handle 1.
    private(set) var attributes: [Attribute] = []

    /// Lays the services out one after the other.
    public init(_ services: [Service] = []) {
        for service in services { add(service) }
    }

    private mutating func add(_ service: Service) {
        let start = attributes.count
        attributes.append(
            Attribute(
                type: .primaryService, kind: .declaration, value: service.uuid.attributeBytes, readProtection: .open))
        for characteristic in service.characteristics { add(characteristic) }
        precondition(attributes.count < 0xFFFF)
        attributes[start].groupEnd = UInt16(attributes.count)
    }

    private mutating func add(_ characteristic: Characteristic) {
        precondition(characteristic.value.count <= 512)
        let valueHandle = UInt16(attributes.count + 2)
        let properties = characteristic.properties
        let declaration = [properties, UInt8(truncatingIfNeeded: valueHandle), UInt8(valueHandle >> 8)]
        attributes.append(
            Attribute(
                type: .characteristic, kind: .declaration, value: declaration + characteristic.uuid.attributeBytes,
                readProtection: .open))
        attributes.append(
            Attribute(
                type: characteristic.uuid, kind: .value, value: characteristic.value,
                readProtection: properties & 0x02 != 0 ? characteristic.readProtection : nil,
                writeProtection: properties & 0x08 != 0 ? characteristic.writeProtection : nil,
                commandProtection: properties & 0x04 != 0 ? characteristic.writeProtection : nil,
                properties: properties, subscriptionProtection: characteristic.writeProtection))
        guard properties & 0x30 != 0 else { return }
        attributes.append(
            Attribute(
                type: .clientConfiguration, kind: .clientConfiguration(of: valueHandle), value: [],
                readProtection: .open, writeProtection: characteristic.writeProtection))
    }

    /// The handle of a characteristic's value; nil if it is not served.
    public func valueHandle(of characteristic: BluetoothUUID, in service: BluetoothUUID) -> UInt16? {
        var isInside = false
        for (index, attribute) in attributes.enumerated() {
            if attribute.type == .primaryService { isInside = attribute.value == service.attributeBytes }
            if isInside, case .value = attribute.kind, attribute.type == characteristic { return UInt16(index + 1) }
        }
        return nil
    }

    /// Sets what a read of a value gives; at most 512 bytes.
    public mutating func setValue(_ value: [UInt8], at handle: UInt16) {
        guard value.count <= 512, let attribute = self[handle], case .value = attribute.kind else { return }
        attributes[Int(handle) - 1].value = value
    }

    /// What the Database Hash is computed of (§7.3.1): handles, types and, of declarations, values.
    public var hashInput: [UInt8] {
        var bytes: [UInt8] = []
        for (index, attribute) in attributes.enumerated() {
            if case .value = attribute.kind { continue }
            bytes += [UInt8(truncatingIfNeeded: index + 1), UInt8((index + 1) >> 8)] + attribute.type.attributeBytes
            if case .declaration = attribute.kind { bytes += attribute.value }
        }
        return bytes
    }

    subscript(handle: UInt16) -> Attribute? {
        handle > 0 && Int(handle) <= attributes.count ? attributes[Int(handle) - 1] : nil
    }

    /// The handles of a range that are there.
    func handles(_ range: ATTPacket.HandleRange) -> ClosedRange<UInt16>? {
        let last = min(Int(range.last), attributes.count)
        guard range.first > 0, Int(range.first) <= last else { return nil }
        return range.first...UInt16(last)
    }
}
