// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshDaemon

struct ControllerTextTests {
    @Test func `a controller is shown with names for its numbers, and without control characters`() {
        let text = ControllerText.text([
            "controller": "hci1", "in_use": true, "address": "00:AA:01:01:00:42/public", "hci_version": 9,
            "hci_version_name": "5.0", "hci_revision": 1, "link_version": 9, "link_subversion": 2,
            "manufacturer": 1_521,
            "manufacturer_name": "Linux Foundation\u{1B}", "dual_mode": false,
            "buffers": ["count": 1, "length": 192, "shared": true], "features": ["encryption", "privacy"],
            "feature_bits": "0x41", "commands": "legacy", "data_length": 27, "accept_list": 8, "resolving_list": 0,
            "quirks": ["it has one buffer"],
        ])
        #expect(
            text == """
                controller    hci1, in use
                address       00:AA:01:01:00:42/public
                manufacturer  Linux Foundation\u{FFFD} (1521)
                version       5.0 (9), revision 1, link layer 9.2
                kind          LE
                buffers       1 of 192 bytes, shared with BR/EDR
                commands      legacy
                features      encryption, privacy
                data length   27 bytes
                lists         accept 8, resolving 0
                quirk         it has one buffer

                """)
    }

    @Test func `what a module leaves out is a dash`() {
        #expect(ControllerText.text([:]).hasPrefix("controller    -\n"))
    }
}
