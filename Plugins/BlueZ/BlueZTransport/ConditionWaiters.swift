// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop

/// Tasks that wait until something holds of a ``BlueZService``. Its state is no place for continuations of every kind of wait:
/// after each change all conditions are looked at, and in a link's everyday life there are none.
struct ConditionWaiters {
    typealias Condition = @Sendable (isolated BlueZService) -> Bool

    private struct Waiter {
        var condition: Condition
        var continuation: CheckedContinuation<Bool, Never>
        var timer: LoopTimer
    }

    private var waiters: [UInt64: Waiter] = [:]

    mutating func add(
        _ serial: UInt64, _ condition: @escaping Condition, _ continuation: CheckedContinuation<Bool, Never>,
        _ timer: LoopTimer
    ) {
        waiters[serial] = Waiter(condition: condition, continuation: continuation, timer: timer)
    }

    /// Ends the waits whose condition holds.
    mutating func evaluate(_ service: isolated BlueZService) {
        if waiters.isEmpty { return }
        for (serial, waiter) in waiters where waiter.condition(service) {
            waiters[serial] = nil
            waiter.continuation.resume(returning: true)
        }
    }

    /// Ends a wait whose condition does not hold.
    mutating func end(_ serial: UInt64) {
        waiters.removeValue(forKey: serial)?.continuation.resume(returning: false)
    }
}

extension BlueZService {
    /// Waits until `condition` holds: true at once if it does; false when the time is over or the task is cancelled.
    func wait(upTo limit: Duration, until condition: @escaping ConditionWaiters.Condition) async -> Bool {
        let serial = nextSerial()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // Looked at where the waiting begins: other jobs run at every `await`, and none of them would tell again.
                if condition(self) {
                    continuation.resume(returning: true)
                } else if Task.isCancelled {
                    continuation.resume(returning: false)
                } else {
                    let timer = LoopTimer(self.loop)
                    timer.schedule(after: limit) { self.waiters.end(serial) }
                    self.waiters.add(serial, condition, continuation, timer)
                }
            }
        } onCancel: { [loop] in
            loop.perform { self.assumeIsolated { $0.waiters.end(serial) } }
        }
    }
}
