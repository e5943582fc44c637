// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshDBus
import Testing

@testable import MeshBlueZTransport

struct BlueZObjectsTests {
    @Test(arguments: [DBusValue.int16(.min), .int16(127), .int64(.max), .int64(.min), .int32(-60), .string("-60")])
    func `a strength that nobody can have measured is none`(value: DBusValue) {
        var device = BlueZDevice(path: "/org/bluez/hci0/dev_C0_11_22_33_44_55")
        device.update(["RSSI": .int16(-60)], invalidated: [])
        #expect(device.rssi == -60)
        device.update(["RSSI": value], invalidated: [])
        #expect(device.rssi == nil)
    }

    private static let adapter = "/org/bluez/hci0"
    private static let device = "/org/bluez/hci0/dev_C0_11_22_33_44_55"
    private static let service = device + "/service0010"
    private static let characteristic = service + "/char0011"

    /// What bluetoothd 5.66 tells of an adapter with one radio that is connected.
    static func tree() -> BlueZObjects {
        var objects = BlueZObjects()
        objects.replace(
            with: tree([
                adapter: [
                    BlueZNames.adapter: [
                        "Address": .string("00:AA:BB:CC:DD:00"), "Powered": .bool(true), "PowerState": .string("on"),
                        "Discovering": .bool(false),
                    ]
                ],
                device: [
                    BlueZNames.device: [
                        "Address": .string("C0:11:22:33:44:55"), "AddressType": .string("random"),
                        "Name": .string("Roof"), "Connected": .bool(true), "ServicesResolved": .bool(true),
                        "Paired": .bool(true), "Bonded": .bool(false), "Trusted": .bool(true), "RSSI": .int16(-71),
                        "UUIDs": .array(element: "s", [.string("6e400001-b5a3-f393-e0a9-e50e24dcca9e")]),
                        "ManufacturerData": .dictionary(
                            key: "q", value: "v", [.uint16(0x0BC1): .variant(.bytes([1, 2]))]),
                    ]
                ],
                service: [
                    BlueZNames.gattService: [
                        "UUID": .string("6e400001-b5a3-f393-e0a9-e50e24dcca9e"), "Device": .objectPath(device),
                    ]
                ],
                characteristic: [
                    BlueZNames.characteristic: [
                        "UUID": .string("6e400002-b5a3-f393-e0a9-e50e24dcca9e"), "Service": .objectPath(service),
                        "Flags": .array(element: "s", [.string("write"), .string("write-without-response")]),
                        "MTU": .uint16(185),
                    ]
                ],
            ]))
        return objects
    }

    private static func tree(_ objects: [String: [String: [String: DBusValue]]]) -> DBusValue {
        var entries: [DBusValue: DBusValue] = [:]
        for (path, object) in objects { entries[.objectPath(path)] = interfaces(object) }
        return .dictionary(key: "o", value: "a{sa{sv}}", entries)
    }

    private static func interfaces(_ object: [String: [String: DBusValue]]) -> DBusValue {
        var interfaces: [DBusValue: DBusValue] = [:]
        for (interface, properties) in object { interfaces[.string(interface)] = .options(properties) }
        return .dictionary(key: "s", value: "a{sv}", interfaces)
    }

    @Test func `the whole tree is read`() throws {
        let objects = Self.tree()
        let adapter = try #require(objects.adapter(.named("hci0")))
        #expect(adapter.isPowered && !adapter.isBlocked)
        let device = try #require(objects.devices[Self.device])
        #expect(device.address == BLEAddress("C0:11:22:33:44:55/random"))
        #expect(device.name == "Roof" && device.rssi == -71 && device.isConnected && device.areServicesResolved)
        #expect(device.isPaired && !device.isBonded && device.isTrusted)
        #expect(device.manufacturerData == [0x0BC1: [1, 2]])
        #expect(device.uuids == [GATTSerialProfile.nordicUART.service])
        #expect(objects.services(of: Self.device).map(\.path) == [Self.service])
        let characteristic = try #require(objects.characteristics(of: Self.service).first)
        #expect(characteristic.properties == [.write, .writeWithoutResponse] && characteristic.mtu == 185)
    }

    @Test func `before Bonded there was only Paired`() {
        var device = BlueZDevice(path: Self.device)
        device.update(["Paired": .bool(true)], invalidated: [])
        #expect(device.isBonded)
    }

    @Test(arguments: [
        ("", true), ("hci0", true), ("hci1", false), ("00:AA:BB:CC:DD:00", true), ("00:aa:bb:cc:dd:01", false),
    ])
    func `an adapter is found by name or address`(text: String, isFound: Bool) {
        #expect((Self.tree().adapter(AdapterChoice(text)) != nil) == isFound)
    }

