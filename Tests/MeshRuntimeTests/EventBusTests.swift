// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshRuntime

struct EventBusTests {
    /// Runs `body` on a loop, with a bus.
    private func withBus(
        ring: Int = 4_096, _ body: @escaping @Sendable (isolated LoopActor, EventBus) async throws -> Void
    ) async throws {
        let thread = LoopThread()
        let bus = EventBus(loop: thread.loop, ringCapacity: ring) { .milliseconds(1_772_366_400_250) }
        try await LoopActor(thread.loop).run { try await body($0, bus) }
        try await thread.shutDown()
    }

    /// What is there to take now, as `type` or `type:count`.
    private static func rest(of subscription: EventSubscription) -> [String] {
        var types: [String] = []
        while let event = subscription.takeIfPresent() {
            types.append(event.type.name + (event.data["count"]?.intValue.map { ":\($0)" } ?? ""))
        }
        return types
    }

    @Test func `an event has the six members of the schema`() async throws {
        try await withBus { _, bus in
            let subscription = bus.subscribe()
            bus.publish("link.up", device: "roof", .json(["generation": 1]))
            let event = try #require(subscription.takeIfPresent())
            let text = """
                {"data":{"generation":1},"device":"roof","seq":3629806387712001,"ts":"2026-03-01T12:00:00.250Z","type":"link.up","v":1}
                """
            #expect(event.json.text() == text)
            bus.publish("host.started")
            #expect(subscription.takeIfPresent()?.json["device"] == .null)
        }
    }

    @Test func `filters take types, families and devices`() async throws {
        try await withBus { _, bus in
            let family = bus.subscribe(EventFilter(types: ["link"]))
            let exact = bus.subscribe(EventFilter(types: ["link.up", "host"]))
            let device = bus.subscribe(EventFilter(devices: ["roof"]))
            for type in ["link.up", "link.down", "linkage.up", "host"] as [EventType] {
                bus.publish(type, device: type == "link.down" ? "roof" : "hill")
            }
            bus.publish("link.up")
            #expect(Self.rest(of: family) == ["link.up", "link.down", "link.up"])
            #expect(Self.rest(of: exact) == ["link.up", "host", "link.up"])
            #expect(Self.rest(of: device) == ["link.down"])
        }
    }

    @Test func `frames go only to those who name them, and cost nothing else`() async throws {
        try await withBus { _, bus in
            let start = bus.lastSequence
            let all = bus.subscribe()
            #expect(!bus.hasSubscribers(for: .frameReceived))
            bus.publish(.frameReceived, device: "roof", .frame(Data([1, 0xAB])))
            #expect(bus.lastSequence == start)
            var frames: EventSubscription? = bus.subscribe(EventFilter(types: ["frame.rx"]))
            #expect(bus.hasSubscribers(for: .frameReceived))
            #expect(!bus.hasSubscribers(for: .frameSent))
            bus.publish(.frameReceived, device: "roof", .frame(Data([1, 0xAB])))
            #expect(frames?.takeIfPresent()?.data == ["hex": "01ab", "length": 2])
            #expect(Self.rest(of: all) == [])
            // Not kept either.
            let late = bus.subscribe(EventFilter(types: ["frame"]), since: 0)
            #expect(Self.rest(of: late) == [])
            late.cancel()
            frames = nil
            #expect(!bus.hasSubscribers(for: .frameReceived))
            bus.publish(.frameReceived, .frame(Data()))
            let before = bus.lastSequence
            bus.publish(.frameReceived, .frame(Data()))
            #expect(bus.lastSequence == before)
        }
    }

    @Test func `a full buffer drops the oldest and says so first`() async throws {
        try await withBus { _, bus in
            let subscription = bus.subscribe(capacity: 3, overflow: .dropOldest)
            for number in 1...5 { bus.publish(EventType("e.\(number)")) }
            #expect(subscription.droppedCount == 2)
            #expect(Self.rest(of: subscription) == ["bus.dropped:2", "e.3", "e.4", "e.5"])
            bus.publish("e.6")
            #expect(Self.rest(of: subscription) == ["e.6"])
        }
    }

    @Test func `a full buffer drops the newest and says so where they are missing`() async throws {
        try await withBus { _, bus in
            let subscription = bus.subscribe(capacity: 2, overflow: .dropNewest)
            for number in 1...5 { bus.publish(EventType("e.\(number)")) }
            #expect(subscription.takeIfPresent()?.type == "e.1")
            bus.publish("e.6")
            #expect(Self.rest(of: subscription) == ["e.2", "bus.dropped:3", "e.6"])
            for number in 1...3 { bus.publish(EventType("f.\(number)")) }
            #expect(Self.rest(of: subscription) == ["f.1", "f.2", "bus.dropped:1"])
            #expect(subscription.droppedCount == 4)
        }
    }

    @Test func `a full buffer ends the subscription if that was asked for`() async throws {
        try await withBus { _, bus in
            let subscription = bus.subscribe(capacity: 2, overflow: .end)
            for number in 1...5 { bus.publish(EventType("e.\(number)")) }
            var seen: [String] = []
            for await event in subscription { seen.append(event.type.name) }
            #expect(seen == ["e.1", "e.2", "bus.dropped"])
            #expect(!bus.hasSubscribers(for: "e"))
        }
    }

