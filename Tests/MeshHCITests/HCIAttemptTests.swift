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

/// Attempts that are given up.
struct HCIAttemptTests {
    /// An attempt at a radio that is not there, and the moment when the controller looks for it.
    private func begin(_ actor: isolated LoopActor, _ bench: HCIBench) async -> Task<GATTError?, Never> {
        await bench.poweredOn()
        await bench.controller.configure { $0.peers[0].isAdvertising = false }
        return await bench.beginAttempt()
    }

    @Test(.timeLimit(.minutes(10)))
    func `an attempt that is cancelled ends with its Connection Complete, not before`() async throws {
        try await HCIBench.run { actor, bench in
            let attempt = await begin(actor, bench)
            await bench.controller.configure { $0.holdsCancellations = true }
            attempt.cancel()
            await until(actor.loop) { await bench.controller.commands.last == .createConnectionCancel }
            // Whatever the answer to the command leads to is over by then.
            for _ in 0..<20 { await Task.yield() }
            #expect(await bench.host.leftOver(credits: 8) == ["somebody waits"])
            await bench.controller.configure {
                $0.holdsCancellations = false
                $0.send(.connectionComplete(.unknownConnection))
            }
            #expect(await attempt.value?.reason == .cancelled)
            await bench.controller.heal()
            await (try await bench.connect()).close()
            #expect(await bench.host.leftOver(credits: 8) == [])
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `a link that is made while it is cancelled is closed`() async throws {
        try await HCIBench.run { actor, bench in
            let attempt = await begin(actor, bench)
            await bench.controller.configure { $0.cancelsTooLate = true }
            attempt.cancel()
            #expect(await attempt.value?.reason == .cancelled)
            #expect(await bench.controller.linkCount == 0)
            #expect(await bench.controller.commands.suffix(2) == [.createConnectionCancel, .disconnect])
            await bench.controller.configure { $0.cancelsTooLate = false }
            await (try await bench.connect()).close()
            #expect(await bench.host.leftOver(credits: 8) == [])
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `a controller that does not tell the end of an attempt is reset`() async throws {
        try await HCIBench.run { actor, bench in
            let attempt = await begin(actor, bench)
            await bench.controller.configure { $0.holdsCancellations = true }
            attempt.cancel()
            #expect(await attempt.value?.reason != nil)
            await bench.controller.configure { $0.holdsCancellations = false }
            await bench.controller.heal()
            await bench.poweredOn()
            #expect(await bench.controller.commands.count { $0 == .reset } == 2)
            await (try await bench.connect()).close()
        }
    }

    /// Requests that a caller gives up while the radio is silent: of the set-up, and of the link.
    @Test(.timeLimit(.minutes(10)), arguments: [0, 1, 2, 3])
    func `a request that is cancelled ends its link`(answered: Int) async throws {
        // No deadline of the stack may come first.
        try await HCIBench.run(deadlines: HCIDeadlines()) { actor, bench in
            await bench.poweredOn()
            await bench.controller.configure { $0.framesUntilSilence = answered }
            let attempt = Task(executorPreference: actor.loop.taskExecutor) { () -> GATTError? in
                _ = actor
                do {
                    let link = try await bench.connect()
                    let found = try await bench.discover(link)
                    try await link.startNotifications(of: found.transmit) { _ in }
                    return nil
                } catch {
                    return error as? GATTError
                }
            }
            await until(actor.loop) { await bench.controller.isSilent }
            attempt.cancel()
            #expect(await attempt.value?.reason == .cancelled)
            await until(actor.loop) { await bench.controller.linkCount == 0 }
            await bench.controller.configure { $0.framesUntilSilence = nil }
            await (try await bench.connect()).close()
            #expect(await bench.host.leftOver(credits: 8) == [])
        }
    }

    /// What asks whether known handles are good still is a request as any other.
    @Test(.timeLimit(.minutes(10)))
    func `a check of known attributes that is cancelled ends its link`() async throws {
        // No deadline of the stack may come first.
        try await HCIBench.run(deadlines: HCIDeadlines()) { actor, bench in
            await bench.poweredOn()
            await bench.host.here {
                $0.databases[VirtualPeripheral.Settings().address] = RemoteDatabase(
                    tag: .hash([UInt8](repeating: 1, count: 16)))
            }
            let link = try await bench.connect()
            await bench.controller.configure { $0.framesUntilSilence = 0 }
            let discovery = Task(executorPreference: actor.loop.taskExecutor) { () -> GATTError? in
                _ = actor
                do {
                    _ = try await bench.discover(link)
                    return nil
                } catch {
                    return error as? GATTError
                }
            }
            await until(actor.loop) { await bench.controller.isSilent }
            let begun = actor.loop.now
            discovery.cancel()
            #expect(await discovery.value?.reason == .cancelled)
            #expect(actor.loop.now == begun)
            await link.close()
            #expect(await bench.controller.linkCount == 0)
        }
    }

    @Test(.timeLimit(.minutes(10)))
    func `a link to a bonded radio that ends with its beginning is an error`() async throws {
        var radio = VirtualPeripheral.Settings()
        radio.passkey = 123_456
        try await HCIBench.run(radios: [radio]) { [radio] actor, bench in
            await bench.poweredOn()
            let link = try await bench.connect(radio)
            _ = try await link.pair()
            _ = try await bench.discover(link)
            await link.close()
            // Both events in one reading of the line.
            await bench.controller.configure { $0.setFault(.linkLostAfter, at: $0.sent.count + 1) }
            await #expect(throws: GATTError.self) { try await bench.connect(radio) }
            await (try await bench.connect(radio)).close()
        }
    }
}
