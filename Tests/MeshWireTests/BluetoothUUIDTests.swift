// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire
import Testing

struct BluetoothUUIDTests {
    @Test func `the Nordic UART service is written as BlueZ writes it`() {
        #expect(BluetoothUUID.nordicUART.description == "6e400001-b5a3-f393-e0a9-e50e24dcca9e")
        #expect(BluetoothUUID("6E400001-B5A3-F393-E0A9-E50E24DCCA9E") == .nordicUART)
        #expect(BluetoothUUID.nordicUART.assigned == nil)
    }

    @Test func `an assigned number is a part of the base UUID`() {
        #expect(BluetoothUUID(0x180A).description == "0000180a-0000-1000-8000-00805f9b34fb")
        #expect(BluetoothUUID("180a") == BluetoothUUID(0x180A))
        #expect(BluetoothUUID(0x180A).assigned == 0x180A)
    }

    @Test(arguments: ["", "6e40", "6e4000x1", "6e400001-b5a3-f393-e0a9-e50e24dcca9", "+6e4"])
    func `what is no UUID is refused`(text: String) {
        #expect(BluetoothUUID(text) == (text == "6e40" ? BluetoothUUID(0x6E40) : nil))
    }
}
