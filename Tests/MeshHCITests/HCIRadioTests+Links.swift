// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

private let environment = ProcessInfo.processInfo.environment
/// Of a radio that was started with --no-hash.
private let hasHash = environment["MESHHOST_HCI_HASH"] != "no"
/// Of a radio that was started with --private and a PIN: its identity address.
private let identity = environment["MESHHOST_HCI_IDENTITY"]

/// What links run with, as people see it in `meshhost status`. The frames are those of `Tests/Rigs/hci/radio.py`.
extension HCIRadioTests {
    /// The module with one radio.
    private struct Rig {
        let factory: HCITransportFactory
        let transport: any TransportDiagnosing

        init(_ loop: EventLoop, _ options: [String: JSONValue] = [:], factory: HCITransportFactory? = nil) throws {
            self.factory = factory ?? HCITransportFactory(loop: loop, log: .none)
            var written: [String: JSONValue] = [
                "bond_dir": "", "controller": .string(try #require(environment["MESHHOST_HCI_PORT"])),
            ]
            written["pin"] = environment["MESHHOST_HCI_PIN"].map { .string($0) }
            if options["address"] == nil { written["name"] = .string(environment["MESHHOST_HCI_RADIO"] ?? "Roof") }
            written.merge(options) { $1 }
            let (values, issues) = self.factory.check(written)
            try #require(issues.isEmpty, "\(issues)")
            let made = try self.factory.makeTransport(
                TransportSettings(
                    device: "roof", options: values, written: written,
                    environment: TransportEnvironment(log: .none) { _ in }))
            transport = try #require(made as? any TransportDiagnosing)
        }

        /// Connects, and has some frames echoed: what is learnt behind the set-up is learnt by then.
        func connect() async throws {
            try await transport.connect()
            var frames = await transport.receivedData.makeAsyncIterator()
            for number: UInt8 in 1...8 {
                try await transport.send(Data([number]))
                #expect(await frames.next() == Data("echo:".utf8) + [number])
            }
        }

        /// Sends a frame that makes the radio drop the link, and waits for the end.
        func drop(_ frame: UInt8) async throws {
            let frames = await transport.receivedData
            // The radio may be gone before it has acknowledged this.
            try? await transport.send(Data([frame]))
            for await _ in frames {}
            await transport.disconnect()
        }

        /// Sends frames that are echoed until `key` is `value`: the radio does what it was told beside them.
        func settle(_ key: String, _ value: JSONValue) async throws {
            var frames = await transport.receivedData.makeAsyncIterator()
            for number: UInt8 in 1...50 where await link(key) != value {
                try await transport.send(Data([number]))
                _ = await frames.next()
            }
        }

        func link(_ key: String) async -> JSONValue? { await transport.diagnostics()["link"]?[key] }
    }

    @Test(.timeLimit(.minutes(10))) func `a link takes four round trips, and three where it is known`() async throws {
        try await onLoop { actor in
            let rig = try Rig(actor.loop)
            try await rig.connect()
            // MTU, service, characteristics, CCCD.
            #expect(await rig.link("setup_att_requests") == 4)
            #expect(await rig.link("cache_hit") == false)
            for _ in 1...2 {
                await rig.transport.disconnect()
                try await rig.connect()
                // MTU, hash, CCCD.
                #expect(await rig.link("setup_att_requests") == .int(hasHash ? 3 : 4))
                #expect(await rig.link("cache_hit") == .bool(hasHash))
            }
            await rig.transport.disconnect()
            await rig.factory.close()
        }
    }

