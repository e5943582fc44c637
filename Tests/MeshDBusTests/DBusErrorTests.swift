// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshDBus
import Testing

struct DBusErrorTests {
    @Test func `an error is shown with its name and text`() {
        #expect(
            DBusError("org.bluez.Error.Failed", "le-connection-timeout").description
                == "org.bluez.Error.Failed: le-connection-timeout")
        #expect(DBusError("org.bluez.Error.NotReady").description == "org.bluez.Error.NotReady")
    }
}
