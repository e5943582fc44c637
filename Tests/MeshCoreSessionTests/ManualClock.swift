// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Synchronization

/// A clock that stands still until a test moves it.
final class ManualClock: Clock {
    struct Instant: InstantProtocol {
        var offset: Duration

        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct State {
        var now = Instant(offset: .zero)
        var sleepers: [Int: (until: Instant, continuation: CheckedContinuation<Void, any Error>)] = [:]
        var cancelled: Set<Int> = []
        var lastSleeper = 0
        var watchers: [(latest: Instant, continuation: CheckedContinuation<Instant, Never>)] = []
    }

    private let state = Mutex(State())

    var now: Instant { state.withLock { $0.now } }
    var minimumResolution: Duration { .zero }

    /// Moves the time and wakes those whose time has come.
    func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let due = state.sleepers.filter { $1.until <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            return due
        }
        for sleeper in due.values { sleeper.continuation.resume() }
    }

    /// When the first sleeper wakes, not after `latest`; waits for one.
    private func nextWake(latest: Instant) async -> Instant {
        await withCheckedContinuation { continuation in
            let next = state.withLock { state in
                let next = state.sleepers.values.map(\.until).min().flatMap { $0 <= latest ? $0 : nil }
                if next == nil { state.watchers.append((latest, continuation)) }
                return next
            }
            if let next { continuation.resume(returning: next) }
        }
    }

    /// Moves the time on to each of these, since the start, one sleeper after the other. Somebody has to sleep until then.
    func step(to offsets: Duration...) async {
        for offset in offsets {
            while now.offset < offset {
                let next = await nextWake(latest: Instant(offset: offset))
                advance(by: now.duration(to: next))
            }
        }
    }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let id = state.withLock { state in
            state.lastSleeper += 1
            return state.lastSleeper
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let (isCancelled, isDue, watchers) = state.withLock { state in
                    if state.cancelled.remove(id) != nil {
                        return (true, false, [CheckedContinuation<Instant, Never>]())
                    }
                    if state.now >= deadline { return (false, true, []) }
                    state.sleepers[id] = (deadline, continuation)
                    let watchers = state.watchers.filter { deadline <= $0.latest }
                    state.watchers.removeAll { deadline <= $0.latest }
                    return (false, false, watchers.map(\.continuation))
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
                if isDue { continuation.resume() }
                for watcher in watchers { watcher.resume(returning: deadline) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                let sleeper = state.sleepers.removeValue(forKey: id)
                if sleeper == nil { state.cancelled.insert(id) }
                return sleeper
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}
