// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import Testing

@testable import MeshHCITransport

/// Links that end in the middle of traffic.
struct HCIDisconnectionTests {
    /// To see that nothing holds it.
    private struct WeakLink {
        weak var link: HCILink?
    }

    @Test(.timeLimit(.minutes(10)))
    func `a thousand disconnects in bursts leave every buffer free, and nothing behind`() async throws {
        var settings = VirtualController.Settings()
        settings.bufferCount = 4
        settings.bufferLength = 27
        try await HCIBench.run(settings) { actor, bench in
            await bench.poweredOn()
            let host = await bench.host
            let inUse = actor.loop.openHandles.sorted()
            var random = SplitMix(state: 27)
            var links: [WeakLink] = []
            for round in 0..<1_000 {
                let credits: VirtualController.Credits = [.atOnce, .together(3), .whenTold][round % 3]
                await bench.controller.configure { $0.settings.credits = .atOnce }
                let link = try await bench.connect()
                links.append(WeakLink(link: link))
                let receive = try await bench.discover(link).receive
                let packets = Int.random(in: 0..<8, using: &random)
                let lostAfter = credits == .whenTold ? packets % 4 : packets
                await bench.controller.configure {
                    $0.settings.credits = credits
                    $0.packetsUntilLoss = lostAfter
                }
                do {
                    // More than a link's queue takes, so that writers wait when it ends.
                    for count in 0... {
                        try await link.write(
                            Data(repeating: UInt8(truncatingIfNeeded: count), count: 500), to: receive,
                            withResponse: false)
                    }
                } catch let error as GATTError {
                    #expect(error.reason == .linkLost)
                }
                let left = await host.leftOver(credits: 4)
                #expect(left == [], "round \(round)")
            }
            #expect(await bench.controller.overruns == 0)
            await until(actor.loop) { links.allSatisfy { $0.link == nil } && actor.loop.openHandles.sorted() == inUse }
        }
    }
}
