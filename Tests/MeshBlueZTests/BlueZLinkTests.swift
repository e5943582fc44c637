// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshDBus
import MeshDBusTestSupport
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshBlueZTransport

/// Links through a bluetoothd of the test's own.
@Suite(.timeLimit(.minutes(10)))
struct BlueZLinkTests {
    static let request = GATTConnectRequest(
        target: .address(BLEAddress(FakeBlueZ.address)!), passkey: BLEPasskey(123_456),
        service: GATTSerialProfile.nordicUART.service)

    /// Runs `body` with a bluetoothd that has just been started, and the central under test.
    static func onBlueZ(
        knowsDevice: Bool = true,
        _ body: @Sendable (isolated LoopActor, FakeBlueZ, BlueZCentral) async throws -> Void
    ) async throws {
        try await onBus { actor, bus in
            let fake = FakeBlueZ(bus)
            try await fake.start(knowsDevice: knowsDevice)
            let service = BlueZService(loop: actor.loop, log: .none, busAddress: bus.address)
            let (values, _) = BlueZSettings.options.resolve(["address": .string(FakeBlueZ.address)])
            let settings = try #require(BlueZSettings.read(values).settings)
            let result: Result<Void, any Error>
            do {
                result = .success(try await body(actor, fake, BlueZCentral(service, settings, log: .none)))
            } catch {
                result = .failure(error)
            }
            await fake.stop()
            try result.get()
        }
    }

    private static func characteristics(
        _ link: any GATTLink
    ) async throws -> (receive: GATTCharacteristic, transmit: GATTCharacteristic) {
        let services = try await link.discoverServices([GATTSerialProfile.nordicUART.service])
        let service = try #require(services.first)
        let found = try await link.discoverCharacteristics(of: service)
        let uart = GATTSerialProfile.nordicUART
        return (
            try #require(found.first { $0.uuid == uart.receive }),
            try #require(found.first { $0.uuid == uart.transmit })
        )
    }

