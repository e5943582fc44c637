// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshLoop
import MeshRuntime
import MeshTransportAPI
import Testing

@testable import MeshSharing

/// A radio that has restarted is greeted anew, whether or not its link has shown it.
@Suite(.timeLimit(.minutes(20)))
struct RadioRestartTests {
    private static let ok = Data([0x00])
    private static let reset = Data([0x33]) + Data("reset".utf8)

    @Test(arguments: [PipeliningTests.reboot, reset], [false, true])
    func `one that says that it will restart is greeted anew, whether its asker waits or not`(
        _ command: Data, _ leaves: Bool
    ) async throws {
        try await SharingBench.run(share: { $0.role = .owner }) { bench in
            let radio = bench.radio
            await radio.answer { $0 == command ? [] : AnsweringRadio.usual($0) }
            let client = try await bench.client()
            _ = try await client.ask(RadioSessionTests.getCore)
            let ready = bench.bus.subscribe(EventFilter(types: ["link.ready"]))
            let down = try await bench.event("link.down") {
                _ = try await bench.event("frame.tx") { try await client.send(command) }
                if leaves { _ = try await bench.event("client.leave") { await client.close() } }
                await radio.push(Self.ok)
            }
            #expect(down.data["code"]?.stringValue == "link.closed")
            var events = ready.makeAsyncIterator()
            _ = await events.next()
            if leaves { return }
            #expect(await client.next() == Self.ok)
            #expect(try await client.ask(RadioSessionTests.getCore) == RadioSessionTests.core)
        }
    }

    @Test func `one that refuses to restart keeps its link`() async throws {
        try await SharingBench.run(share: { $0.role = .owner }) { bench in
            let client = try await bench.client()
            #expect(try await client.ask(PipeliningTests.reboot) == Data([0x01, 0x01]))
            #expect(try await client.ask(RadioSessionTests.getCore) == RadioSessionTests.core)
            #expect(await bench.radio.connects == 1)
        }
    }
}
