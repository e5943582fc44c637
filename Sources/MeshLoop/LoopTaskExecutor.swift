// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// An ``EventLoop`` as a task executor; see ``EventLoop/taskExecutor``.
///
/// Jobs run as the loop's own, so nothing leaves its thread. Entering an actor pinned to the loop, and coming back from it,
/// takes a further job all the same, at the end of the loop's queue: what is queued already runs before.
public final class LoopTaskExecutor: TaskExecutor {
    /// Unowned: the loop owns it, and outlives every task that prefers it.
    private unowned let loop: EventLoop

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    public func enqueue(_ job: consuming ExecutorJob) {
        loop.enqueue(job)
    }
}
