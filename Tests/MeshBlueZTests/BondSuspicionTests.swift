// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import MeshBlueZTransport

struct BondSuspicionTests {
    /// Of the last of so many aborted links.
    private func verdict(
        _ suspicion: inout BondSuspicion, after count: Int, isBonded: Bool = true
    ) -> Bool {
        var verdict = false
        for _ in 0..<count {
            verdict = suspicion.connectFailed("x", .linkAborted, isBonded: isBonded)
        }
        return verdict
    }

    @Test func `a bond is suspected after two attempts' worth of links that were aborted`() {
        var suspicion = BondSuspicion()
        #expect(!verdict(&suspicion, after: BondSuspicion.limit - 1))
        // Whoever waits gave up, another device failed: no word about the bond.
        _ = suspicion.connectFailed("x", .cancelled, isBonded: true)
        _ = suspicion.connectFailed("y", .peerSilent, isBonded: true)
        #expect(verdict(&suspicion, after: 1))
        #expect(verdict(&suspicion, after: 1))
    }

    @Test func `without a bond nothing is suspected`() {
        var suspicion = BondSuspicion()
        #expect(!verdict(&suspicion, after: 50, isBonded: false))
    }

    @Test func `anything that speaks for bad conditions begins the count anew`() {
        var suspicion = BondSuspicion()
        for end in [BlueZFailure.peerSilent, .linkAborted] {
            #expect(!verdict(&suspicion, after: BondSuspicion.limit - 1))
            _ = suspicion.connectFailed("x", end, isBonded: false)
        }
        #expect(!verdict(&suspicion, after: BondSuspicion.limit - 1))
        suspicion.lift("x")
        #expect(!verdict(&suspicion, after: BondSuspicion.limit - 1))
    }
}
