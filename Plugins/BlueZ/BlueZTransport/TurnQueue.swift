// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop

/// Lets one task at a time through, in the order in which they came.
struct TurnQueue {
    private var isTaken = false
    private var waiting: [(serial: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []

    /// Nobody has the turn, or waits for it.
    var isEmpty: Bool { !isTaken }
    /// Whether somebody else waits for the turn.
    var isContended: Bool { !waiting.isEmpty }

    /// Takes the turn, if nobody has it.
    mutating func take() -> Bool {
        if isTaken { return false }
        isTaken = true
        return true
    }

    mutating func wait(_ serial: UInt64, _ continuation: CheckedContinuation<Bool, Never>) {
        waiting.append((serial, continuation))
    }

    mutating func stopWaiting(_ serial: UInt64) {
        guard let index = waiting.firstIndex(where: { $0.serial == serial }) else { return }
        waiting.remove(at: index).continuation.resume(returning: false)
    }

    /// Gives the turn to who came next.
    mutating func pass() {
        if waiting.isEmpty {
            isTaken = false
        } else {
            waiting.removeFirst().continuation.resume(returning: true)
        }
    }
}

extension BlueZService {
    /// Waits for the turn to make links on an adapter. False when the task is cancelled: then it has no turn.
    func takeTurn(_ adapter: String) async -> Bool {
        let serial = nextSerial()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // Looked at where the waiting begins: other jobs run at every `await`, and may pass the turn or cancel.
                if Task.isCancelled {
                    continuation.resume(returning: false)
                } else if self.turns[adapter, default: TurnQueue()].take() {
                    continuation.resume(returning: true)
                } else {
                    self.turns[adapter]?.wait(serial, continuation)
                }
            }
        } onCancel: { [loop] in
            loop.perform { self.assumeIsolated { $0.turns[adapter]?.stopWaiting(serial) } }
        }
    }

    func endTurn(_ adapter: String) {
        turns[adapter]?.pass()
        if turns[adapter]?.isEmpty == true { turns[adapter] = nil }
    }
}
