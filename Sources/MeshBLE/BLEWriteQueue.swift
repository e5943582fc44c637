// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The writes of one link: one in flight, the others wait in the order of the calls. A pure part of
/// ``BLELinkStateMachine``.
///
///     ┌──────┐ startNext ┌─────────┐  deadline   ┌────────────┐
///     │ idle │ ────────▶ │ writing │ ──────────▶ │ cancelling │
///     └──────┘ ◀──────── └─────────┘             └─────┬──────┘
///        ▲      ended                                  │ ended
///        └─────────────────────────────────────────────┘
///
/// A write that is over its deadline is cancelled and its end awaited, or the next one would meet it in the air. Its caller
/// learns of it then.
struct BLEWriteQueue<Write> {
    struct Entry {
        var id: UInt64
        var write: Write
    }

    struct Running {
        var id: UInt64
        /// Nil once the caller has gone; the write keeps its slot.
        var write: Write?
        var generation: UInt64
        var deadline: Duration
    }

    enum State {
        /// Waits for a write, and for the pause after the last one.
        case idle
        /// Waits for the device's acknowledgement.
        case writing(Running)
        /// Waits for the end of a write that is over its deadline.
        case cancelling(Running)
    }

    /// A device takes some ten frames a second: a caller that has more than this waiting has run away, and is told so.
    static var limit: Int { 128 }

    private(set) var state = State.idle
    private(set) var waiting: [Entry] = []
    /// Timeouts without a success in between.
    private(set) var timeoutsInARow = 0
    private var notBefore = Duration.zero

    /// In flight and waiting.
    var count: Int {
        switch state {
        case .idle: waiting.count
        case .writing, .cancelling: waiting.count + 1
        }
    }

    var isFull: Bool { waiting.count >= Self.limit }

    /// The generation of the write in flight.
    var running: UInt64? {
        switch state {
        case .idle: nil
        case .writing(let running), .cancelling(let running): running.generation
        }
    }

    /// Nil where there is nothing to do: a pause that nobody waits for wakes nobody.
    var nextDeadline: Duration? {
        switch state {
        case .idle: waiting.isEmpty ? nil : notBefore
        case .writing(let running), .cancelling(let running): running.deadline
        }
    }

    mutating func add(_ write: Write, id: UInt64) {
        waiting.append(Entry(id: id, write: write))
    }

    /// The next write, if it is time for it.
    mutating func startNext(generation: UInt64, now: Duration, timeout: Duration) -> Write? {
        switch state {
        case .idle:
            guard !waiting.isEmpty, notBefore <= now else { return nil }
            let entry = waiting.removeFirst()
            state = .writing(Running(id: entry.id, write: entry.write, generation: generation, deadline: now + timeout))
            return entry.write
        case .writing, .cancelling: return nil
        }
    }

    /// The write in flight is over its deadline; false if it has been cancelled already.
    mutating func cancelRunning(until deadline: Duration) -> Bool {
        guard case .writing(var running) = state else { return false }
        running.deadline = deadline
        state = .cancelling(running)
        return true
    }

    /// The write in flight has ended; `isTimeout` if it ended because it was cancelled. Nil for a stale generation.
    mutating func ended(
        generation: UInt64, succeeded: Bool, now: Duration, pause: Duration
    ) -> (write: Write?, isTimeout: Bool)? {
        guard running == generation else { return nil }
        defer {
            state = .idle
            notBefore = now + pause
        }
        switch state {
        case .idle: return nil
        case .writing(let running):
            if succeeded { timeoutsInARow = 0 }
            return (running.write, false)
        case .cancelling(let running):
            // An acknowledgement that comes late is one: the device has the frame.
            timeoutsInARow = succeeded ? 0 : timeoutsInARow + 1
            return (running.write, !succeeded)
        }
    }

    /// The caller has gone. What waits is taken out; what is in flight cannot be undone and keeps its slot.
    mutating func callerLeft(_ id: UInt64) -> Write? {
        if let index = waiting.firstIndex(where: { $0.id == id }) { return waiting.remove(at: index).write }
        switch state {
        case .writing(var running) where running.id == id:
            defer { running.write = nil; state = .writing(running) }
            return running.write
        case .cancelling(var running) where running.id == id:
            defer { running.write = nil; state = .cancelling(running) }
            return running.write
        case .idle, .writing, .cancelling: return nil
        }
    }

    /// Takes all callers out, the one in flight first; that one's generation stays in ``running``.
    mutating func takeAll() -> [Write] {
        var writes: [Write] = []
        if case .writing(let running) = state, let write = running.write { writes.append(write) }
        if case .cancelling(let running) = state, let write = running.write { writes.append(write) }
        writes += waiting.map(\.write)
        waiting = []
        return writes
    }
}
