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
}
