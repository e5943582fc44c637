// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshDBus
import MeshTransportAPI
import Testing

@testable import MeshBlueZTransport

/// A bluetoothd that is slow, or says what is not so.
@Suite(.timeLimit(.minutes(10)))
struct BlueZTroubleTests {
    private static let request = BlueZLinkTests.request

    private static func failure(_ central: BlueZCentral) async -> GATTError? {
        do throws(GATTError) {
            await (try central.connect(request)).close()
            return nil
        } catch {
            return error
        }
    }

    @Test func `a link that is still being closed is waited for, and is not in use`() async throws {
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            let link = try await central.connect(Self.request)
            await fake.answer("Device1.Disconnect", .silence)
            async let closed: Void = link.close()
            let disconnect = await fake.call(of: "Device1.Disconnect")
            #expect(try await central.adopt(Self.request) == nil)
            async let next = central.connect(Self.request)
            await fake.set(
                FakeBlueZ.device, BlueZNames.device, ["Connected": .bool(false), "ServicesResolved": .bool(false)])
            disconnect.reply()
            await closed
            await (try next).close()
            let calls = await fake.calls.filter { $0.hasPrefix("Device1") }
            #expect(calls == ["Device1.Connect", "Device1.Disconnect", "Device1.Connect", "Device1.Disconnect"])
        }
    }

    @Test func `a tree that cannot be read anew ends no link`() async throws {
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            let link = try await central.connect(Self.request)
            await fake.answer("ObjectManager.GetManagedObjects", .error("org.freedesktop.DBus.Error.NoReply"))
            await central.service.refresh()
            #expect(await central.service.outage == nil)
            #expect(try await !link.discoverServices([GATTSerialProfile.nordicUART.service]).isEmpty)
            // It is read again by itself.
            for _ in 0..<3 { _ = await fake.call(of: "ObjectManager.GetManagedObjects") }
            await link.close()
        }
    }

    @Test func `a link whose end was not told is over once the tree is read anew`() async throws {
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            let link = try await central.connect(Self.request)
            await central.service.refresh()
            #expect(try await !link.discoverServices([GATTSerialProfile.nordicUART.service]).isEmpty)
            await fake.setUntold(
                FakeBlueZ.device, BlueZNames.device, ["Connected": .bool(false), "ServicesResolved": .bool(false)])
            await central.service.refresh()
            do throws(GATTError) {
                _ = try await link.discoverServices([GATTSerialProfile.nordicUART.service])
                Issue.record("the link is up")
            } catch {
                #expect(error.error.code.disposition == .transient)
            }
            await link.close()
            // And it does not stand in the way of the next.
            await (try await central.connect(Self.request)).close()
        }
    }

    @Test func `what bluetoothd tells below a device that is gone is not kept`() async throws {
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            let link = try await central.connect(Self.request)
            await link.close()
            await central.service.refresh()
            await fake.removeFromAbove(FakeBlueZ.device)
            await central.service.refresh()
            #expect(await central.service.gattChanges.isEmpty)
        }
    }

    @Test func `an adapter that is on and says that it is not ready is no adapter that is off`() async throws {
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            await fake.answer("Device1.Connect", .error("org.bluez.Error.NotReady", "Resource Not Ready"))
            let error = try #require(await Self.failure(central))
            #expect(error.reason == .unreachable)
            #expect(error.error.code == .connectionFailed && error.error.code.disposition == .transient)
            #expect(!error.error.message.contains("switched off"))
            let link = try await central.connect(Self.request)
            await fake.answer("Device1.Pair", .error("org.bluez.Error.NotReady", "Resource Not Ready"))
            do throws(GATTError) {
                _ = try await link.pair()
                Issue.record("paired")
            } catch {
                #expect(error.reason == .unreachable)
            }
            await link.close()
        }
    }

    @Test func `links that end as soon as they are up let a bond be suspected, one that stays lifts that`() async throws
    {
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            await fake.set(FakeBlueZ.device, BlueZNames.device, ["Paired": .bool(true), "Bonded": .bool(true)])
            let aborts = [FakeBlueZ.Answer](repeating: .aborted, count: BondSuspicion.limit + 3)
            await fake.answer("Device1.Connect", aborts)
            #expect(await Self.failure(central)?.reason == .unreachable)
            let second = try #require(await Self.failure(central))
            #expect(second.reason == .bondSuspect && second.error.code.disposition == .transient)
            #expect(second.error.message.contains("meshhost unpair"))
            // Not as many links from now on.
            #expect(await Self.failure(central)?.reason == .bondSuspect)
            #expect(await fake.calls.filter { $0 == "Device1.Connect" }.count == BondSuspicion.limit + 3)
            #expect(await Self.failure(central) == nil)
            await fake.answer("Device1.Connect", Array(repeating: .aborted, count: 10))
            #expect(await Self.failure(central)?.reason == .unreachable)
        }
    }

    @Test func `a link that bluetoothd does not end does not keep the end of the program waiting`() async throws {
        try await BlueZLinkTests.onBlueZ { _, fake, central in
            let link = try await central.connect(Self.request)
            await fake.answer("Device1.Disconnect", .silence)
            async let closed: Void = link.close()
            _ = await fake.call(of: "Device1.Disconnect")
            await central.service.close()
            #expect(await central.service.links.isEmpty)
            await closed
        }
    }
}
