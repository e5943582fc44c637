// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import MeshHCITransport

struct HCIPortTests {
    @Test func `ports are read and written alike`() {
        #expect(HCIPort("unix:/run/x/hci0") == .unix(path: "/run/x/hci0"))
        #expect(HCIPort("tcp:127.0.0.1:9000") == .tcp(host: "127.0.0.1", port: 9000))
        #expect(HCIPort("tcp:[::1]:9000") == .tcp(host: "::1", port: 9000))
        #expect(HCIPort("hci0") == .adapter(index: 0))
        #expect(HCIPort("hci65534") == .adapter(index: 65_534))
        for text in ["hci0", "hci12", "unix:/run/x/hci0", "tcp:roof.example:1", "tcp:[fe80::1%eth0]:9"] {
            #expect(HCIPort(text).map { "\($0)" } == text)
        }
    }

    @Test(arguments: [
        "", "hci", "hci-1", "hci01", "hci+1", "hci65535", "HCI0", "hci0 ", "hci0:", "unix:", "tcp:", "tcp:9000",
        "tcp::9000", "tcp:host:0", "tcp:host:65536", "udp:a:1",
    ])
    func `what is no port is refused`(text: String) {
        #expect(HCIPort(text) == nil)
    }
}
