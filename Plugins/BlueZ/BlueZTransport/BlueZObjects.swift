// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshDBus

/// What bluetoothd says there is: adapters, devices, services and characteristics, kept by the signals of its object tree.
///
/// A value; reads nothing and calls nobody. The key of everything is the object path: a device's address may change when it is
/// paired (from a private one to its identity), its path does not.
struct BlueZObjects: Sendable {
    /// What a signal changed, for whoever waits for it.
    enum Change: Sendable, Hashable {
        case adapter(path: String)
        case deviceAppeared(path: String)
        /// `isSighting`: it was heard.
        case device(path: String, isSighting: Bool)
        case deviceVanished(path: String)
        /// A service or characteristic appeared, vanished or changed.
        case gatt(device: String)
    }

    private(set) var adapters: [String: BlueZAdapter] = [:]
    private(set) var devices: [String: BlueZDevice] = [:]
    private(set) var services: [String: BlueZGATTService] = [:]
    private(set) var characteristics: [String: BlueZCharacteristic] = [:]

    // MARK: Feeding

    /// Takes the reply of `GetManagedObjects` in the place of all that was known.
    mutating func replace(with reply: DBusValue) {
        self = BlueZObjects()
        for (path, interfaces) in reply.entries ?? [:] {
            if let path = path.text { _ = interfacesAdded(path, interfaces) }
        }
    }

    /// `InterfacesAdded`.
    mutating func interfacesAdded(_ path: String, _ interfaces: DBusValue) -> [Change] {
        var changes: [Change] = []
        for (interface, properties) in interfaces.entries ?? [:] {
            guard let interface = interface.text, let properties = properties.properties else { continue }
            switch interface {
            case BlueZNames.adapter:
                var adapter = BlueZAdapter(path: path)
                adapter.update(properties, invalidated: [])
                adapters[path] = adapter
                changes.append(.adapter(path: path))
            case BlueZNames.device:
                var device = BlueZDevice(path: path)
                device.update(properties, invalidated: [])
                devices[path] = device
                changes.append(.deviceAppeared(path: path))
            case BlueZNames.gattService:
                guard let service = BlueZGATTService(path: path, properties) else { continue }
                services[path] = service
                changes.append(.gatt(device: service.device))
            case BlueZNames.characteristic:
                guard let characteristic = BlueZCharacteristic(path: path, properties) else { continue }
                characteristics[path] = characteristic
                changes.append(.gatt(device: Self.device(of: path)))
            default: break
            }
        }
        return changes
    }

    /// `InterfacesRemoved`.
    mutating func interfacesRemoved(_ path: String, _ interfaces: [String]) -> [Change] {
        var changes: [Change] = []
        for interface in interfaces {
            switch interface {
            case BlueZNames.adapter where adapters.removeValue(forKey: path) != nil:
                changes.append(.adapter(path: path))
            case BlueZNames.device where devices.removeValue(forKey: path) != nil:
                changes.append(.deviceVanished(path: path))
            case BlueZNames.gattService where services.removeValue(forKey: path) != nil,
                BlueZNames.characteristic where characteristics.removeValue(forKey: path) != nil:
                changes.append(.gatt(device: Self.device(of: path)))
            default: break
            }
        }
        return changes
    }

    /// `PropertiesChanged`. A characteristic's value is nobody's business here.
    mutating func propertiesChanged(
        _ path: String, _ interface: String, _ changed: DBusValue, invalidated: [String] = []
    ) -> [Change] {
        switch interface {
        case BlueZNames.adapter:
            guard adapters[path] != nil, let properties = changed.properties else { return [] }
            adapters[path]?.update(properties, invalidated: invalidated)
            return [.adapter(path: path)]
        case BlueZNames.device:
            guard devices[path] != nil, let properties = changed.properties else { return [] }
            devices[path]?.update(properties, invalidated: invalidated)
            return [.device(path: path, isSighting: BlueZDevice.isSighting(properties))]
        case BlueZNames.characteristic:
            guard characteristics[path] != nil, let properties = changed.properties else { return [] }
            characteristics[path]?.update(properties)
            return [.gatt(device: Self.device(of: path))]
        default: return []
        }
    }

    // MARK: Asking

    /// The adapter that is meant, if it is there.
    func adapter(_ choice: AdapterChoice) -> BlueZAdapter? {
        switch choice {
        case .named(let name): adapters.values.first { $0.name == name }
        case .address(let address): adapters.values.first { $0.address?.value == address.value }
        case .firstPowered:
            adapters.values.min { ($0.isPowered ? 0 : 1, $0.path) < ($1.isPowered ? 0 : 1, $1.path) }
        }
    }

    /// The device that is meant, if this adapter knows it. Of several that call themselves alike: the connected one, then the
    /// one whose keys are stored, then the nearest.
    func device(_ target: BLETarget, on adapter: String) -> BlueZDevice? {
        switch target {
        case .address(let address):
            let path = adapter + "/dev_" + address.text.replacing(":", with: "_")
            if let device = devices[path], device.address?.matches(address) == true { return device }
            return devices.values.first { $0.adapter == adapter && $0.address?.matches(address) == true }
        case .name(let name):
            func rank(_ device: BlueZDevice) -> (Int, Int, Int, String) {
                (device.isConnected ? 0 : 1, device.isBonded ? 0 : 1, -(device.rssi ?? -1_000), device.path)
            }
            return devices.values.filter { $0.adapter == adapter && $0.name == name }.min { rank($0) < rank($1) }
        }
    }

    /// The services of a device, by their handles.
    func services(of device: String) -> [BlueZGATTService] {
        services.values.filter { $0.device == device }.sorted { $0.path < $1.path }
    }

    /// The characteristics of a service, by their handles.
    func characteristics(of service: String) -> [BlueZCharacteristic] {
        characteristics.values.filter { $0.service == service }.sorted { $0.path < $1.path }
    }

    /// `/org/bluez/hci0/dev_X/service0001/char0002` lies below `/org/bluez/hci0/dev_X`.
    static func device(of path: String) -> String {
        path.split(separator: "/", omittingEmptySubsequences: true).prefix(4).reduce(into: "") { $0 += "/" + $1 }
    }
}

/// Which local adapter is meant.
enum AdapterChoice: Sendable, Hashable {
    case firstPowered
    /// Such as `hci0`.
    case named(String)
    case address(BLEAddress)

    /// Reads what a config says.
    init(_ text: String) {
        if text.isEmpty {
            self = .firstPowered
        } else if let address = BLEAddress(text) {
            self = .address(address)
        } else {
            self = .named(text)
        }
    }

    /// For people.
    var text: String {
        switch self {
        case .firstPowered: "Bluetooth adapter"
        case .named(let name): name
        case .address(let address): "adapter \(address.text)"
        }
    }
}
