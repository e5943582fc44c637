// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Synchronization

/// Frames on their way to the consumer of a mock link: bounded, one consumer, usable from any thread.
final class MockInbox: Sendable {
    private struct State {
        var frames: [Data] = []
        /// How many of `frames` have been taken; they are removed in one go.
        var taken = 0
        var isFinished = false
        var waiter: (id: UInt64, continuation: CheckedContinuation<Data?, Never>)?
        var lastWaiter: UInt64 = 0
        var cancelled: UInt64 = 0
    }

    private let limit: Int
    private let state = Mutex(State())

    /// `limit` is the number of frames kept for a slow consumer.
    init(limit: Int) {
        self.limit = limit
    }

    /// False: there was no room, the frame is lost.
    func put(_ frame: Data) -> Bool {
        let (waiter, isKept) = state.withLock { state -> (CheckedContinuation<Data?, Never>?, Bool) in
            if let waiter = state.waiter {
                state.waiter = nil
                return (waiter.continuation, true)
            }
            guard !state.isFinished, state.frames.count - state.taken < limit else { return (nil, state.isFinished) }
            state.frames.append(frame)
            return (nil, true)
        }
        waiter?.resume(returning: frame)
        return isKept
    }

    /// The consumer gets what is kept, then the end. With `discarding` it gets the end at once.
    func finish(discarding: Bool) {
        let waiter = state.withLock { state in
            state.isFinished = true
            if discarding {
                state.frames = []
                state.taken = 0
            }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.continuation.resume(returning: nil)
    }

    /// The next frame; nil at the end, and when the task is cancelled.
    func next() async -> Data? {
        let id = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { wait(id, $0) }
        } onCancel: {
            cancel(id)
        }
    }

    private func wait(_ id: UInt64, _ continuation: CheckedContinuation<Data?, Never>) {
        let (frame, mustWait, displaced) = state.withLock {
            state -> (Data?, Bool, CheckedContinuation<Data?, Never>?) in
            if state.taken < state.frames.count {
                let frame = state.frames[state.taken]
                state.taken += 1
                if state.taken == state.frames.count || state.taken >= 64 {
                    state.frames.removeFirst(state.taken)
                    state.taken = 0
                }
                return (frame, false, nil)
            }
            if state.isFinished || state.cancelled >= id { return (nil, false, nil) }
            defer { state.waiter = (id, continuation) }
            return (nil, true, state.waiter?.continuation)
        }
        displaced?.resume(returning: nil)
        if !mustWait { continuation.resume(returning: frame) }
    }

    private func cancel(_ id: UInt64) {
        let waiter = state.withLock { state -> CheckedContinuation<Data?, Never>? in
            state.cancelled = id
            guard let waiter = state.waiter, waiter.id == id else { return nil }
            state.waiter = nil
            return waiter.continuation
        }
        waiter?.resume(returning: nil)
    }

    /// What `MeshTransport.receivedData` gives.
    var stream: AsyncStream<Data> {
        AsyncStream(unfolding: { await self.next() })
    }
}
