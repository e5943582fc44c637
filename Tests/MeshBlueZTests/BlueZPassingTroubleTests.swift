// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshDBus
import MeshDBusTestSupport
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshBlueZTransport

/// What bluetoothd refuses in passing is not taken for more than that.
@Suite(.timeLimit(.minutes(10)))
struct BlueZPassingTroubleTests {
    private static let request = BlueZLinkTests.request

    /// The failure of a pairing that bluetoothd answers so.
    private static func pairing(_ name: String) async throws -> GATTError {
        let result = Mailbox()
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            let link = try await central.connect(request)
            await fake.answer("Device1.Pair", .error("org.bluez.Error.\(name)"))
            result.error = await failure { () async throws(GATTError) in _ = try await link.pair() }
            await link.close()
        }
        return try #require(result.error)
    }

    private static func failure(_ body: () async throws(GATTError) -> Void) async -> GATTError? {
        do throws(GATTError) {
            try await body()
            return nil
        } catch {
            return error
        }
    }

    /// Sendable: written on the loop's thread, read when that has ended.
    private final class Mailbox: @unchecked Sendable {
        var error: GATTError?
    }

    @Test(arguments: ["AuthenticationTimeout", "AuthenticationRejected", "NotReady"])
    func `a pairing that came to no pin is tried again`(name: String) async throws {
        let error = try await Self.pairing(name)
        #expect([.linkLost, .other, .unreachable].contains(error.reason))
        #expect(error.error.disposition == .transient)
    }

    @Test func `a pairing that is rejected again needs a person`() async throws {
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            let rejected = FakeBlueZ.Answer.error("org.bluez.Error.AuthenticationRejected")
            await fake.answer("Device1.Pair", rejected, rejected)
            let link = try await central.connect(Self.request)
            #expect(await Self.failure { () async throws(GATTError) in _ = try await link.pair() }?.reason == .linkLost)
            #expect(
                await Self.failure { () async throws(GATTError) in _ = try await link.pair() }?.reason == .pairingFailed
            )
            #expect(try await link.pair().usedPasskey)
            await link.close()
        }
    }

    @Test func `an agent that bluetoothd does not take says nothing of the pin`() async throws {
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            let refusal = FakeBlueZ.Answer.error("org.bluez.Error.Failed", "no")
            await fake.answer("AgentManager1.RegisterAgent", refusal, refusal)
            let link = try await central.connect(Self.request)
            let error = await Self.failure { () async throws(GATTError) in _ = try await link.pair() }
            #expect(error?.reason == .other && error?.error.disposition == .transient)
            #expect(try await link.pair().usedPasskey)
            await link.close()
        }
    }

    @Test func `an adapter that is not ready for a moment is not off`() async throws {
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            await fake.answer("Device1.Connect", .error("org.bluez.Error.NotReady", "Resource Not Ready"))
            let error = await Self.failure { () async throws(GATTError) in _ = try await central.connect(Self.request) }
            #expect(error?.reason == .unreachable && error?.error.code == .connectionFailed)
        }
    }

    @Test func `a link that bluetoothd does not tell of is asked for`() async throws {
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            await fake.setTellsOfLinks(false)
            let link = try await central.connect(Self.request)
            await link.close()
            #expect(await fake.calls.filter { $0 == "Device1.Connect" }.count == 1)
        }
    }

    @Test func `an agent that bluetoothd drops is registered again`() async throws {
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            let link = try await central.connect(Self.request)
            _ = await fake.call(of: "AgentManager1.RegisterAgent")
            try await fake.releaseAgent()
            _ = await fake.call(of: "AgentManager1.RegisterAgent")
            await link.close()
        }
    }

    @Test func `the agent is the default one while somebody wants that`() async throws {
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            let (values, _) = BlueZSettings.options.resolve([
                "address": .string(FakeBlueZ.address), "default_agent": .bool(true),
            ])
            let settings = try #require(BlueZSettings.read(values).settings)
            // Keeps the bus open throughout.
            let other = await central.observeState { _ in }
            var wish: (any GATTObservation)? = await BlueZCentral(central.service, settings, log: .none)
                .observeState { _ in }
            _ = await fake.call(of: "AgentManager1.RequestDefaultAgent")
            withExtendedLifetime(wish) {}
            wish = nil
            _ = await fake.call(of: "AgentManager1.UnregisterAgent")
            _ = await fake.call(of: "AgentManager1.RegisterAgent")
            _ = await fake.call(of: "AgentManager1.RegisterAgent")
            #expect(await fake.calls.filter { $0 == "AgentManager1.RequestDefaultAgent" }.count == 1)
            withExtendedLifetime(other) {}
        }
    }

    @Test func `characteristics that come after their service are waited for`() async throws {
        try await BlueZLinkTests.onBlueZ { actor, fake, central in
            await fake.setResolvesServices(false)
            let link = try await central.connect(Self.request)
            await fake.addServices()
            await fake.remove(FakeBlueZ.receive)
            await fake.remove(FakeBlueZ.transmit)
            await fake.set(FakeBlueZ.device, BlueZNames.device, ["ServicesResolved": .bool(true)])
            let services = try await link.discoverServices([GATTSerialProfile.nordicUART.service])
            async let found = link.discoverCharacteristics(of: try #require(services.first))
            await fake.addServices()
            #expect(try await found.count == 2)
            await link.close()
        }
    }

    @Test func `a scan whose search cannot begin fails`() async throws {
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            let refusal = FakeBlueZ.Answer.error("org.bluez.Error.InProgress")
            await fake.answer("Adapter1.StartDiscovery", refusal, refusal, refusal)
            await #expect(throws: MeshError.self) { _ = try await central.service.scan(.firstPowered) }
        }
    }
}