    @Test func `without a choice the first adapter that is on is taken`() {
        var objects = Self.tree()
        _ = objects.interfacesAdded(
            "/org/bluez/hci1", Self.interfaces([BlueZNames.adapter: ["Powered": .bool(true)]]))
        #expect(objects.adapter(.firstPowered)?.name == "hci0")
        _ = objects.propertiesChanged(Self.adapter, BlueZNames.adapter, .options(["Powered": .bool(false)]))
        #expect(objects.adapter(.firstPowered)?.name == "hci1")
        _ = objects.propertiesChanged("/org/bluez/hci1", BlueZNames.adapter, .options(["Powered": .bool(false)]))
        #expect(objects.adapter(.firstPowered)?.name == "hci0")
    }

    @Test func `the kind of an address counts where it is given`() throws {
        let objects = Self.tree()
        for (text, isFound) in [
            ("C0:11:22:33:44:55", true), ("C0:11:22:33:44:55/random", true), ("C0:11:22:33:44:55/public", false),
        ] {
            let address = try #require(BLEAddress(text))
            #expect((objects.device(.address(address), on: Self.adapter) != nil) == isFound)
            #expect(objects.device(.address(address), on: "/org/bluez/hci1") == nil)
        }
    }

    @Test func `a device keeps its path when pairing shows its identity`() throws {
        var objects = Self.tree()
        _ = objects.propertiesChanged(
            Self.device, BlueZNames.device,
            .options(["Address": .string("00:11:22:33:44:99"), "AddressType": .string("public")]))
        let address = try #require(BLEAddress("00:11:22:33:44:99/public"))
        #expect(objects.device(.address(address), on: Self.adapter)?.path == Self.device)
        #expect(try objects.device(.address(#require(BLEAddress("C0:11:22:33:44:55"))), on: Self.adapter) == nil)
    }

    @Test func `of several devices with one name the connected one is meant, then the bonded, then the nearest`() {
        var objects = Self.tree()
        let other = "/org/bluez/hci0/dev_C0_11_22_33_44_66"
        _ = objects.interfacesAdded(
            other, Self.interfaces([BlueZNames.device: ["Name": .string("Roof"), "RSSI": .int16(-40)]]))
        #expect(objects.device(.name("Roof"), on: Self.adapter)?.path == Self.device)
        _ = objects.propertiesChanged(Self.device, BlueZNames.device, .options(["Connected": .bool(false)]))
        #expect(objects.device(.name("Roof"), on: Self.adapter)?.path == other)
        _ = objects.propertiesChanged(Self.device, BlueZNames.device, .options(["Bonded": .bool(true)]))
        #expect(objects.device(.name("Roof"), on: Self.adapter)?.path == Self.device)
        #expect(objects.device(.name("Roo"), on: Self.adapter) == nil)
    }

    @Test func `what is taken away is gone`() {
        var objects = Self.tree()
        expect(
            objects.interfacesRemoved(Self.characteristic, [BlueZNames.characteristic, BlueZNames.properties]),
            is: [.gatt(device: Self.device)])
        #expect(objects.characteristics(of: Self.service).isEmpty)
        expect(objects.interfacesRemoved(Self.device, [BlueZNames.device]), is: [.deviceVanished(path: Self.device)])
        expect(objects.interfacesRemoved(Self.device, [BlueZNames.device]), is: [])
        expect(objects.interfacesRemoved(Self.adapter, [BlueZNames.adapter]), is: [.adapter(path: Self.adapter)])
        #expect(objects.adapter(.firstPowered) == nil)
    }

    @Test func `a signal strength that is not told any more is unknown`() {
        var objects = Self.tree()
        let changes = objects.propertiesChanged(Self.device, BlueZNames.device, .options([:]), invalidated: ["RSSI"])
        #expect(changes == [.device(path: Self.device, isSighting: false)])
        #expect(objects.devices[Self.device]?.rssi == nil)
    }

    @Test func `changes of what is not known change nothing`() {
        var objects = BlueZObjects()
        for interface in [BlueZNames.adapter, BlueZNames.device, BlueZNames.characteristic, "org.bluez.Battery1"] {
            expect(objects.propertiesChanged(Self.device, interface, .options(["RSSI": .int16(-3)])), is: [])
        }
        #expect(objects.devices.isEmpty)
    }

    @Test func `values of other types than expected are passed over`() {
        var objects = Self.tree()
        _ = objects.propertiesChanged(
            Self.device, BlueZNames.device,
            .options(["Name": .uint32(7), "RSSI": .string("loud"), "Connected": .string("yes"), "UUIDs": .bool(true)]))
        #expect(objects.devices[Self.device]?.name == "Roof")
        #expect(objects.devices[Self.device]?.isConnected == true)
    }
}
