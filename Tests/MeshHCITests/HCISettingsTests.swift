// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshBluetoothStack
import MeshLoop
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

struct HCISettingsTests {
    private func read(_ written: [String: JSONValue]) -> (settings: HCISettings?, issues: [OptionIssue]) {
        let (values, issues) = HCISettings.options.resolve(written)
        return issues.isEmpty ? HCISettings.read(values) : (nil, issues)
    }

    @Test func `what is written is read`() throws {
        let settings = try #require(
            read([
                "address": "C0:11:22:33:44:55/random", "controller": "tcp:127.0.0.1:9000", "pin": "123456",
                "connect_timeout": "20s",
            ]).settings)
        #expect(settings.controller == .tcp(host: "127.0.0.1", port: 9000))
        #expect(settings.transport.target == BLEAddress("C0:11:22:33:44:55/random").map { .address($0) })
        #expect(settings.transport.passkey == BLEPasskey(123456))
        #expect(settings.transport.connectionTimeout == .seconds(20))
    }

    @Test func `a capture has a path and a limit`() {
        let device: [String: JSONValue] = ["name": "Roof", "controller": "hci1"]
        func with(_ more: [String: JSONValue]) -> [String: JSONValue] { device.merging(more) { $1 } }
        #expect(read(device).settings?.capture == nil)
        #expect(
            read(with(["capture": "/run/roof.log", "capture_limit": 2])).settings?.capture
                == CaptureSettings(path: "/run/roof.log", limit: 2 << 20))
        #expect(read(with(["capture": "roof.log"])).issues.map(\.option) == ["capture"])
        #expect(read(with(["capture": "/run/roof.log", "capture_limit": 0])).issues.map(\.option) == ["capture_limit"])
    }

    @Test func `the interval and the mode of links can be chosen`() {
        let device: [String: JSONValue] = ["name": "Roof", "controller": "tcp:127.0.0.1:9000"]
        func link(_ written: [String: JSONValue]) -> HCILinkOptions? {
            read(device.merging(written) { $1 }).settings?.link
        }
        let timeout = Duration.seconds(5)
        #expect(link([:]) == HCILinkOptions(mode: .twoMegabit, interval: nil, writeTimeout: timeout))
        #expect(
            link(["phy": "1m", "connection_interval": "30ms"])
                == HCILinkOptions(mode: .oneMegabit, interval: 24, writeTimeout: timeout))
        #expect(link(["connection_interval": "8ms"])?.interval == 6)
        #expect(link(["connection_interval": "4s", "write_timeout": "12s"])?.interval == 3200)
        for wrong: [String: JSONValue] in [
            ["phy": "coded"], ["connection_interval": "7ms"], ["connection_interval": "5s"],
            // Each frame would take longer than it may.
            ["connection_interval": "2s"], ["connection_interval": "50ms", "write_timeout": "100ms"],
        ] { #expect(link(wrong) == nil, "\(wrong)") }
    }

    @Test func `a frame may take as long as it is written`() {
        func deadline(_ timeout: Duration?) -> Duration {
            HCILinkOptions(writeTimeout: timeout).client(.init()).writeTimeout
        }
        #expect(deadline(nil) == .seconds(5))
        // Before the one who writes gives up.
        #expect(deadline(.seconds(5)) == .seconds(5) - .milliseconds(100))
        #expect(deadline(.seconds(20)) == .seconds(20) - .milliseconds(100))
        // What any request may take, and what is left to the one who writes.
        #expect(deadline(.seconds(300)) < .seconds(30))
        #expect(deadline(.seconds(1)) > .seconds(1))
    }

    @Test func `a device and a controller have to be named`() {
        #expect(read([:]).issues.map(\.option) == ["address", "controller"])
        #expect(read([:]).issues.last?.message == "it has to be said which controller")
        #expect(read(["name": "Roof", "controller": "hci"]).issues.map(\.option) == ["controller"])
    }

    @Test func `the folder of the bonds is an absolute path, or none`() {
        let device: [String: JSONValue] = ["name": "Roof", "controller": "unix:/run/hci0"]
        #expect(read(device.merging(["bond_dir": "bonds"]) { $1 }).issues.map(\.option) == ["bond_dir"])
        #expect(read(device.merging(["bond_dir": ""]) { $1 }).settings?.bondDirectory == "")
    }

    @Test func `the defaults are values of their kinds`() {
        #expect(HCISettings.options.resolve([:]).issues.isEmpty)
    }
}
