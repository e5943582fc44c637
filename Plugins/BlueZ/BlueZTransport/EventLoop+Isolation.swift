// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop

extension EventLoop {
    /// Runs `body` on an actor of this loop, now: the bus calls its handlers on the loop, which the compiler cannot know.
    func assumeOn<Owner: Actor>(_ owner: Owner, _ body: (isolated Owner) -> Void) {
        owner.assumeIsolated { body($0) }
    }

    /// Runs what a cancelled task must still do, such as undoing what it began, as if it were not cancelled.
    func uncancelled<Result: Sendable>(_ body: @escaping @Sendable () async -> Result) async -> Result {
        await Task(executorPreference: taskExecutor) { await body() }.value
    }
}
