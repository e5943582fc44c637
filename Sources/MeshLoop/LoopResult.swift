// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How something ended that was begun by a plain call, for the one task that waits for it.
///
/// Every `await` may let other jobs run first, also that for a continuation. What is told in between must find its place:
/// this is made, and handed to who will tell, before anything is awaited.
///
/// Sendable because of one invariant: all of it is touched on the loop's thread only. Other threads carry references.
public final class LoopResult<Value: Sendable>: @unchecked Sendable {
    private var value: Value?
    private var waiter: CheckedContinuation<Value, Never>?

    public init() {}

    /// Called once.
    public func set(_ value: Value) {
        precondition(self.value == nil, "a result that is told twice")
        self.value = value
        waiter?.resume(returning: value)
        waiter = nil
    }

    /// Waits until it is told. Called once.
    public func get(isolation: isolated (any Actor)? = #isolation) async -> Value {
        await withCheckedContinuation(isolation: isolation) { continuation in
            if let value { continuation.resume(returning: value) } else { waiter = continuation }
        }
    }
}
