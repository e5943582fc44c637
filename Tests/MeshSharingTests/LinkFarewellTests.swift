// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshRuntime
import Testing

@testable import MeshSharing

/// A link that the host ends while the radio is giving out a message.
@Suite(.timeLimit(.minutes(20)))
struct LinkFarewellTests {
    private static let next = MessageSharingTests.next

    /// The host has asked the radio for a message, and has no answer yet.
    private static func askForMessage(_ bench: isolated SharingBench) async throws {
        let radio = bench.radio
        _ = try await bench.event("frame.tx") {
            await radio.answer { $0 == next ? [] : AnsweringRadio.usual($0) }
            await radio.push(MessageSharingTests.waiting)
        }
        #expect(await radio.received.last == next)
    }

    @Test(arguments: [LinkCommand.disconnect, .release(for: nil), .reconnect])
    func `the message is waited for, and no other is asked for`(_ command: LinkCommand) async throws {
        try await SharingBench.run { bench in
            let radio = bench.radio
            let client = try await MessageSharingTests.client(bench, "app")
            try await Self.askForMessage(bench)
            await radio.queue([MessageSharingTests.message(2)])
            let questions = await radio.received.count { $0 == Self.next }
            let asked = bench.loop.now
            try await bench.perform(command)
            #expect(await radio.isConnected)
            let down = bench.bus.subscribe(EventFilter(types: ["link.down"]))
            await radio.push(MessageSharingTests.message(1))
            var events = down.makeAsyncIterator()
            _ = await events.next()
            #expect(await radio.received.count { $0 == Self.next } == questions)
            #expect(bench.loop.now == asked)
            #expect(try await MessageSharingTests.drain(client).first == MessageSharingTests.message(1))
        }
    }

    @Test func `a radio that gives out nothing does not hold up the end`() async throws {
        try await SharingBench.run { bench in
            _ = try await MessageSharingTests.client(bench, "app")
            try await Self.askForMessage(bench)
            let asked = bench.loop.now
            _ = try await bench.event("link.down") { try await bench.perform(.disconnect) }
            #expect(bench.loop.now == asked + ReconnectionCoordinator.farewell)
        }
    }

    @Test func `a link with nothing under way ends at once`() async throws {
        try await SharingBench.run { bench in
            _ = try await MessageSharingTests.client(bench, "app")
            let asked = bench.loop.now
            _ = try await bench.event("link.down") { try await bench.perform(.disconnect) }
            #expect(bench.loop.now == asked)
        }
    }
}
