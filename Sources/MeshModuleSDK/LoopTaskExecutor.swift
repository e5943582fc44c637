// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop

/// The loop as the executor that a task prefers: what belongs to no actor, such as the inside of `AsyncStream`, then runs
/// on the loop too, instead of hopping to a thread of the global pool and back for each frame.
final class LoopTaskExecutor: TaskExecutor {
    private let loop: MeshLoop

    init(_ loop: MeshLoop) {
        self.loop = loop
    }

    func enqueue(_ job: consuming ExecutorJob) {
        loop.enqueue(job)
    }
}
