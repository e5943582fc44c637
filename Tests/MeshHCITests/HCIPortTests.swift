// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshLoop
import Testing

@testable import MeshHCITransport

struct HCIPortTests {
    @Test func `ports are read and written alike`() {
        #expect(HCIPort("unix:/run/x/hci0") == .unix(path: "/run/x/hci0"))
        #expect(HCIPort("tcp:127.0.0.1:9000") == .tcp(host: "127.0.0.1", port: 9000))
        #expect(HCIPort("tcp:[::1]:9000") == .tcp(host: "::1", port: 9000))
        #expect(HCIPort("hci0") == .adapter(index: 0))
        #expect(HCIPort("hci65534") == .adapter(index: 65_534))
        #expect(HCIPort("h4:/dev/ttyACM0") == .serial(SerialLine(path: "/dev/ttyACM0", baud: 115_200)))
        #expect(
            HCIPort("h4:/dev/ttyAMA0@1000000,rtscts")
                == .serial(SerialLine(path: "/dev/ttyAMA0", baud: 1_000_000, hardwareFlowControl: true)))
        for text in [
            "hci0", "hci12", "h4:/dev/a@b@9600", "h4:/dev/ttyS0@921600,rtscts", "unix:/run/x/hci0",
            "tcp:roof.example:1", "tcp:[fe80::1%eth0]:9",
        ] {
            #expect(HCIPort(text).map { "\($0)" } == text)
        }
    }

    @Test(arguments: [
        "", "hci", "hci-1", "hci01", "hci+1", "hci65535", "HCI0", "hci0 ", "hci0:", "unix:", "tcp:", "tcp:9000",
        "tcp::9000", "tcp:host:0", "tcp:host:65536", "udp:a:1", "h4:", "h4:ttyACM0", "h4:/dev/a@", "h4:/dev/a@0",
        "h4:/dev/a@1,xon", "h4:/dev/a@1,rtscts,rtscts",
    ])
    func `what is no port is refused`(text: String) {
        #expect(HCIPort(text) == nil)
    }
}
