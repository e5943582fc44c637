// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Synchronization
import Testing

@testable import MeshHCITransport

/// Radios that mean harm, and noise that looks as if they did: neither costs anybody more than the link that it is on.
struct HCIHostileRadioTests {
    private static func radio(passkey: UInt32? = 123_456) -> VirtualPeripheral.Settings {
        var radio = VirtualPeripheral.Settings()
        radio.passkey = passkey
        return radio
    }

    @Test(.timeLimit(.minutes(10)))
    func `a damaged packet on a link that the keys have encrypted says nothing of the keys`() async throws {
        let radio = Self.radio()
        try await HCIBench.run(radios: [radio]) { [radio] actor, bench in
            let (downs, continuation) = AsyncStream.makeStream(of: MeshError?.self)
            let transport = bench.transport(
                radio,
                events: {
                    if case .down(let reason) = $0 { continuation.yield(reason) }
                })
            var down = downs.makeAsyncIterator()
            // Paired on the link, and encrypted with what was stored.
            for _ in 0..<2 {
                try await transport.connect()
                try await transport.send(Data([1, 2, 3]))
                await bench.controller.loseLink(to: radio.address, .integrityFailure)
                let reason = try #require(await down.next() ?? nil)
                #expect(reason.code == .linkClosed)
                #expect(reason.code.disposition == .transient)
            }
            try await transport.connect()
            #expect(await transport.diagnostics()["pairings"] == 1)
            await transport.disconnect()
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `a radio that wants to be missed late, and goes, costs the others nothing`() async throws {
        let radio = Self.radio(passkey: nil)
        var other = radio
        (other.address, other.name) = (DeviceAddress(0xC011_2233_4466, .random), "Barn")
        try await HCIBench.run(radios: [radio, other]) { [radio, other] actor, bench in
            await bench.poweredOn()
            let link = try await bench.connect(radio)
            try await link.startNotifications(of: try await bench.discover(link).transmit) { _ in }
            let bystander = try await bench.connect(other)
            try await bystander.startNotifications(of: try await bench.discover(bystander).transmit) { _ in }
            await bench.controller.askForParameters(
                radio.address,
                .init(minimumInterval: 24, maximumInterval: 24, latency: 4, supervisionTimeout: 3200))
            await until(actor.loop) { link.here { $0.machine.parameters.latency == 4 } }
            // More is not granted.
            #expect(link.here { $0.machine.parameters.supervisionTimeout } == 1000)
            // Out of range: the controller tells the end when the supervision timeout is over.
            await bench.controller.configure { $0.holdsEnds = true }
            let closing = Task(executorPreference: actor.loop.taskExecutor) {
                _ = actor
                await link.close()
            }
            try await actor.loop.sleep(for: .seconds(10))
            #expect(await bystander.end == nil)
            await bench.controller.loseLink(to: radio.address)
            await closing.value
            await bench.controller.configure { $0.holdsEnds = false }
            #expect(await bystander.end == nil)
            await bystander.close()
        }
    }

    /// The bonds that the host has.
    private static func bonds(_ bench: HCIBench) async -> [Bond] {
        await bench.host.here { $0.book.bonds.values.flatMap(\.values) }
    }

    /// Pairs because the radio asks for it, and ends the link.
    private static func pair(_ radio: VirtualPeripheral.Settings, _ bench: HCIBench) async throws {
        let transport = bench.transport(radio)
        try await transport.connect()
        await bench.controller.askForSecurity(radio.address)
        try await bench.loop.sleep(for: .seconds(1))
        await transport.disconnect()
    }

    @Test(.timeLimit(.minutes(10)))
    func `a radio that says it is another does not get that one's place in the keys`() async throws {
        let radio = Self.radio()
        var hostile = Self.radio(passkey: nil)
        (hostile.address, hostile.name) = (DeviceAddress(0xC011_2233_4466, .random), "Shed")
        hostile.identity = radio.address
        hostile.resolvingKey = [UInt8](repeating: 7, count: 16)
        try await HCIBench.run(radios: [radio, hostile]) { [radio, hostile] actor, bench in
            let transport = bench.transport(radio)
            try await transport.connect()
            await transport.disconnect()
            let before = await Self.bonds(bench)
            #expect(before.map(\.peer) == [radio.address])
            try await Self.pair(hostile, bench)
            let after = await Self.bonds(bench)
            #expect(after.first { $0.peer == radio.address } == before.first)
            // By the address that it has, and without a key that would make it another at the next one.
            let own = try #require(after.first { $0.peer == hostile.address })
            #expect(own.peerResolvingKey == nil)
            #expect(after.count == 2)
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `the same from a private address, whose key is its own`() async throws {
        let radio = Self.radio(passkey: nil)
        var hostile = radio
        hostile.name = "Shed"
        hostile.identity = radio.address
        hostile.resolvingKey = [UInt8](repeating: 7, count: 16)
        hostile.address = try ResolvableAddress.make(key: hostile.resolvingKey, random: 0x12_3456)
        try await HCIBench.run(radios: [radio, hostile]) { [radio, hostile] actor, bench in
            try await Self.pair(radio, bench)
            let before = await Self.bonds(bench)
            #expect(before.count == 1)
            try await Self.pair(hostile, bench)
            #expect(await Self.bonds(bench) == before)
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `a radio that gives another address than it uses is paired with once, and found in the keys`() async throws {
        var radio = Self.radio()
        radio.identity = DeviceAddress(0x0011_2233_4455, .public)
        try await HCIBench.run(radios: [radio]) { [radio] actor, bench in
            let transport = bench.transport(radio)
            for _ in 0..<3 {
                try await transport.connect()
                await transport.disconnect()
            }
            #expect(await transport.diagnostics()["pairings"] == 1)
            let wasBonded = try await bench.host.removeBond(.address(BLEAddress(radio.address)))
            #expect(wasBonded)
            #expect(await Self.bonds(bench).isEmpty)
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `a radio that has lost its keys cannot have them made anew by asking`() async throws {
        let radio = Self.radio(passkey: nil)
        try await HCIBench.run(radios: [radio]) { [radio] actor, bench in
            try await Self.pair(radio, bench)
            let before = await Self.bonds(bench)
            #expect(before.count == 1)
            await bench.controller.configure { controller in
                for peer in controller.peers {
                    peer.bond = nil
                    peer.asksWhenKeysAreMissing = true
                }
            }
            let error = try #require(await failure(of: bench.transport(radio)))
            #expect(error.code == .authenticationFailed)
            #expect(await Self.bonds(bench) == before)
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `who is not to be paired with is not, whatever the radio asks for`() async throws {
        let radio = Self.radio(passkey: nil)
        try await HCIBench.run(radios: [radio]) { [radio] actor, bench in
            let transport = bench.transport(radio, { $0.pairing = .never })
            try await transport.connect()
            await bench.controller.askForSecurity(radio.address)
            try await actor.loop.sleep(for: .seconds(1))
            #expect(await Self.bonds(bench).isEmpty)
            #expect(await transport.isConnected)
            await transport.disconnect()
        }
    }

    @Test(.timeLimit(.minutes(10))) func `a radio cannot have one pairing follow the other`() async throws {
        let radio = Self.radio(passkey: nil)
        try await HCIBench.run(radios: [radio]) { [radio] actor, bench in
            var keys: Set<[UInt8]> = []
            for _ in 0..<2 {
                let transport = bench.transport(radio)
                try await transport.connect()
                for _ in 0..<5 {
                    // With a passkey, it says.
                    await bench.controller.sendFrame(
                        L2CAPFrame(channel: L2CAPFrame.securityChannel, payload: [0x0B, 0x0D]), of: radio.address)
                    try await actor.loop.sleep(for: .seconds(1))
                    for bond in await Self.bonds(bench) { keys.insert(bond.centralKey?.key ?? []) }
                }
                await transport.disconnect()
            }
            #expect(keys.count == 1)
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `a stranger with the name of a radio that is paired is nobody`() async throws {
        let radio = Self.radio()
        var stranger = Self.radio(passkey: 999_999)
        stranger.address = DeviceAddress(0xC011_2233_4466, .random)
        try await HCIBench.run(radios: [radio, stranger]) { [radio, stranger] actor, bench in
            func leaveAlone(_ radio: VirtualPeripheral.Settings) async {
                await bench.controller.configure { controller in
                    for peer in controller.peers { peer.isAdvertising = peer.settings.address == radio.address }
                }
            }
            await leaveAlone(radio)
            let transport = bench.transport(radio)
            try await transport.connect()
            await transport.disconnect()
            await leaveAlone(stranger)
            #expect(await failure(of: transport)?.code.disposition == .transient)
            // After a restart nothing is known but the keys.
            await bench.host.here { $0.found = [:] }
            #expect(await failure(of: transport)?.code.disposition == .transient)
            await leaveAlone(radio)
            try await transport.connect()
            #expect(await transport.diagnostics()["pairings"] == 1)
            await transport.disconnect()
            // A radio in the place of another: when that one is forgotten.
            let wasBonded = try await bench.host.removeBond(.name(radio.name))
            #expect(wasBonded)
            await leaveAlone(stranger)
            try await bench.transport(stranger).connect()
            #expect(await Self.bonds(bench).map(\.peer) == [stranger.address])
        }
    }

    @Test(.timeLimit(.minutes(10)), arguments: [SMPFailureReason.unspecified, .repeatedAttempts])
    func `a pairing that fails for no reason that stays is tried again`(reason: SMPFailureReason) async throws {
        let radio = Self.radio()
        try await HCIBench.run(radios: [radio]) { [radio] actor, bench in
            await bench.controller.configure { $0.peers[0].rejections = [reason, reason] }
            let transport = bench.transport(radio)
            let first = try #require(await failure(of: transport))
            #expect(first.code.disposition == .transient, "\(first.message)")
            let second = try #require(await failure(of: transport))
            #expect(second.code.disposition == (reason == .unspecified ? .permanent : .transient), "\(second.message)")
            try await transport.connect()
            await transport.disconnect()
        }
    }

    private func failure(of transport: BLETransport) async -> MeshError? {
        do {
            try await transport.connect()
            return nil
        } catch {
            return error as? MeshError
        }
    }
}
