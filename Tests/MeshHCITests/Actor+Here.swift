// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension Actor {
    /// Runs `body` on the actor at once, from another actor of the same loop: between two jobs of that loop, as a driver's
    /// own calls do. Works in async functions, which `assumeIsolated` does not.
    nonisolated func here<Value: Sendable>(_ body: (isolated Self) -> Value) -> Value { assumeIsolated(body) }
}
