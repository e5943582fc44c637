// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshDBus
internal import MeshWire

/// An `Adapter1` as it was told.
struct BlueZAdapter: Sendable, Hashable {
    let path: String
    var address: BLEAddress?
    var isPowered = false
    /// `off-blocked` while rfkill holds it; empty before BlueZ 5.66.
    var powerState = ""
    var isDiscovering = false

    init(path: String) {
        self.path = path
    }

    /// Such as `hci0`.
    var name: String { path.split(separator: "/").last.map(String.init) ?? path }
    var isBlocked: Bool { powerState == "off-blocked" }

    mutating func update(_ properties: [String: DBusValue], invalidated: [String]) {
        if let text = properties["Address"]?.text { address = BLEAddress(text) }
        if let flag = properties["Powered"]?.flag { isPowered = flag }
        if let text = properties["PowerState"]?.text { powerState = text }
        if let flag = properties["Discovering"]?.flag { isDiscovering = flag }
    }
}

/// A `Device1` as it was told. Names and advertised data come from the air.
struct BlueZDevice: Sendable, Hashable {
    let path: String
    /// The path of its adapter.
    let adapter: String
    var address: BLEAddress?
    /// The whole name it advertises, or that was read from it. Empty while unknown.
    var name = ""
    var isConnected = false
    var areServicesResolved = false
    var isPaired = false
    /// Nil before BlueZ 5.66, which says `Paired` only.
    private var bonded: Bool?
    var isTrusted = false
    /// Nil while it is not being heard.
    var rssi: Int?
    var uuids: [BluetoothUUID] = []
    var manufacturerData: [UInt16: [UInt8]] = [:]
    var serviceData: [BluetoothUUID: [UInt8]] = [:]

    init(path: String) {
        self.path = path
        adapter = path.split(separator: "/").prefix(3).reduce(into: "") { $0 += "/" + $1 }
    }

    /// Whether keys are stored.
    var isBonded: Bool { bonded ?? isPaired }

    mutating func update(_ properties: [String: DBusValue], invalidated: [String]) {
        if let text = properties["Address"]?.text {
            let kind = address?.kind
            address = BLEAddress(text)
            address?.kind = kind
        }
        if let text = properties["AddressType"]?.text { address?.kind = BLEAddress.Kind(rawValue: text) }
        if let text = properties["Name"]?.text { name = text }
        if let flag = properties["Connected"]?.flag { isConnected = flag }
        if let flag = properties["ServicesResolved"]?.flag { areServicesResolved = flag }
        if let flag = properties["Paired"]?.flag { isPaired = flag }
        if let flag = properties["Bonded"]?.flag { bonded = flag }
        if let flag = properties["Trusted"]?.flag { isTrusted = flag }
        if let value = properties["RSSI"] { rssi = value.signalStrength }
        if let texts = properties["UUIDs"]?.texts { uuids = texts.compactMap { BluetoothUUID($0) } }
        if let entries = properties["ManufacturerData"]?.entries {
            manufacturerData = [:]
            for (company, bytes) in entries {
                if let company = company.number { manufacturerData[UInt16(truncatingIfNeeded: company)] = bytes.octets }
            }
        }
        if let entries = properties["ServiceData"]?.entries {
            serviceData = [:]
            for (uuid, bytes) in entries {
                if let uuid = uuid.text.flatMap({ BluetoothUUID($0) }) { serviceData[uuid] = bytes.octets }
            }
        }
        for name in invalidated where name == "RSSI" { rssi = nil }
    }

    /// Whether these are news that only an advertisement brings.
    static func isSighting(_ properties: [String: DBusValue]) -> Bool {
        properties["RSSI"] != nil || properties["ManufacturerData"] != nil || properties["ServiceData"] != nil
    }
}

/// A `GattService1` as it was told.
struct BlueZGATTService: Sendable, Hashable {
    let path: String
    let uuid: BluetoothUUID
    /// The path of its device.
    let device: String

    init?(path: String, _ properties: [String: DBusValue]) {
        guard let uuid = properties["UUID"]?.text.flatMap({ BluetoothUUID($0) }) else { return nil }
        self.path = path
        self.uuid = uuid
        device = properties["Device"]?.text ?? BlueZObjects.device(of: path)
    }
}

/// A `GattCharacteristic1` as it was told, but for its value.
struct BlueZCharacteristic: Sendable, Hashable {
    let path: String
    let uuid: BluetoothUUID
    /// The path of its service.
    let service: String
    let properties: GATTCharacteristic.Properties
    /// ATT_MTU; nil before BlueZ 5.62.
    var mtu: Int?
    var isNotifying = false

    init?(path: String, _ properties: [String: DBusValue]) {
        guard let uuid = properties["UUID"]?.text.flatMap({ BluetoothUUID($0) }) else { return nil }
        self.path = path
        self.uuid = uuid
        let parent = path.split(separator: "/").dropLast().reduce(into: "") { $0 += "/" + $1 }
        service = properties["Service"]?.text ?? parent
        let flags: [String: GATTCharacteristic.Properties] = [
            "read": .read, "write": .write, "write-without-response": .writeWithoutResponse, "notify": .notify,
            "indicate": .indicate,
        ]
        self.properties = (properties["Flags"]?.texts ?? []).reduce(into: []) { $0.formUnion(flags[$1] ?? []) }
        update(properties)
    }

    mutating func update(_ properties: [String: DBusValue]) {
        if let number = properties["MTU"]?.number { mtu = number }
        if let flag = properties["Notifying"]?.flag { isNotifying = flag }
    }
}
