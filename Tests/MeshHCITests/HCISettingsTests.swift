// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
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

    @Test func `a device and a controller have to be named`() {
        #expect(read([:]).issues.map(\.option) == ["address", "controller"])
        #expect(read(["name": "Roof", "controller": "hci"]).issues.map(\.option) == ["controller"])
    }
}
