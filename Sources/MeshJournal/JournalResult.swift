// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The result of one call, which comes later.
///
/// Separate from the call's waiting, because a task that prefers an executor goes through the loop's queue at every
/// `await`, also at that for a continuation: what has to happen in the order of the calls happens before it.
///
/// Sendable because of one invariant: all of it is touched on the loop only. Other threads carry references.
final class JournalResult<Value: Sendable>: @unchecked Sendable {
    private var result: Result<Value, JournalError>?
    private var waiter: CheckedContinuation<Result<Value, JournalError>, Never>?

    /// Called once.
    func set(_ result: Result<Value, JournalError>) {
        self.result = result
        waiter?.resume(returning: result)
        waiter = nil
    }

    /// Called once.
    func get(isolation: isolated (any Actor)? = #isolation) async throws(JournalError) -> Value {
        let given = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Value, JournalError>, Never>) in
            if let result {
                continuation.resume(returning: result)
            } else {
                waiter = continuation
            }
        }
        return try given.get()
    }
}
