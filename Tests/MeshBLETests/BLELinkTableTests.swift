// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshBLE

/// Every phase against every input: where it leads. A phase or an input more does not pass unnoticed.
struct BLELinkTableTests {
    enum Input: CaseIterable {
        case connect, cancelConnect, disconnect, switchTarget
        case bluetoothOn, bluetoothOff
        case success, failure, refusal, lostLink, staleFacts
        case deadline, earlyTick
        case write, cancelWrite
    }

    private static let same: LinkPhase? = nil

    /// In the order of `LinkPhase.allCases`: idle, waitingForBluetooth, connecting, discoveringServices,
    /// discoveringCharacteristics, subscribingToNotifications, discoveryComplete, connected, autoReconnecting (pausing),
    /// restoringState, disconnecting (its close is awaited).
    private func row(_ input: Input) -> [LinkPhase?] {
        let (same, idle, off, end) = (Self.same, LinkPhase.idle, LinkPhase.waitingForBluetooth, LinkPhase.disconnecting)
        return switch input {
        case .connect: [off, same, same, same, same, same, same, same, .connecting, same, same]
        case .cancelConnect: [same, idle, end, end, end, end, end, same, same, end, same]
        case .disconnect, .switchTarget: [same, idle, end, end, end, end, end, end, idle, end, same]
        case .bluetoothOn: [same, .restoringState, same, same, same, same, same, same, same, same, same]
        case .bluetoothOff: [same, same, end, end, end, end, end, end, same, end, same]
        case .success:
            [
                same, same, .discoveringServices, .discoveringCharacteristics, .subscribingToNotifications,
                .discoveryComplete, .connected, same, same, .connecting, idle,
            ]
        case .failure: [same, same, idle, end, end, end, end, same, same, .connecting, idle]
        case .refusal:
            [
                // Without a link the keys are refused, and there is no passkey to make others with.
                same, same, idle, .discoveringCharacteristics, .discoveringCharacteristics, .discoveringCharacteristics,
                .discoveringCharacteristics, same, same, idle, idle,
            ]
        case .lostLink: [same, same, same, end, end, end, end, idle, same, same, same]
        case .staleFacts, .earlyTick: [same, same, same, same, same, same, same, same, same, same, same]
        case .deadline: [same, idle, end, end, end, end, end, same, .connecting, end, idle]
        case .write, .cancelWrite: [same, same, same, same, same, same, same, same, same, same, same]
        }
    }

    private func feed(_ input: Input, to rig: MachineRig) {
        switch input {
        case .connect: rig.connect()
        case .cancelConnect: rig.cancelConnect(1)
        case .disconnect: rig.disconnect()
        case .switchTarget: rig.disconnect(newTarget: .name("other"))
        case .bluetoothOn: rig.bluetooth(.poweredOn)
        case .bluetoothOff: rig.bluetooth(.poweredOff)
        case .success: rig.succeed()
        case .failure: rig.fail(.unreachable)
        case .refusal: rig.fail(.insufficientSecurity)
        case .lostLink: rig.loseLink()
        case .staleFacts: rig.staleFacts()
        case .deadline: rig.reachDeadline()
        case .earlyTick: rig.tickEarly()
        case .write: rig.write()
        case .cancelWrite: rig.cancelWrite(1)
        }
    }

    @Test(arguments: LinkPhase.allCases, Input.allCases)
    func `every input has its outcome in every phase`(phase: LinkPhase, input: Input) throws {
        let rig = MachineRig { $0.reconnectsAutomatically = phase == .autoReconnecting }
        rig.reach(phase)
        let row = row(input)
        try #require(row.count == LinkPhase.allCases.count)
        let index = try #require(LinkPhase.allCases.firstIndex(of: phase))
        // A link of its own making is looked for first while Bluetooth has not come back.
        feed(input, to: rig)
        let expected =
            row[index] == .connecting && phase == .autoReconnecting ? .autoReconnecting : row[index] ?? phase
        #expect(rig.phase == expected, "\(input) in \(phase)")
        rig.drain()
        #expect(rig.problems == [], "\(input) in \(phase)")
    }

    @Test(arguments: LinkPhase.allCases, Input.allCases)
    func `three inputs at once leave nothing behind`(phase: LinkPhase, first: Input) async {
        for second in Input.allCases {
            // Other tests have deadlines.
            await Task.yield()
            for third in Input.allCases {
                let rig = MachineRig { $0.reconnectsAutomatically = phase == .autoReconnecting }
                rig.reach(phase)
                feed(first, to: rig)
                feed(second, to: rig)
                feed(third, to: rig)
                rig.drain()
                #expect(rig.problems == [], "\(first), \(second), \(third) in \(phase)")
            }
        }
    }

    @Test(arguments: LinkPhase.allCases)
    func `a phase that waits has a deadline, and no other`(phase: LinkPhase) {
        let rig = MachineRig { $0.reconnectsAutomatically = phase == .autoReconnecting }
        rig.reach(phase)
        #expect((rig.nextDeadline == nil) == (phase == .idle || phase == .connected))
        #expect(rig.problems == [])
    }
}