    @Test(.timeLimit(.minutes(10))) func `handles that have moved are found again (R19)`() async throws {
        try await onLoop { actor in
            let rig = try Rig(actor.loop)
            for _ in 1...2 {
                try await rig.connect()
                try await rig.drop(0xF4)
                try await rig.connect()
                #expect(await rig.link("cache_hit") == false)
                #expect(await rig.link("setup_att_requests") == .int(hasHash ? 5 : 4))
                await rig.transport.disconnect()
            }
            try await rig.connect()
            #expect(await rig.link("cache_hit") == .bool(hasHash))
            await rig.transport.disconnect()
            await rig.factory.close()
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `a link in use is relaxed, and the radio's wish is granted with 4 s (R24)`() async throws {
        try await onLoop { actor in
            let rig = try Rig(actor.loop)
            try await rig.connect()
            let facts: [String: JSONValue] = [
                "interval_ms": .double(30), "latency": 0, "supervision_ms": 5000, "phy": "2m", "data_length": 251,
                "encrypted": .bool(environment["MESHHOST_HCI_PIN"] != nil),
                "authenticated": .bool(environment["MESHHOST_HCI_PIN"] != nil),
            ]
            for (key, value) in facts { #expect(await rig.link(key) == value, "\(key)") }
            try await rig.transport.send(Data([0xF5]))
            try await rig.settle("latency", 4)
            #expect(await rig.link("latency") == 4)
            #expect(await rig.link("supervision_ms") == 4000)
            await rig.transport.disconnect()
            await rig.factory.close()
        }
    }

    @Test(.timeLimit(.minutes(10))) func `the user's interval and mode are kept`() async throws {
        try await onLoop { actor in
            let rig = try Rig(actor.loop, ["phy": "1m", "connection_interval": "20ms"])
            try await rig.connect()
            #expect(await rig.link("phy") == "1m")
            #expect(await rig.link("interval_ms") == .double(20))
            try await rig.transport.send(Data([0xF5]))
            try await rig.settle("latency", 4)
            #expect(await rig.link("interval_ms") == .double(20))
            #expect(await rig.link("latency") == 4)
            await rig.transport.disconnect()
            await rig.factory.close()
        }
    }

    @Test(.timeLimit(.minutes(10)), .enabled(if: identity != nil, "needs a radio with private addresses"))
    func `a bonded radio is found by its identity, whatever address it uses`() async throws {
        try await onLoop { actor in
            let first = try Rig(actor.loop)
            try await first.connect()
            let address = await first.transport.diagnostics()["address"]
            await first.transport.disconnect()
            let identity = try #require(identity)
            let rig = try Rig(actor.loop, ["address": .string(identity)], factory: first.factory)
            for _ in 1...3 {
                try await rig.connect()
                // The first time it was not known yet.
                #expect(await rig.transport.diagnostics()["address"] == .string(identity))
                #expect(await rig.transport.diagnostics()["pairings"] == 0)
                try await rig.drop(0xF6)
            }
            #expect(address != nil)
            // And by its name.
            try await first.connect()
            #expect(await first.transport.diagnostics()["pairings"] == 1)
            #expect(await first.transport.diagnostics()["address"] == .string(identity))
            await first.transport.disconnect()
            await rig.factory.close()
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `writes without an answer fill the controller's buffers, and keep their order`() async throws {
        try await onLoop { actor in
            try await Self.withLink(actor.loop, actor) { link, _ in
                let profile = GATTSerialProfile.nordicUART
                let service = try #require(try await link.discoverServices([profile.service]).first)
                let found = try await link.discoverCharacteristics(of: service)
                let receive = try #require(found.first { $0.uuid == profile.receive })
                let transmit = try #require(found.first { $0.uuid == profile.transmit })
                let (values, continuation) = AsyncStream.makeStream(of: Data.self)
                try await link.startNotifications(of: transmit) { continuation.yield($0) }
                for number: UInt8 in 1...12 {
                    try await link.write(Data([number]), to: receive, withResponse: false)
                }
                // Nothing came back yet: the loop has not turned since.
                let outstanding = try #require(await link.diagnostics["acl_outstanding"]?.intValue)
                #expect(outstanding >= 4)
                var iterator = values.makeAsyncIterator()
                for number: UInt8 in 1...12 { #expect(await iterator.next() == Data("echo:".utf8) + [number]) }
            }
        }
    }
}
