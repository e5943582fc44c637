// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
internal import MeshTransportAPI

/// Tells everything that happens to everybody who wants to know, in one schema and one order.
///
/// The numbers of a run of the host begin where its start lies in time, so that they are higher than those of the runs
/// before: who comes back after a restart with a number of an earlier run learns that something was missed.
///
/// Publishing is a plain call and never waits: each subscriber has a bounded buffer and a policy for when it is full, so a
/// slow one delays nobody. The last ``ringCapacity`` events are kept for those who come back and say what they saw last;
/// frames are not, and cost one comparison while nobody listens to them.
///
/// Used on the loop's thread only; it is Sendable so that actors on the loop can share it.
public final class EventBus: @unchecked Sendable {
    private struct Entry {
        let filter: EventFilter
        /// Weak: a subscriber that goes without a word is found gone at the next event.
        weak var subscription: EventSubscription?
    }

    /// How many events are kept.
    public let ringCapacity: Int
    /// The sequence number of the last event. Before the first it is a number that no event has.
    public private(set) var lastSequence: UInt64
    private let start: UInt64
    let loop: EventLoop
    private let wallClock: () -> Duration
    private var entries: [Entry] = []
    private var framesAreWanted = false
    private var ring: [HostEvent] = []
    private var ringStart = 0
    /// The sequence number of the last event the ring has lost.
    private var lastForgotten: UInt64

    /// How many numbers a millisecond has: more than there are events in one, or a run could reach the numbers of the next.
    private static let numbersPerMillisecond: Int64 = 1 << 11
    /// The latest start that is told apart, in the year 2109. From there all numbers are below 2^53, beyond which readers of
    /// JSON that only know floating point confuse them.
    private static let latestStart: Int64 = 1 << 42 - 1 << 20

    /// `wallClock` gives the time since 1970-01-01 UTC.
    public init(loop: EventLoop, ringCapacity: Int = 4_096, wallClock: @escaping @Sendable () -> Duration) {
        self.loop = loop
        self.ringCapacity = max(1, ringCapacity)
        self.wallClock = wallClock
        start = UInt64(min(max(0, wallClock().milliseconds), Self.latestStart) * Self.numbersPerMillisecond)
        lastSequence = start
        lastForgotten = start
    }

    /// Whether an event of this type would reach anybody. For those whose payload is costly.
    public func hasSubscribers(for type: EventType) -> Bool {
        assert(loop.isOnLoop)
        if type.isFrame, !framesAreWanted { return false }
        return entries.contains { $0.subscription != nil && $0.filter.wants(type) }
    }

    /// Tells an event.
    public func publish(_ type: EventType, device: String? = nil, _ payload: HostEvent.Payload = .none) {
        assert(loop.isOnLoop)
        if type.isFrame, !framesAreWanted { return }
        lastSequence += 1
        let event = HostEvent(
            sequence: lastSequence, time: wallClock(), device: device, type: type, payload: payload)
        if !type.isFrame { keep(event) }
        var mustPrune = false
        for entry in entries where entry.filter.matches(type, device) {
            if let subscription = entry.subscription { subscription.offer(event) } else { mustPrune = true }
        }
        if mustPrune { prune() }
    }

    /// Subscribes; from here on nothing that matches is missed unless it is counted as dropped.
    ///
    /// With `since`, what happened after that sequence number comes first; with 0, what has happened in this run. If some of
    /// it is no longer known, or the number is of another run of the host, an event `bus.gap` stands before it. Such replayed
    /// events do not count towards `capacity`.
    public func subscribe(
        _ filter: EventFilter = EventFilter(), capacity: Int = 256, overflow: EventOverflow = .dropOldest,
        since: UInt64? = nil
    ) -> EventSubscription {
        assert(loop.isOnLoop)
        let missed = since.map { replay(after: $0, filter) } ?? []
        let subscription = EventSubscription(bus: self, capacity: max(1, capacity), overflow: overflow, replay: missed)
        entries.append(Entry(filter: filter, subscription: subscription))
        prune()
        return subscription
    }

    func unsubscribe(_ subscription: EventSubscription) {
        entries.removeAll { $0.subscription == nil || $0.subscription === subscription }
        prune()
    }

    /// A note to one subscriber, which the others do not get. It bears the number of the last event.
    func marker(_ type: EventType, _ data: JSONValue) -> HostEvent {
        HostEvent(sequence: lastSequence, time: wallClock(), device: nil, type: type, payload: .json(data))
    }

    private func prune() {
        entries.removeAll { $0.subscription == nil }
        framesAreWanted = entries.contains { entry in
            entry.filter.wants(.frameReceived) || entry.filter.wants(.frameSent)
                || entry.filter.types.contains { EventType($0).isFrame }
        }
    }

    private func keep(_ event: HostEvent) {
        if ring.count < ringCapacity {
            ring.append(event)
        } else {
            lastForgotten = ring[ringStart].sequence
            ring[ringStart] = event
            ringStart = (ringStart + 1) % ringCapacity
        }
    }

    private func replay(after sequence: UInt64, _ filter: EventFilter) -> [HostEvent] {
        // Of a run before this one, but for a clock that went back meanwhile.
        let isForeign = sequence > lastSequence
        var events: [HostEvent] = []
        if isForeign || (sequence == 0 ? start : sequence) < lastForgotten {
            let oldest = ring.isEmpty ? lastSequence : ring[ringStart].sequence
            events.append(
                marker(
                    "bus.gap",
                    [
                        "since": .int(Int64(clamping: sequence)), "oldest": .int(Int64(clamping: oldest)),
                        "newest": .int(Int64(clamping: lastSequence)),
                    ]))
        }
        for offset in ring.indices {
            let event = ring[(ringStart + offset) % ring.count]
            if isForeign || event.sequence > sequence, filter.matches(event.type, event.device) {
                events.append(event)
            }
        }
        return events
    }
}
