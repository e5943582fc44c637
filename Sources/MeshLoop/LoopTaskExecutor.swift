// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// An ``EventLoop`` as a task executor; see ``EventLoop/taskExecutor``.
///
/// Jobs run as the loop's own: an actor pinned to the loop is entered from them without a further job.
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
