// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import Testing

/// Subscribers.
struct SessionEventTests {
    static func advert(_ number: UInt8) -> Data { Data([0x80]) + Data(repeating: number, count: 32) }
    static func key(_ number: UInt8) -> PublicKey { PublicKey(Data(repeating: number, count: 32))! }
    /// P8 of the reference.
    static let heard = hex("8820ab1500aabbcc")

    @Test func `every subscriber gets everything, after the present state`() async throws {
        let bench = try await SessionBench.ready()
        let (first, second) = await (bench.session.events, bench.session.events)
        await bench.radio.say(Self.advert(1))
        for events in [first, second] {
            var iterator = events.makeAsyncIterator()
            #expect(await iterator.next() == .state(.ready, reason: nil))
            #expect(await iterator.next() == .advert(Self.key(1)))
        }
        await bench.session.stop()
    }

    @Test func `a slow subscriber loses the oldest, and is told how many`() async throws {
        let bench = try await SessionBench.ready()
        let events = await bench.session.events(buffer: 4)
        for number in 1...10 { await bench.radio.say(Self.advert(UInt8(number))) }
        await bench.flush()
        // The state, ten adverts and the flush's word were told, and four kept.
        #expect(await bench.session.counters.eventsDropped == 8)
        var iterator = events.makeAsyncIterator()
        for number in 8...10 { #expect(await iterator.next() == .advert(Self.key(UInt8(number)))) }
        #expect(await iterator.next() == .messagesWaiting)
        await bench.radio.say(Self.advert(11))
        #expect(await iterator.next() == .advert(Self.key(11)))
        #expect(await iterator.next() == .dropped(count: 8))
        await bench.session.stop()
    }

    @Test func `or the newest, and is told where they would have been`() async throws {
        let bench = try await SessionBench.ready()
        let events = await bench.session.events(buffer: 4, overflow: .dropNewest)
        for number in 1...10 { await bench.radio.say(Self.advert(UInt8(number))) }
        await bench.flush()
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next() == .state(.ready, reason: nil))
        for number in 1...3 { #expect(await iterator.next() == .advert(Self.key(UInt8(number)))) }
        await bench.radio.say(Self.advert(11))
        #expect(await iterator.next() == .dropped(count: 8))
        #expect(await iterator.next() == .advert(Self.key(11)))
        await bench.session.stop()
    }

    @Test func `packets heard can be left out`() async throws {
        let bench = try await SessionBench.ready()
        let some = await bench.session.events(buffer: 8, heardPackets: false)
        let all = await bench.session.events
        await bench.radio.say(Self.heard, Self.advert(1))
        var iterator = some.makeAsyncIterator()
        #expect(await iterator.next() == .state(.ready, reason: nil))
        #expect(await iterator.next() == .advert(Self.key(1)))
        #expect(await all.first { if case .heard = $0 { true } else { false } } != nil)
        await bench.session.stop()
    }

    @Test func `stopping ends the streams, a lost link does not`() async throws {
        let bench = try await SessionBench.ready()
        let events = await bench.session.events
        await bench.radio.vanish()
        #expect(await events.first { $0 == .state(.disconnected, reason: MeshError(.linkClosed, "")) } != nil)
        try await bench.session.start()
        #expect(await events.first { $0 == .state(.connecting, reason: nil) } != nil)
        await bench.session.stop()
        #expect(await events.first { _ in false } == nil)
    }

    @Test func `a subscriber that lets go is forgotten`() async throws {
        let bench = try await SessionBench.ready(settings: .quiet { $0.fetchesMessages = true })
        do {
            let events = await bench.session.events
            _ = await events.first { $0 == .state(.ready, reason: nil) }
        }
        // Told to nobody, so nobody loses it.
        for _ in 0..<3 { await bench.radio.say(Self.advert(1)) }
        #expect(try await bench.session.time() == Golden.date)
        #expect(await bench.session.counters.eventsDropped == 0)
        await bench.session.stop()
    }
}
