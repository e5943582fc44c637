// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshDBus

/// Names that bluetoothd and the bus use (BlueZ `doc/org.bluez.*.rst`; D-Bus Specification, "Standard Interfaces").
enum BlueZNames {
    static let service = "org.bluez"
    static let adapter = "org.bluez.Adapter1"
    static let device = "org.bluez.Device1"
    static let gattService = "org.bluez.GattService1"
    static let characteristic = "org.bluez.GattCharacteristic1"
    static let agentManager = "org.bluez.AgentManager1"
    static let agent = "org.bluez.Agent1"
    static let objectManager = "org.freedesktop.DBus.ObjectManager"
    static let properties = "org.freedesktop.DBus.Properties"
    static let bus = "org.freedesktop.DBus"

    /// The property of a characteristic that notifications change.
    static let value = DBusValue.string("Value")
    /// The object of AgentManager1.
    static let agentManagerPath = "/org/bluez"
}
