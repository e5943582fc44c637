// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import Synchronization

/// Holds a thread of libuv's pool until it is opened. Who waits for that blocks nothing: all loops of a process share the
/// pool, and all tests share the threads that tasks run on. Sendable: `sem_wait` and `sem_post` may be called from any
/// thread.
public final class Gate: @unchecked Sendable {
    private let opened = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    private let entered = Mutex<(isSo: Bool, waiter: CheckedContinuation<Void, Never>?)>((false, nil))

    public init() {
        sem_init(opened, 0, 0)
    }

    deinit {
        sem_destroy(opened)
        opened.deallocate()
    }

    public func wait() {
        let waiter = entered.withLock { entered in
            entered.isSo = true
            return entered.waiter
        }
        waiter?.resume()
        while sem_wait(opened) != 0 {}
    }

    public func waitUntilEntered() async {
        await withCheckedContinuation { continuation in
            let isSo = entered.withLock { entered in
                entered.waiter = continuation
                return entered.isSo
            }
            if isSo { continuation.resume() }
        }
    }

    public func open() { sem_post(opened) }
}
