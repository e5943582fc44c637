// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

/// Several who want one controller: none of them waits for a device that is not there.
struct HCITurnTests {
    private static let roof = VirtualPeripheral.Settings()
    private static let barn: VirtualPeripheral.Settings = {
        var radio = VirtualPeripheral.Settings()
        radio.address = DeviceAddress(0xC0FF_FFFF_0001, .random)
        radio.name = "Barn"
        return radio
    }()

    /// With both radios, of which Roof is not there.
    private static func run(_ body: @Sendable (isolated LoopActor, HCIBench) async throws -> Void) async throws {
        try await HCIBench.run(radios: [roof, barn]) { actor, bench in
            await bench.poweredOn()
            await bench.controller.configure { $0.peers[0].isAdvertising = false }
            try await body(actor, bench)
        }
    }

    private static func attempt(
        _ actor: isolated LoopActor, _ bench: HCIBench, _ radio: VirtualPeripheral.Settings
    ) -> Task<HCILink?, Never> {
        Task(executorPreference: actor.loop.taskExecutor) {
            _ = actor
            return try? await bench.connect(radio)
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `a device is found in the keys while another is waited for`() async throws {
        try await Self.run { actor, bench in
            let bond = Bond(
                peer: Self.barn.address, centralKey: nil, peripheralKey: nil, isAuthenticated: false,
                isSecureConnections: true)
            await bench.host.here { $0.book[VirtualController.address, bond.peer] = bond }
            let waiting = Self.attempt(actor, bench, Self.roof)
            await until(actor.loop) { await bench.controller.initiating != nil }
            var settings = BLETransportSettings(target: .name("Barn"))
            settings.connectionTimeout = HCIBench.phaseTimeout
            let wasBonded = try await bench.host.unpair(.name("Barn"), settings)
            #expect(wasBonded)
            waiting.cancel()
            #expect(await waiting.value == nil)
            #expect(await bench.host.leftOver(credits: 8) == [])
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `of two attempts that begin together, the one at a device that is there succeeds`() async throws {
        try await Self.run { actor, bench in
            let waiting = Self.attempt(actor, bench, Self.roof)
            let link = Self.attempt(actor, bench, Self.barn)
            let barn = try #require(await link.value)
            await barn.close()
            waiting.cancel()
            #expect(await waiting.value == nil)
            #expect(await bench.host.leftOver(credits: 8) == [])
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `a pairing by order that finds the device being connected uses that link`() async throws {
        try await Self.run { actor, bench in
            let own = Self.attempt(actor, bench, Self.roof)
            await until(actor.loop) { await bench.controller.initiating != nil }
            let target = BLETarget.address(BLEAddress(Self.roof.address))
            var settings = BLETransportSettings(target: target)
            settings.connectionTimeout = .seconds(600)
            settings.pairingTimeout = .seconds(600)
            let order = Task(executorPreference: actor.loop.taskExecutor) { [settings] () -> PairingReport? in
                _ = actor
                let request = GATTConnectRequest(
                    target: target, passkey: nil, service: VirtualPeripheral.profile.service)
                return try? await bench.host.pair(request, settings, HCILinkOptions())
            }
            // Both listen by now.
            await until(actor.loop) { await bench.host.seekers.count == 2 }
            await bench.controller.heal()
            #expect(await order.value?.wasBonded == false)
            // Whoever was faster: the other has used that link, or comes after it.
            own.cancel()
            await own.value?.close()
            await until(actor.loop) { await bench.controller.linkCount == 0 }
            #expect(await bench.host.leftOver(credits: 8) == [])
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `a link whose end was not told ends when its handle comes again`() async throws {
        try await HCIBench.run(radios: [Self.roof, Self.barn]) { actor, bench in
            await bench.poweredOn()
            let lost = try await bench.connect(Self.roof)
            let receive = try await bench.discover(lost).receive
            await bench.controller.configure {
                $0.isSilent = true; $0.framesUntilSilence = 0
            }
            let request = Task(executorPreference: actor.loop.taskExecutor) { () -> GATTError? in
                _ = actor
                do {
                    try await lost.write(.init([1]), to: receive, withResponse: true)
                    return nil
                } catch {
                    return error as? GATTError
                }
            }
            await until(actor.loop) { await bench.controller.frameCount == 1 }
            await bench.controller.configure {
                $0.framesUntilSilence = nil
                $0.isSilent = false
                $0.links.removeLast().peer.linkEnded()
                $0.nextHandle = lost.handle.rawValue
            }
            let link = try await bench.connect(Self.barn)
            #expect(link.handle == lost.handle)
            #expect(await request.value?.reason == .linkLost)
            #expect(lost.here { $0.end != nil })
            _ = try await bench.discover(link)
            await lost.close()
            await link.close()
            #expect(await bench.host.leftOver(credits: 8) == [])
        }
    }
}
