// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
internal import Synchronization

/// A loop with a thread of its own, for programs whose main thread is not the loop, and for tests.
public final class LoopThread: Sendable {
    private struct Progress {
        var loop: EventLoop?
        var outcome: Result<Void, LoopError>?
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private final class Shared: Sendable {
        let time: LoopTime
        let progress = Mutex(Progress())
        let started = DispatchlessSemaphore()

        init(_ time: LoopTime) {
            self.time = time
        }
    }

    /// The loop; its actors run on the new thread.
    public let loop: EventLoop
    private let shared: Shared

    /// Starts the thread and waits until its loop exists.
    public init(time: LoopTime = .monotonic) {
        let shared = Shared(time)
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { context in
                // Retained by the creator for this thread.
                LoopThread.body(Unmanaged<Shared>.fromOpaque(context!).takeRetainedValue())
                return nil
            }, Unmanaged.passRetained(shared).toOpaque())
        precondition(status == 0, "pthread_create failed: \(status)")
        pthread_detach(thread)
        shared.started.wait()
        self.shared = shared
        // The thread has stored it before it signalled.
        loop = shared.progress.withLock { $0.loop! }
    }

    /// Stops the loop, closes what is open and ends the thread. Throws ``LoopError/Kind/leak`` when handles were left.
    public func shutDown() async throws(LoopError) {
        loop.stop()
        await withCheckedContinuation { continuation in
            let isOver = shared.progress.withLock { progress in
                if progress.outcome == nil { progress.waiters.append(continuation) }
                return progress.outcome != nil
            }
            if isOver { continuation.resume() }
        }
        try shared.progress.withLock { $0.outcome }?.get()
    }

    private static func body(_ shared: Shared) {
        let loop = EventLoop(time: shared.time)
        shared.progress.withLock { $0.loop = loop }
        shared.started.signal()
        loop.run()
        let outcome: Result<Void, LoopError>
        do {
            try loop.shutDown()
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        let waiters = shared.progress.withLock { progress in
            progress.outcome = outcome
            progress.loop = nil
            return progress.waiters
        }
        for waiter in waiters { waiter.resume() }
    }
}

/// A POSIX semaphore. Sendable: `sem_wait` and `sem_post` may be called from any thread.
private final class DispatchlessSemaphore: @unchecked Sendable {
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() {
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func signal() { sem_post(semaphore) }
    func wait() { while sem_wait(semaphore) != 0 {} }
}