    @Test func `a device that is not known is looked for, connected to and left disconnected`() async throws {
        try await Self.onBlueZ(knowsDevice: false) { _, fake, central in
            async let connecting = central.connect(Self.request)
            _ = await fake.call(of: "Adapter1.StartDiscovery")
            await fake.hear()
            let link = try await connecting
            #expect(
                await link.peer
                    == GATTPeer(
                        address: BLEAddress("C0:11:22:33:44:55/random")!, name: "Roof", rssi: -60, isBonded: false))
            _ = await fake.call(of: "Adapter1.StopDiscovery")
            await link.close()
            let calls = await fake.calls
            #expect(calls.contains("Adapter1.SetDiscoveryFilter"))
            #expect(calls.last == "Device1.Disconnect")
            // Nothing needs the bus any more.
            #expect(await !central.service.isOpen)
        }
    }

    @Test func `a device that is known is not looked for`() async throws {
        try await Self.onBlueZ { _, fake, central in
            let link = try await central.connect(Self.request)
            await link.close()
            #expect(await !fake.calls.contains("Adapter1.StartDiscovery"))
        }
    }

    @Test func `a device that is connected already is adopted without a search and without connecting`() async throws {
        try await Self.onBlueZ { _, fake, central in
            #expect(try await central.adopt(Self.request) == nil)
            await fake.addServices()
            await fake.set(
                FakeBlueZ.device, BlueZNames.device, ["Connected": .bool(true), "ServicesResolved": .bool(true)])
            let link = try #require(try await central.adopt(Self.request))
            _ = try await Self.characteristics(link)
            await link.close()
            let calls = await fake.calls
            #expect(!calls.contains("Device1.Connect") && !calls.contains("Adapter1.StartDiscovery"))
            #expect(calls.last == "Device1.Disconnect")
        }
    }

    @Test func `a cancelled connect is undone before it throws`() async throws {
        try await Self.onBlueZ { _, fake, central in
            await fake.answer("Device1.Connect", .silence)
            let task = Task { () -> GATTError.Reason? in
                do throws(GATTError) {
                    _ = try await central.connect(Self.request)
                    return nil
                } catch {
                    return error.reason
                }
            }
            _ = await fake.call(of: "Device1.Connect")
            task.cancel()
            #expect(await task.value == .cancelled)
            #expect(await fake.calls.last == "Device1.Disconnect")
        }
    }

    @Test func `a link aborted by this side comes up at the next try`() async throws {
        try await Self.onBlueZ { _, fake, central in
            let abort = FakeBlueZ.Answer.error("org.bluez.Error.Failed", "le-connection-abort-by-local")
            await fake.answer("Device1.Connect", abort, abort)
            let link = try await central.connect(Self.request)
            #expect(await fake.calls.filter { $0 == "Device1.Connect" }.count == 3)
            await link.close()
        }
    }

    @Test func `what another client left behind is ended`() async throws {
        try await Self.onBlueZ { _, fake, central in
            let busy = FakeBlueZ.Answer.error("org.bluez.Error.InProgress")
            await fake.answer("Device1.Connect", busy, busy)
            let link = try await central.connect(Self.request)
            let calls = await fake.calls.filter { $0.hasPrefix("Device1") }
            let connect = "Device1.Connect"
            #expect(calls == [connect, connect, "Device1.Disconnect", connect])
            await link.close()
        }
    }

    @Test func `a client that begins again is left alone until the device has been connected to`() async throws {
        try await Self.onBlueZ { _, fake, central in
            func attempt(_ failures: Int) async -> GATTError.Reason? {
                await fake.answer(
                    "Device1.Connect", Array(repeating: .error("org.bluez.Error.InProgress"), count: failures))
                do throws(GATTError) {
                    let link = try await central.connect(Self.request)
                    await link.close()
                    return nil
                } catch {
                    return error.reason
                }
            }
            func disconnections() async -> Int { await fake.calls.filter { $0 == "Device1.Disconnect" }.count }
            #expect(await attempt(3) == .inUse)
            #expect(await attempt(2) == .inUse)
            #expect(await attempt(2) == .inUse)
            #expect(await disconnections() == 1)
            // Connected to, and closed.
            #expect(await attempt(0) == nil)
            #expect(await disconnections() == 2)
            #expect(await attempt(3) == .inUse)
            #expect(await disconnections() == 3)
        }
    }

    @Test func `an object that has gone unseen is looked for again`() async throws {
        try await Self.onBlueZ { _, fake, central in
            await fake.answer("Device1.Connect", .error("org.freedesktop.DBus.Error.UnknownObject"))
            let link = try await central.connect(Self.request)
            #expect(await fake.calls.filter { $0 == "ObjectManager.GetManagedObjects" }.count == 2)
            await link.close()
        }
    }

    @Test func `services that come after their announcement are waited for`() async throws {
        try await Self.onBlueZ { _, fake, central in
            await fake.setResolvesServices(false)
            let link = try await central.connect(Self.request)
            async let found = Self.characteristics(link)
            await fake.set(FakeBlueZ.device, BlueZNames.device, ["ServicesResolved": .bool(true)])
            await fake.addServices()
            #expect(try await found.transmit.id == FakeBlueZ.transmit)
            await link.close()
        }
    }

    @Test func `values count from the subscription on, once each, and not beyond the link`() async throws {
        try await Self.onBlueZ { actor, fake, central in
            let values = Arrival<[UInt8]>(actor.loop)
            let link = try await central.connect(Self.request)
            let (receive, transmit) = try await Self.characteristics(link)
            await fake.notify([0])
            // Answered behind the value.
            _ = try await link.maximumWriteLength(of: receive)
            await fake.answer("GattCharacteristic1.StartNotify", .silence)
            let loop = actor.loop
            async let subscribed: Void = link.startNotifications(of: transmit) { value in
                let bytes = Array(value)
                loop.perform { values.arrive(bytes) }
            }
            let call = await fake.call(of: "GattCharacteristic1.StartNotify")
            await fake.notify([1])
            call.reply()
            try await subscribed
            await fake.notify([1])
            await fake.notify([])
            await fake.notify([2])
            for expected in [[1], [1], [], [2]] as [[UInt8]] { #expect(await values.get() == expected) }

            let losses = Arrival<GATTError>(actor.loop)
            await link.setDisconnectionHandler { losses.arrive($0) }
            await fake.loseLink("Timeout")
            #expect(await losses.get().reason == .linkLost)
            await fake.notify([3])
            // bluetoothd switches notifications on again by itself; what comes then is nobody's yet.
            let next = try await central.connect(Self.request)
            await fake.notify([4])
            _ = try await Self.characteristics(next)
            _ = try await next.maximumWriteLength(of: receive)
            try await next.startNotifications(of: transmit) { value in
                let bytes = Array(value)
                loop.perform { values.arrive(bytes) }
            }
            await fake.notify([5])
            #expect(await values.get() == [5])
            await next.close()
            #expect(await fake.calls.suffix(2) == ["GattCharacteristic1.StopNotify", "Device1.Disconnect"])
            #expect(await values.all().isEmpty)
        }
    }

    @Test func `the end of bluetoothd ends links in the same turn, and its return brings everything back`() async throws
    {
        try await Self.onBlueZ { actor, fake, central in
            let states = Arrival<BluetoothState>(actor.loop)
            let losses = Arrival<GATTError>(actor.loop)
            let observation = await central.observeState { states.arrive($0) }
            #expect(await states.get() == .poweredOn)
            let link = try await central.connect(Self.request)
            await link.setDisconnectionHandler { losses.arrive($0) }
            await fake.stop()
            #expect(await losses.get().reason == .bluetoothUnavailable)
            #expect(await states.get() == .serviceUnavailable)
            try await fake.start()
            #expect(await states.get() == .poweredOn)
            _ = await fake.call(of: "AgentManager1.RegisterAgent")
            _ = await fake.call(of: "AgentManager1.RegisterAgent")
            let next = try await central.connect(Self.request)
            await next.close()
            withExtendedLifetime(observation) {}
        }
    }

    @Test func `an adapter that goes off and on is told`() async throws {
        try await Self.onBlueZ { actor, fake, central in
            let states = Arrival<BluetoothState>(actor.loop)
            let observation = await central.observeState { states.arrive($0) }
            #expect(await states.get() == .poweredOn)
            await fake.set(FakeBlueZ.adapter, BlueZNames.adapter, ["Powered": .bool(false)])
            #expect(await states.get() == .poweredOff)
            await #expect(throws: GATTError.self) { try await central.connect(Self.request) }
            await fake.set(FakeBlueZ.adapter, BlueZNames.adapter, ["PowerState": .string("off-blocked")])
            #expect(await states.get() == .blocked)
            await fake.remove(FakeBlueZ.adapter)
            #expect(await states.get() == .absent)
            withExtendedLifetime(observation) {}
        }
    }

    @Test func `a pairing gets its passkey, and a stranger who asks gets none`() async throws {
        try await onBus { actor, bus in
            let fake = FakeBlueZ(bus)
            try await fake.start()
            let service = BlueZService(loop: actor.loop, log: .none, busAddress: bus.address)
            let (values, _) = BlueZSettings.options.resolve(["address": .string(FakeBlueZ.address)])
            let settings = try #require(BlueZSettings.read(values).settings)
            let link = try await BlueZCentral(service, settings, log: .none).connect(Self.request)
            #expect(try await link.pair() == PairingOutcome(usedPasskey: true))
            #expect(await fake.passkey == 123_456)
            #expect(await fake.calls.contains("Properties.Set Trusted"))
            #expect(try await link.pair() == PairingOutcome(wasBonded: true, usedPasskey: false))
            let stranger = try await bus.connect()
            #expect(await fake.refusal(ofStranger: stranger) == "org.bluez.Error.Rejected")
            await stranger.close()
            await link.close()
            await fake.stop()
        }
    }

    @Test func `a write waits for the one before, and is longer than the MTU never`() async throws {
        try await Self.onBlueZ { _, fake, central in
            let link = try await central.connect(Self.request)
            let (receive, _) = try await Self.characteristics(link)
            #expect(try await link.maximumWriteLength(of: receive) == 182)
            await fake.answer("GattCharacteristic1.WriteValue", .error("org.bluez.Error.InProgress"))
            try await link.write(Data([1, 2]), to: receive, withResponse: true)
            let call = await fake.call(of: "GattCharacteristic1.WriteValue")
            #expect(call.arguments == [.bytes([1, 2]), .options(["type": .string("request")])])
            #expect(await fake.calls.filter { $0 == "GattCharacteristic1.WriteValue" }.count == 2)
            await link.close()
        }
    }

    @Test func `a device removed under a link counts as its end`() async throws {
        try await Self.onBlueZ { actor, fake, central in
            let losses = Arrival<GATTError>(actor.loop)
            let link = try await central.connect(Self.request)
            await link.setDisconnectionHandler { losses.arrive($0) }
            await fake.remove(FakeBlueZ.device)
            #expect(await losses.get().reason == .linkLost)
            await #expect(throws: GATTError.self) {
                try await link.discoverServices([GATTSerialProfile.nordicUART.service])
            }
            await link.close()
        }
    }
}
