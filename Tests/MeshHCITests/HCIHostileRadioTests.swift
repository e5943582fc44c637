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
            let transport = bench.transport(radio) {
                if case .down(let reason) = $0 { continuation.yield(reason) }
            }
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
}
