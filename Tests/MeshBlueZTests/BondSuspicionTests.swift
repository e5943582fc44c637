// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import MeshBlueZTransport

struct BondSuspicionTests {
    /// Of the last of so many aborted links.
    private func verdict(
        _ suspicion: inout BondSuspicion, after count: Int, isBonded: Bool = true, cameUp: Bool = true
    ) -> Bool {
        var verdict = false
        for _ in 0..<count {
            verdict = suspicion.connectFailed("x", .linkAborted, isBonded: isBonded, cameUp: cameUp)
        }
        return verdict
    }

    @Test func `a bond is suspected after two attempts' worth of links that came up and ended`() {
        var suspicion = BondSuspicion()
        #expect(!verdict(&suspicion, after: BondSuspicion.limit - 1))
        // Whoever waits gave up, another device failed: no word about the bond.
        _ = suspicion.connectFailed("x", .cancelled, isBonded: true, cameUp: false)
        _ = suspicion.connectFailed("y", .peerSilent, isBonded: true, cameUp: false)
        #expect(verdict(&suspicion, after: 1))
        #expect(verdict(&suspicion, after: 1))
    }

    @Test func `no bond, or links that never came up, let nothing be suspected`() {
        var suspicion = BondSuspicion()
        #expect(!verdict(&suspicion, after: 50, isBonded: false))
        #expect(!verdict(&suspicion, after: 50, cameUp: false))
    }

    @Test func `anything that speaks for bad conditions begins the count anew`() {
        var suspicion = BondSuspicion()
        for end in [BlueZFailure.peerSilent, .linkAborted] {
            #expect(!verdict(&suspicion, after: BondSuspicion.limit - 1))
            _ = suspicion.connectFailed("x", end, isBonded: true, cameUp: false)
        }
        #expect(!verdict(&suspicion, after: BondSuspicion.limit - 1))
        suspicion.lift("x")
        #expect(!verdict(&suspicion, after: BondSuspicion.limit - 1))
    }
}
