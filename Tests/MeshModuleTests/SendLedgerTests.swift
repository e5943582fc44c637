// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import CTransportABI
import FoundationEssentials
import Testing

@testable import MeshModuleHost

@Suite struct SendLedgerTests {
    private func waiting(_ cookie: UInt64) -> SendLedger<Int>.Waiting {
        .init(cookie: cookie, frame: Data([1]), withoutResponse: false, waiter: Int(cookie))
    }

    @Test func `an accepted frame is done once`() {
        var ledger = SendLedger<Int>()
        ledger.frameAccepted(1, 10)
        guard case .resume(10) = ledger.done(1) else { return #expect(Bool(false)) }
        guard case .unexpected = ledger.done(1) else { return #expect(Bool(false)) }
    }

    @Test func `a cancelled accepted frame is still expected to be done`() {
        var ledger = SendLedger<Int>()
        ledger.frameAccepted(1, 10)
        #expect(ledger.cancel(1) == 10)
        #expect(ledger.cancel(1) == nil)
        guard case .nobodyWaits = ledger.done(1) else { return #expect(Bool(false)) }
    }

    @Test func `frames wait in order and only while blocked`() {
        var ledger = SendLedger<Int>()
        #expect(!ledger.mustWait)
        ledger.frameRefused()
        ledger.frameWaits(waiting(1))
        ledger.frameWaits(waiting(2))
        ledger.frameWaits(waiting(3))
        #expect(ledger.next == nil)
        #expect(ledger.cancel(2) == 2)
        ledger.writable()
        #expect(ledger.mustWait)
        #expect(ledger.next?.cookie == 1)
        ledger.removeNext()
        #expect(ledger.next?.cookie == 3)
        ledger.removeNext()
        #expect(!ledger.mustWait)
    }

    @Test func `the end of the link wakes everybody in order`() {
        var ledger = SendLedger<Int>()
        ledger.frameAccepted(2, 2)
        ledger.frameAccepted(1, 1)
        ledger.frameRefused()
        ledger.frameWaits(waiting(3))
        #expect(ledger.removeAll() == [1, 2, 3])
        #expect(!ledger.mustWait)
    }
}
