// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport

@testable import MeshJournal

/// A journal whose calls wait until they are let go on, so that a test can have something happen between two of them.
struct HeldJournal {
    private let journal: MessageJournal
    private var gate = Gate()

    /// Holds all calls that come from now on.
    init(_ journal: MessageJournal) async throws {
        self.journal = journal
        try await journal.hold(gate)
        await gate.waitUntilEntered()
    }

    /// Returns when a call waits.
    func call() async {
        while await journal.waiting == 0 { await Task.yield() }
    }

    /// Lets the next call go on, and holds what comes of it. Only for reads: writes share a transaction with what holds them.
    mutating func step() async throws {
        await call()
        let next = Gate()
        try await journal.hold(next)
        gate.open()
        gate = next
        await next.waitUntilEntered()
    }

    /// Holds nothing any more.
    func end() { gate.open() }
}

extension MessageJournal {
    fileprivate func hold(_ gate: Gate) throws {
        _ = try submit(.write(isDurable: false), device: nil) { _, _ in gate.wait() }
    }
}
