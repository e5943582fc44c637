// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension EventLoop {
    /// Waits for `delay` without leaving the loop. Throws `CancellationError` at once when the task is cancelled.
    ///
    /// `Task.sleep` would wake a thread of the global executor; this is one libuv timer.
    public func sleep(
        for delay: Duration, isolation: isolated (any Actor)? = #isolation
    ) async throws(CancellationError) {
        let sleeper = Sleeper(loop: self)
        let isFinished = await withTaskCancellationHandler {
            // A closure runs on the caller's actor only if it captures it; otherwise it would leave the loop.
            _ = isolation
            return await sleeper.wait(delay)
        } onCancel: {
            perform { sleeper.assumeIsolated { $0.cancel() } }
        }
        if !isFinished { throw CancellationError() }
    }

    private actor Sleeper {
        nonisolated let loop: EventLoop
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
        private var timer: LoopTimer?
        private var waiter: CheckedContinuation<Bool, Never>?
        private var isCancelled = false

        init(loop: EventLoop) {
            self.loop = loop
        }

        func wait(_ delay: Duration) async -> Bool {
            await withCheckedContinuation { continuation in
                // Looked at where the waiting begins: other jobs run at every `await`.
                if isCancelled { return continuation.resume(returning: false) }
                waiter = continuation
                let timer = LoopTimer(loop)
                self.timer = timer
                timer.schedule(after: delay) { self.end(true) }
            }
        }

        func cancel() {
            isCancelled = true
            end(false)
        }

        private func end(_ isFinished: Bool) {
            timer = nil
            waiter?.resume(returning: isFinished)
            waiter = nil
        }
    }
}
