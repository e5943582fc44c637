// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
internal import MeshTransportAPI

/// Tells everything that happens to everybody who wants to know, in one schema and one order.
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
    /// The sequence number of the last event; 0 before the first.
    public private(set) var lastSequence: UInt64 = 0
    let loop: MeshLoop
    private let wallClock: () -> Duration
    private var entries: [Entry] = []
    private var framesAreWanted = false
    private var ring: [HostEvent] = []
    private var ringStart = 0
    /// The sequence number of the last event the ring has lost.
    private var lastForgotten: UInt64 = 0

    /// `wallClock` gives the time since 1970-01-01 UTC.
    public init(loop: MeshLoop, ringCapacity: Int = 4_096, wallClock: @escaping @Sendable () -> Duration) {
        self.loop = loop
        self.ringCapacity = max(1, ringCapacity)
        self.wallClock = wallClock
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
    /// With `since`, what happened after that sequence number comes first. If some of it is no longer known, or the number
    /// is of another run of the host, an event `bus.gap` stands before it. Such replayed events do not count towards
    /// `capacity`.
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
        let isForeign = sequence > lastSequence
        var events: [HostEvent] = []
        if isForeign || sequence < lastForgotten {
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
