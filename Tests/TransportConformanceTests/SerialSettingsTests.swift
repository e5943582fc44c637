// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshLoop
import MeshTransportAPI
import Testing

@testable import MeshSerialTransport

struct SerialSettingsTests {
    private func read(_ written: [String: JSONValue]) -> (settings: SerialSettings?, issues: [OptionIssue]) {
        let (values, issues) = SerialSettings.options.resolve(written)
        return issues.isEmpty ? SerialSettings.read(values) : (nil, issues)
    }

    @Test func `the defaults of the table are those of the type`() {
        #expect(read(["path": "/dev/ttyACM0"]).settings == SerialSettings(choice: .path("/dev/ttyACM0")))
    }

    @Test func `everything can be written`() {
        let settings = read([
            "usb": "239A:8029:0011AA", "baud": 921_600, "rtscts": true, "boot": "dtr", "boot_delay": "2s",
            "answer_timeout": "4s", "write_timeout": "1s", "max_frame": 512, "partial_frame_timeout": "1s",
            "layout_check": false,
        ]).settings
        let identity = USBIdentity(vendor: 0x239A, product: 0x8029, serialNumber: "0011AA")
        #expect(
            settings
                == SerialSettings(
                    choice: .usb(identity), baud: 921_600, hardwareFlowControl: true,
                    control: SerialControl(dtr: true, rts: false), bootDelay: .seconds(2), answerTimeout: .seconds(4),
                    writeTimeout: .seconds(1), maximumFrame: 512, partialFrameTimeout: .seconds(1), checksLayout: false
                ))
    }

    @Test(
        arguments: [
            ([:], "path"), (["path": "/dev/a", "usb": "1111:2222"], "usb"), (["path": "ttyACM0"], "path"),
            (["usb": "239a"], "usb"), (["usb": "239a:80290"], "usb"), (["usb": "239a:8029:"], "usb"),
            (["usb": "+39a:8029"], "usb"), (["path": "/dev/a", "boot": "offf"], "boot"),
            (["path": "/dev/a", "baud": 0], "baud"), (["path": "/dev/a", "max_frame": 513], "max_frame"),
            (["path": "/dev/a", "boot_delay": "1m"], "boot_delay"),
            (["path": "/dev/a", "answer_timeout": "0s"], "answer_timeout"),
        ] as [([String: JSONValue], String)])
    func `what makes no sense is refused, with what to write`(written: [String: JSONValue], option: String) {
        let (settings, issues) = read(written)
        #expect(settings == nil)
        #expect(issues.map(\.option) == [option])
        #expect(issues.first?.hint?.isEmpty == false)
    }

    @Test(
        arguments: [
            (["path": "/dev/ttyACM0"], "/dev/ttyACM0"), (["path": "/dev/ttyACM0", "baud": 9_600], "/dev/ttyACM0"),
            (["usb": "239A:8029"], "USB device 239a:8029"), (["path": "ttyACM0"], nil),
        ] as [([String: JSONValue], String?)])
    func `two devices at one port are one`(written: [String: JSONValue], identity: String?) async throws {
        let thread = LoopThread()
        let factory = SerialTransportFactory(loop: thread.loop)
        #expect(factory.identity(factory.check(written).values) == identity)
        try await thread.shutDown()
    }

    @Test func `an identity is written as it is read`() {
        for text in ["239a:8029", "0403:6001:A:B", "0001:000a:x y"] {
            #expect(USBIdentity(text).map { "\($0)" } == text)
        }
        let board = USBIdentity(vendor: 1, product: 2, serialNumber: "a")
        #expect(USBIdentity(vendor: 1, product: 2).matches(board))
        #expect(board.matches(board))
        #expect(!USBIdentity(vendor: 1, product: 2, serialNumber: "b").matches(board))
        #expect(!board.matches(USBIdentity(vendor: 1, product: 2)))
    }

    @Test func `boards are known by their ports`() {
        let on = SerialControl(dtr: true, rts: true)
        let off = SerialControl(dtr: false, rts: false)
        func first(_ vendor: UInt16, _ product: UInt16) -> SerialControl? {
            SerialBoard.behind(USBIdentity(vendor: vendor, product: product)).candidates.first
        }
        #expect(first(0x239A, 0x8029) == on)
        #expect(first(0x10C4, 0xEA60) == off)
        #expect(first(0x1A86, 0x55D4) == off)
        #expect(SerialBoard.behind(USBIdentity(vendor: 0x303A, product: 0x1001)).name.contains("JTAG"))
        #expect(!SerialBoard.behind(USBIdentity(vendor: 0x303A, product: 0x0002)).name.contains("JTAG"))
        #expect(first(0xFFFF, 1) == on)
        #expect(SerialBoard.behind(nil).candidates == [on, off])
    }
}
