// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshBLE

struct BLELinkRandomTests {
    private static let reasons: [GATTError.Reason] = [
        .cancelled, .bluetoothUnavailable, .unreachable, .linkLost, .insufficientSecurity, .bondStale, .bondSuspect,
        .pairingFailed,
        .inUse, .notSupported, .other,
    ]

    /// One of many inputs, well-behaved ones more often, or no link would ever come up.
    private func step(_ rig: MachineRig, _ random: inout SplitMix) {
        let reason = Self.reasons.randomElement(using: &random)!
        switch Int.random(in: 0..<28, using: &random) {
        case 0, 1: rig.connect()
        case 2: rig.cancelConnect(Int.random(in: 1...30, using: &random))
        case 3: if Bool.random(using: &random) { rig.disconnect() }
        case 4: if Bool.random(using: &random) { rig.disconnect(newTarget: .name("other")) }
        case 5: rig.bluetooth([.poweredOff, .absent, .blocked, .serviceUnavailable].randomElement(using: &random)!)
        case 6, 7: rig.bluetooth(.poweredOn)
        case 8...16: rig.succeed()
        case 17: rig.fail(reason)
        // Also what the machine does not wait for any more.
        case 18: if let late = rig.operations.keys.sorted().randomElement(using: &random) { rig.succeed(late) }
        case 19: if let late = rig.operations.keys.sorted().randomElement(using: &random) { rig.fail(reason, late) }
        case 20: rig.loseLink(reason, rig.links.sorted().randomElement(using: &random))
        case 21: rig.advance(.milliseconds(Int64.random(in: 1...20_000, using: &random)))
        case 22: rig.reachDeadline()
        case 23, 24: rig.write(length: Int.random(in: 0...200, using: &random))
        case 25: rig.cancelWrite(Int.random(in: 1...30, using: &random))
        case 26: rig.isBonded = Bool.random(using: &random)
        default: rig.staleFacts()
        }
    }

    /// A link that was lost while something was done on it, whose end may say why.
    private func lostLink() -> MachineRig {
        let rig = MachineRig { $0.passkey = BLEPasskey(123_456) }
        rig.isBonded = true
        rig.reach(.discoveringServices)
        rig.loseLink(.linkLost)
        #expect(rig.phase == .disconnecting)
        return rig
    }

    @Test func `who wants a link while the reason of a loss is awaited gets an attempt`() {
        let rig = lostLink()
        let waiter = rig.connect()
        rig.fail(.insufficientSecurity)
        #expect(rig.failure(of: 1) != nil)
        #expect(rig.outcomes[waiter] == nil)
        while rig.phase != .connected, rig.current != nil { rig.succeed() }
        guard case .succeeded = rig.outcomes[waiter] else {
            Issue.record("\(rig.outcomes)")
            return
        }
        rig.drain()
        #expect(rig.problems == [])
    }

    @Test func `who gives up while the reason of a loss is awaited has given up`() {
        let rig = lostLink()
        rig.cancelConnect(1)
        rig.fail(.insufficientSecurity)
        #expect(rig.phase == .idle)
        guard case .requested = rig.failure(of: 1)?.cause else {
            Issue.record("\(rig.outcomes)")
            return
        }
        rig.drain()
        #expect(rig.problems == [])
    }

    @Test(arguments: 0..<20)
    func `random sequences leak no waiter, timer, link or operation`(batch: UInt64) async {
        for number in 0..<600 {
            let seed = batch * 1_000_000 + UInt64(number)
            var random = SplitMix(state: seed)
            let rig = MachineRig(seed: seed) {
                $0.reconnectsAutomatically = Bool.random(using: &random)
                $0.passkey = Bool.random(using: &random) ? BLEPasskey(123_456) : nil
                $0.pairing = BLETransportSettings.Pairing.allCases.randomElement(using: &random)!
                $0.staleBondRepairs = Int.random(in: 0...2, using: &random)
                $0.writePacingDelay = Bool.random(using: &random) ? .zero : .milliseconds(60)
            }
            for _ in 0..<Int.random(in: 5...50, using: &random) where rig.problems.isEmpty { step(rig, &random) }
            rig.drain()
            #expect(rig.problems == [], "seed \(seed)")
            if !rig.problems.isEmpty { return }
            // Other tests have deadlines.
            await Task.yield()
        }
    }
}
