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

    @Test func `the interval and the mode of links can be chosen`() {
        let device: [String: JSONValue] = ["name": "Roof", "controller": "tcp:127.0.0.1:9000"]
        func link(_ written: [String: JSONValue]) -> HCILinkOptions? {
            read(device.merging(written) { $1 }).settings?.link
        }
        #expect(link([:]) == HCILinkOptions(mode: .twoMegabit, interval: nil))
        #expect(link(["phy": "1m", "connection_interval": "30ms"]) == HCILinkOptions(mode: .oneMegabit, interval: 24))
        #expect(link(["connection_interval": "8ms"])?.interval == 6)
        #expect(link(["connection_interval": "4s"])?.interval == 3200)
        for wrong: [String: JSONValue] in [
            ["phy": "coded"], ["connection_interval": "7ms"], ["connection_interval": "5s"],
        ] { #expect(link(wrong) == nil, "\(wrong)") }
    }

    @Test func `a device and a controller have to be named`() {
        #expect(read([:]).issues.map(\.option) == ["address", "controller"])
        #expect(read(["name": "Roof", "controller": "hci0"]).issues.map(\.option) == ["controller"])
    }
}
