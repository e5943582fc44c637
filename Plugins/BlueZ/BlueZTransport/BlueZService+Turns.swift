// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshLoop

/// Turns to make links: one task at a time on each adapter.
extension BlueZService {
    /// Waits for the turn to make links on an adapter. False when the task is cancelled: then it has no turn.
    func takeTurn(_ adapter: String) async -> Bool {
        let queue = turns[adapter] ?? TurnQueue(loop: loop)
        turns[adapter] = queue
        return await queue.take()
    }

    func endTurn(_ adapter: String) {
        turns[adapter]?.assumeIsolated { $0.pass() }
    }

    /// Nobody makes a link on the adapter, or waits for it.
    func isTurnIdle(_ adapter: String) -> Bool {
        turns[adapter]?.assumeIsolated { $0.isIdle } ?? true
    }

    /// Whether somebody waits for the turn.
    func isTurnContended(_ adapter: String) -> Bool {
        turns[adapter]?.assumeIsolated { $0.isContended } ?? false
    }
}
