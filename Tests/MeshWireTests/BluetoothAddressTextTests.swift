// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire
import Testing

struct BluetoothAddressTextTests {
    @Test func `an address is read in any case and written in upper case`() {
        #expect(BluetoothAddressText.value("c0:11:22:33:4f:05") == 0xC011_2233_4F05)
        #expect(BluetoothAddressText.text(0xC011_2233_4F05) == "C0:11:22:33:4F:05")
        #expect(BluetoothAddressText.text(1) == "00:00:00:00:00:01")
    }

    @Test(arguments: [
        "", "c0:11:22:33:44", "c0:11:22:33:44:5", "c01122334455", "c0:11:22:33:44:+5", "c0:11:22:33:44:55:66",
    ])
    func `what is no address is refused`(text: String) {
        #expect(BluetoothAddressText.value(text) == nil)
    }
}
