// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshBlueZTransport

struct BlueZSettingsTests {
    private static func read(_ written: [String: JSONValue]) -> (settings: BlueZSettings?, issues: [OptionIssue]) {
        let (values, issues) = BlueZSettings.options.resolve(written)
        #expect(issues.isEmpty)
        return BlueZSettings.read(values)
    }

    @Test func `an address is enough, and everything else is as the table says`() throws {
        let settings = try #require(Self.read(["address": "c0:11:22:33:44:55"]).settings)
        var expected = BLETransportSettings(target: .address(try #require(BLEAddress("C0:11:22:33:44:55"))))
        expected.pairing = .automatic
        #expect(settings.transport == expected)
        #expect(settings.adapter.isEmpty && settings.notifications == .signals)
        #expect(!settings.isDefaultAgent && !settings.powersOn && !settings.takesOver)
    }

    @Test func `every option reaches its place`() throws {
        let settings = try #require(
            Self.read([
                "name": "Roof", "adapter": "hci1", "pin": "42", "pairing": "always", "stale_bond_repairs": .int(2),
                "notifications": "acquire", "default_agent": true, "power_on": true, "takeover": true,
                "connect_timeout": "11s",
                "discovery_timeout": "41s", "rediscovery_timeout": "16s", "pairing_timeout": "66s",
                "subscribe_timeout": "6s", "write_timeout": "7s", "write_pacing": "20ms",
            ]).settings)
        var expected = BLETransportSettings(target: .name("Roof"))
        expected.passkey = BLEPasskey(42)
        expected.pairing = .always
        expected.staleBondRepairs = 2
        expected.connectionTimeout = .seconds(11)
        expected.serviceDiscoveryTimeout = .seconds(41)
        expected.autoReconnectDiscoveryTimeout = .seconds(16)
        expected.pairingTimeout = .seconds(66)
        expected.subscriptionTimeout = .seconds(6)
        expected.writeTimeout = .seconds(7)
        expected.writePacingDelay = .milliseconds(20)
        #expect(settings.transport == expected)
        #expect(settings.adapter == "hci1" && settings.notifications == .acquire)
        #expect(settings.isDefaultAgent && settings.powersOn && settings.takesOver)
    }

    @Test(
        arguments: [
            ([:], "address"), (["address": "roof"], "address"),
            (["address": "C0:11:22:33:44:55", "name": "Roof"], "name"),
            (["name": "Roof", "pin": "12345a"], "pin"), (["name": "Roof", "pin": "1234567"], "pin"),
            (["name": "Roof", "pairing": "sometimes"], "pairing"),
            (["name": "Roof", "pairing": "never", "pin": "123456"], "pairing"),
            (["name": "Roof", "notifications": "aquire"], "notifications"),
            (["name": "Roof", "adapter": "hci0/x"], "adapter"),
            (["name": "Roof", "stale_bond_repairs": .int(-1)], "stale_bond_repairs"),
            (["name": "Roof", "connect_timeout": "0s"], "connect_timeout"),
            (["name": "Roof", "write_timeout": "10ms"], "write_timeout"),
            (["name": "Roof", "write_pacing": "1m"], "write_pacing"),
        ] as [([String: JSONValue], String)])
    func `what is wrong is told by its option`(written: [String: JSONValue], option: String) {
        let (settings, issues) = Self.read(written)
        #expect(settings == nil)
        #expect(issues.map(\.option) == [option])
        #expect(!issues.contains { $0.message.contains("123456") })
    }

    @Test func `a device is the same however its address and its adapter are written`() async throws {
        let thread = LoopThread()
        let factory = BlueZTransportFactory(loop: thread.loop, log: .none, environment: [:])
        let identity = { (address: String, adapter: String) in
            factory.identity(factory.check(["address": .string(address), "adapter": .string(adapter)]).values)
        }
        #expect(identity("c0:11:22:33:44:55", "") == "C0:11:22:33:44:55")
        #expect(identity("C0:11:22:33:44:55/random", "") == "C0:11:22:33:44:55")
        #expect(identity("C0:11:22:33:44:55", "hci1") == "C0:11:22:33:44:55 through hci1")
        #expect(identity("C0:11:22:33:44:55", "00:aa:01:00:00:42") == "C0:11:22:33:44:55 through 00:AA:01:00:00:42")
        #expect(identity("roof", "") == nil)
        try await thread.shutDown()
    }

    @Test func `a word that is nearly right is corrected`() {
        let issues = Self.read(["name": "Roof", "notifications": "aquire"]).issues
        #expect(issues.first?.hint == "did you mean \"acquire\"?")
    }
}
