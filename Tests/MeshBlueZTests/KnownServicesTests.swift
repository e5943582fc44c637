// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshDBus
import MeshDBusTestSupport
import MeshLoop
import MeshTestSupport
import Testing

@testable import MeshBlueZTransport

/// Links that go by what the device had on the one before.
@Suite(.timeLimit(.minutes(1)))
struct KnownServicesTests {
    private static let uart = GATTSerialProfile.nordicUART

    /// All that makes a link of use; the longest write.
    private static func setUp(_ link: any GATTLink) async throws -> Int {
        let service = try #require(try await link.discoverServices([uart.service]).first)
        let found = try await link.discoverCharacteristics(of: service)
        let (receive, transmit) = (
            try #require(found.first { $0.uuid == uart.receive }),
            try #require(found.first { $0.uuid == uart.transmit })
        )
        try await link.startNotifications(of: transmit) { _ in }
        return try await link.maximumWriteLength(of: receive)
    }

    /// Runs `body` when a link has been up and is lost, and bluetoothd takes its time with the next one.
    private static func afterALink(
        isBonded: Bool = true,
        _ body: @Sendable (isolated LoopActor, FakeBlueZ, BlueZCentral) async throws -> Void
    ) async throws {
        try await BlueZLinkTests.onBlueZ { actor, fake, central in
            // Somebody needs the service between links, too.
            let token = await central.observeState { _ in }
            await fake.set(FakeBlueZ.device, BlueZNames.device, ["Bonded": .bool(isBonded)])
            let link = try await central.connect(BlueZLinkTests.request)
            #expect(try await setUp(link) == 182)
            let losses = Arrival<GATTError>(actor.loop)
            await link.setDisconnectionHandler { losses.arrive($0) }
            await fake.loseLink()
            _ = await losses.get()
            await fake.setResolvesServices(false)
            for member in ["GattCharacteristic1.StartNotify", "Properties.Get MTU"] { await fake.forget(member) }
            try await body(actor, fake, central)
            withExtendedLifetime(token) {}
        }
    }

    @Test func `a bonded device is used before bluetoothd has looked through it`() async throws {
        try await Self.afterALink { _, fake, central in
            let link = try await central.connect(BlueZLinkTests.request)
            #expect(try await Self.setUp(link) == 182)
            _ = await fake.call(of: "GattCharacteristic1.StartNotify")
            // What was presumed is asked when it can be known.
            await fake.set(FakeBlueZ.device, BlueZNames.device, ["ServicesResolved": .bool(true)])
            _ = await fake.call(of: "Properties.Get MTU")
            await link.close()
        }
    }

    @Test func `a device without a bond is waited for`() async throws {
        try await Self.afterALink(isBonded: false) { actor, fake, central in
            let link = try await central.connect(BlueZLinkTests.request)
            let settingUp = Task {
                _ = actor
                return try await Self.setUp(link)
            }
            try await central.service.bus?.settle()
            #expect(await !fake.calls.suffix(1).contains("GattCharacteristic1.StartNotify"))
            await fake.set(FakeBlueZ.device, BlueZNames.device, ["ServicesResolved": .bool(true)])
            #expect(try await settingUp.value == 182)
            await link.close()
        }
    }

    @Test func `what fails before bluetoothd has looked is tried again after`() async throws {
        try await Self.afterALink { actor, fake, central in
            await fake.answer("GattCharacteristic1.StartNotify", .error("org.bluez.Error.Failed", "Not connected"))
            let link = try await central.connect(BlueZLinkTests.request)
            let settingUp = Task {
                _ = actor
                return try await Self.setUp(link)
            }
            _ = await fake.call(of: "GattCharacteristic1.StartNotify")
            await fake.set(FakeBlueZ.device, BlueZNames.device, ["ServicesResolved": .bool(true)])
            _ = await fake.call(of: "GattCharacteristic1.StartNotify")
            #expect(try await settingUp.value == 182)
            await link.close()
        }
    }

    @Test func `a link to a device that has changed is ended, and the next one waits`() async throws {
        try await Self.afterALink { actor, fake, central in
            let link = try await central.connect(BlueZLinkTests.request)
            _ = try await Self.setUp(link)
            let losses = Arrival<GATTError>(actor.loop)
            await link.setDisconnectionHandler { losses.arrive($0) }
            await fake.remove(FakeBlueZ.transmit)
            _ = await losses.get()
            #expect(await fake.calls.last == "Device1.Disconnect")
            await fake.setResolvesServices(true)
            let next = try await central.connect(BlueZLinkTests.request)
            #expect(try await Self.setUp(next) == 182)
            await next.close()
        }
    }
}
