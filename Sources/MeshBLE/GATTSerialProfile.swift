// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// How a device carries frames in GATT: one service with a characteristic that the host writes to and one that notifies.
public struct GATTSerialProfile: Sendable, Hashable {
    /// As a config names it.
    public var name: String
    public var service: BluetoothUUID
    /// The host writes frames here. Named from the device's side: it receives.
    public var receive: BluetoothUUID
    /// The device notifies frames here: it transmits.
    public var transmit: BluetoothUUID

    public init(name: String, service: BluetoothUUID, receive: BluetoothUUID, transmit: BluetoothUUID) {
        self.name = name
        self.service = service
        self.receive = receive
        self.transmit = transmit
    }

    /// Nordic UART Service, which MeshCore companions use (`src/helpers/esp32/SerialBLEInterface.cpp`, firmware d929643).
    public static let nordicUART = GATTSerialProfile(
        name: "nordic-uart", service: nordic(0x0001), receive: nordic(0x0002), transmit: nordic(0x0003))

    private static func nordic(_ number: UInt16) -> BluetoothUUID {
        BluetoothUUID(high: 0x6E40_0000_B5A3_F393 | UInt64(number) << 32, low: 0xE0A9_E50E_24DC_CA9E)
    }
}
