// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshLoop
import Testing

/// One value that arrives once.
actor Arrival<Value: Sendable> {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private var value: Value?
    private var waiter: CheckedContinuation<Value, Never>?

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    nonisolated func arrive(_ value: Value) {
        loop.perform { self.assumeIsolated { $0.set(value) } }
    }

    private func set(_ value: Value) {
        if let waiter {
            waiter.resume(returning: value)
            self.waiter = nil
        } else {
            self.value = value
        }
    }

    func get() async -> Value {
        if let value { return value }
        return await withCheckedContinuation { waiter = $0 }
    }
}