    @Test func `since replays what came after`() async throws {
        try await withBus { _, bus in
            let start = bus.lastSequence
            for number in 1...5 { bus.publish(EventType("e.\(number)")) }
            #expect(Self.rest(of: bus.subscribe(capacity: 1, since: start + 2)) == ["e.3", "e.4", "e.5"])
            #expect(Self.rest(of: bus.subscribe(since: start + 5)) == [])
            #expect(Self.rest(of: bus.subscribe(since: start)) == ["e.1", "e.2", "e.3", "e.4", "e.5"])
            #expect(Self.rest(of: bus.subscribe(EventFilter(types: ["e.4"]), since: 0)) == ["e.4"])
            let subscription = bus.subscribe(capacity: 1, since: start + 3)
            bus.publish("e.6")
            bus.publish("e.7")
            #expect(Self.rest(of: subscription) == ["e.4", "e.5", "bus.dropped:1", "e.7"])
        }
    }

    @Test func `since older than the ring says what is missing`() async throws {
        try await withBus(ring: 3) { _, bus in
            let start = bus.lastSequence
            for number in 1...5 { bus.publish(EventType("e.\(number)")) }
            let subscription = bus.subscribe(since: start + 1)
            let gap = subscription.takeIfPresent()
            #expect(gap?.type == "bus.gap")
            let (since, oldest, newest) = (Int64(start + 1), Int64(start + 3), Int64(start + 5))
            #expect(gap?.data == ["since": .int(since), "oldest": .int(oldest), "newest": .int(newest)])
            #expect(Self.rest(of: subscription) == ["e.3", "e.4", "e.5"])
            #expect(Self.rest(of: bus.subscribe(since: start + 2)) == ["e.3", "e.4", "e.5"])
            #expect(Self.rest(of: bus.subscribe(since: 0)) == ["bus.gap", "e.3", "e.4", "e.5"])
        }
    }

    /// The number of the last of three events in a run that began at this time.
    private static func lastOfRun(at start: Duration, on loop: EventLoop) -> UInt64 {
        let bus = EventBus(loop: loop) { start }
        for _ in 0..<3 { bus.publish("e") }
        return bus.lastSequence
    }

    @Test(arguments: [-1_000_000, -1, 1, 1_000_000])
    func `a number of another run gives a gap and all that is known`(_ milliseconds: Int64) async throws {
        try await withBus { actor, bus in
            // More events than the other run had: the number would be one of these if they began at 1.
            for number in 1...5 { bus.publish(EventType("e.\(number)")) }
            let other = Self.lastOfRun(
                at: .milliseconds(1_772_366_400_250 + milliseconds), on: actor.loop)
            #expect(Self.rest(of: bus.subscribe(since: other)) == ["bus.gap", "e.1", "e.2", "e.3", "e.4", "e.5"])
        }
    }

    @Test func `numbers are such as every reader of JSON has, whatever the clock says`() async throws {
        try await withBus { actor, _ in
            for clock: Duration in [
                .seconds(Int64.min / 2), .zero, .seconds(4_000_000_000), .seconds(Int64.max / 2_000),
            ] {
                let last = Self.lastOfRun(at: clock, on: actor.loop)
                #expect(last >= 3 && last < 1 << 53)
            }
        }
    }

    @Test func `a waiting consumer wakes with each event and ends with its task`() async throws {
        let thread = LoopThread()
        let bus = EventBus(loop: thread.loop) { .zero }
        let actor = LoopActor(thread.loop)
        let seen = Inbox<String>(thread.loop)
        let subscription = await actor.run { _ in bus.subscribe() }
        let consumer = Task {
            await actor.run { _ in
                for await event in subscription { await seen.put(event.type.name) }
                await seen.put("end")
            }
        }
        for number in 1...100 {
            await actor.run { _ in bus.publish(EventType("e.\(number)")) }
            #expect(await seen.take() == "e.\(number)")
        }
        consumer.cancel()
        #expect(await seen.take() == "end")
        #expect(await actor.run { _ in bus.hasSubscribers(for: "e") } == false)
        await consumer.value
        try await thread.shutDown()
    }

    @Test(arguments: 1...20)
    func `events are taken in order and those missing are counted`(_ seed: UInt64) async throws {
        try await withBus { _, bus in
            var generator = SplitMix(state: seed)
            let overflow: EventOverflow = Bool.random(using: &generator) ? .dropOldest : .dropNewest
            let capacity = Int.random(in: 1...200, using: &generator)
            let subscription = bus.subscribe(capacity: capacity, overflow: overflow)
            var last = bus.lastSequence
            func take() {
                guard let event = subscription.takeIfPresent() else { return }
                if event.type == "bus.dropped" {
                    last += UInt64(event.data["count"]?.intValue ?? 0)
                } else {
                    #expect(event.sequence == last + 1, "seed \(seed)")
                    last = event.sequence
                }
            }
            for _ in 0..<2_000 {
                if Int.random(in: 0..<5, using: &generator) < 3 { bus.publish("e") } else { take() }
                #expect(subscription.count <= capacity + 1)
            }
            while last < bus.lastSequence { take() }
        }
    }

    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"), (951_782_399_999, "2000-02-28T23:59:59.999Z"),
        (951_868_799_000, "2000-02-29T23:59:59.000Z"), (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        (1_709_251_199_001, "2024-02-29T23:59:59.001Z"), (-5, "1970-01-01T00:00:00.000Z"),
    ])
    func `time is written as RFC 3339`(_ milliseconds: Int, _ text: String) {
        #expect(RFC3339.text(sinceEpoch: .milliseconds(milliseconds)) == text)
    }
}
