// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop

/// Lets one task at a time through, in the order in which they came: a controller makes one link at a time.
///
/// From the loop's thread, what needs no waiting can be called by `assumeIsolated`.
public actor TurnQueue {
    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private var isTaken = false
    private var lastSerial: UInt64 = 0
    private var waiting: [(serial: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []

    public init(loop: EventLoop) {
        self.loop = loop
    }

    /// Nobody has the turn, or waits for it.
    public var isIdle: Bool { !isTaken }
    /// Whether somebody waits for the turn.
    public var isContended: Bool { !waiting.isEmpty }

    /// Waits for the turn, which ``pass()`` ends. False when the task is cancelled: then it has no turn.
    public func take() async -> Bool {
        lastSerial += 1
        let serial = lastSerial
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // Looked at where the waiting begins: other jobs run at every `await`, and may pass the turn or cancel.
                if Task.isCancelled {
                    continuation.resume(returning: false)
                } else if self.isTaken {
                    self.waiting.append((serial, continuation))
                } else {
                    self.isTaken = true
                    continuation.resume(returning: true)
                }
            }
        } onCancel: { [loop] in
            loop.perform { self.assumeIsolated { $0.stopWaiting(serial) } }
        }
    }

    /// Gives the turn to who came next.
    public func pass() {
        if waiting.isEmpty {
            isTaken = false
        } else {
            waiting.removeFirst().continuation.resume(returning: true)
        }
    }

    private func stopWaiting(_ serial: UInt64) {
        guard let index = waiting.firstIndex(where: { $0.serial == serial }) else { return }
        waiting.remove(at: index).continuation.resume(returning: false)
    }
}
