// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI

/// The events one subscriber has still to take, in order. One consumer at a time, on the loop's thread.
///
/// What found no room is counted in ``droppedCount`` and told in the sequence, where it is missing, by an event
/// `bus.dropped` with `{"count": n}`. The sequence ends after ``cancel()``, when the consuming task is cancelled, or, with
/// ``EventOverflow/end``, when the buffer was full. Dropping it unsubscribes.
///
/// Used on the loop's thread only; it is Sendable so that actors on the loop can hand it on.
public final class EventSubscription: AsyncSequence, @unchecked Sendable {
    /// How many events found no room.
    public private(set) var droppedCount: UInt64 = 0
    private let bus: EventBus
    private let capacity: Int
    private let overflow: EventOverflow
    private var buffer: [HostEvent]
    private var head = 0
    /// Replayed events at the front, which do not count towards the capacity.
    private var replayed: Int
    /// Dropped events not yet told.
    private var untoldDrops: Int64 = 0
    private var isFinished = false
    private var waiter: CheckedContinuation<Void, Never>?

    init(bus: EventBus, capacity: Int, overflow: EventOverflow, replay: [HostEvent]) {
        self.bus = bus
        self.capacity = capacity
        self.overflow = overflow
        buffer = replay
        replayed = replay.count
    }

    /// Ends the sequence; what it still holds is dropped.
    public func cancel() {
        guard !isFinished || head < buffer.count else { return }
        finish()
        buffer = []
        head = 0
        untoldDrops = 0
    }

    /// The events not yet taken.
    public var count: Int { buffer.count - head }

    func offer(_ event: HostEvent) {
        guard !isFinished else { return }
        if count - replayed >= capacity {
            droppedCount += 1
            untoldDrops += 1
            switch overflow {
            case .dropNewest: return
            case .dropOldest: removeFirst(at: head + replayed)
            case .end:
                finish()
                return
            }
        } else if untoldDrops > 0, overflow == .dropNewest {
            // Here is the hole: after what was kept, before this one.
            buffer.append(dropMarker())
        }
        buffer.append(event)
        wake()
    }

    /// The next event, if there is one now.
    public func takeIfPresent() -> HostEvent? {
        if untoldDrops > 0, replayed == 0, overflow == .dropOldest || head == buffer.count { return dropMarker() }
        guard head < buffer.count else { return nil }
        let event = buffer[head]
        head += 1
        replayed = Swift.max(0, replayed - 1)
        if head == buffer.count {
            buffer.removeAll(keepingCapacity: true)
            head = 0
        } else if head >= 64, head * 2 >= buffer.count {
            buffer.removeSubrange(..<head)
            head = 0
        }
        return event
    }

    private func removeFirst(at index: Int) {
        if index == head {
            head += 1
            if head >= 64, head * 2 >= buffer.count {
                buffer.removeSubrange(..<head)
                head = 0
            }
        } else {
            buffer.remove(at: index)
        }
    }

    private func dropMarker() -> HostEvent {
        defer { untoldDrops = 0 }
        return bus.marker("bus.dropped", ["count": .int(untoldDrops)])
    }

    private func finish() {
        isFinished = true
        bus.unsubscribe(self)
        wake()
    }

    private func wake() {
        waiter?.resume()
        waiter = nil
    }

    fileprivate func next(isolation: isolated (any Actor)?) async -> HostEvent? {
        precondition(bus.loop.isOnLoop, "events are taken on the loop's thread")
        while true {
            if let event = takeIfPresent() { return event }
            if isFinished { return nil }
            if Task.isCancelled {
                cancel()
                return nil
            }
            precondition(waiter == nil, "an event subscription has one consumer at a time")
            await withTaskCancellationHandler {
                // A closure has the isolation of its function only if it captures it; without, this would run elsewhere.
                _ = isolation
                await withCheckedContinuation(isolation: isolation) {
                    assert(bus.loop.isOnLoop)
                    // Other jobs may have run since the look above.
                    if head < buffer.count || untoldDrops > 0 || isFinished { $0.resume() } else { waiter = $0 }
                }
            } onCancel: {
                // Before the waiter is in place, too: the waiter then finds the end.
                bus.loop.perform { self.cancel() }
            }
        }
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(subscription: self)
    }

    /// Takes the events.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let subscription: EventSubscription

        public mutating func next() async -> HostEvent? {
            await subscription.next(isolation: #isolation)
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async -> HostEvent? {
            await subscription.next(isolation: actor)
        }
    }
}
