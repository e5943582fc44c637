// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop

extension EventLoop {
    /// Runs what a cancelled task must still do, such as undoing what it began, as if it were not cancelled.
    func uncancelled<Result: Sendable>(_ body: @escaping @Sendable () async -> Result) async -> Result {
        await Task(executorPreference: taskExecutor) { await body() }.value
    }
}
