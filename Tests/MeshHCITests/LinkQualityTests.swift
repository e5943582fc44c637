// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

struct LinkQualityTests {
    @Test func `links that end in silence again and again are told, with what helps (R37)`() throws {
        var quality = LinkQuality()
        for second in [0, 600, 1_200] {
            #expect(quality.finding("hci1", now: .seconds(second)) == nil)
            quality.linkEnded(.connectionTimeout, now: .seconds(second))
        }
        let finding = try #require(quality.finding("hci1", now: .seconds(1_200)))
        #expect(finding.severity == .note && finding.subject == "hci1")
        #expect(finding.advice?.contains("WiFi") == true)
        // An hour later the first does not count any more.
        #expect(quality.finding("hci1", now: .seconds(3_600)) == nil)
    }

    @Test func `links that somebody ends say nothing of the air`() {
        var quality = LinkQuality()
        for _ in 0..<100 { quality.linkEnded(.remoteUserTerminated, now: .zero) }
        #expect(quality.finding("hci1", now: .zero) == nil)
        #expect(quality.ends == 100 && quality.silentEnds == 0)
    }

    @Test(.timeLimit(.minutes(10))) func `a controller counts its links' ends`() async throws {
        try await HCIBench.run { actor, bench in
            await bench.poweredOn()
            for _ in 0..<3 {
                let link = try await bench.connect()
                await bench.controller.loseLink(to: VirtualPeripheral.Settings().address)
                await until(actor.loop) { await link.end != nil }
            }
            await (try await bench.connect()).close()
            let host = await bench.host
            #expect(await host.quality.silentEnds == 3)
            #expect(await host.quality.ends == 4)
        }
    }
}
