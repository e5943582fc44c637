// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
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

/// Holds threads until it is opened. Sendable: `sem_wait` and `sem_post` may be called from any thread.
final class Gate: @unchecked Sendable {
    private let entered = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    private let opened = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() {
        sem_init(entered, 0, 0)
        sem_init(opened, 0, 0)
    }

    deinit {
        entered.deallocate()
        opened.deallocate()
    }

    /// Waits until the gate is open.
    func wait() {
        sem_post(entered)
        while sem_wait(opened) != 0 {}
        sem_post(opened)
    }

    /// Blocks no thread of the tasks: what is waited for may wait, in the pool, for another test.
    func waitUntilEntered() async {
        while sem_trywait(entered) != 0 { await Task.yield() }
    }

    func open() { sem_post(opened) }
}
