// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshBLE

/// What happens to links in the field, each case by its name.
struct BLELinkFieldTests {
    @Test func `out of range in the middle of a stream and back`() {
        let rig = MachineRig { $0.reconnectsAutomatically = true }
        rig.reach(.connected)
        let (inFlight, waiting) = (rig.write(), rig.write())
        rig.loseLink()
        #expect(rig.writeOutcomes[inFlight] != nil && rig.writeOutcomes[waiting] != nil)
        #expect(!rig.isUp)
        rig.fail(.linkLost)
        #expect(rig.phase == .autoReconnecting)
        rig.reachDeadline()
        // One attempt in flight; nothing may be sent before the subscription is confirmed.
        while rig.phase != .connected {
            #expect(rig.operations.count == 1)
            let early = rig.write()
            if case .notConnected = rig.writeOutcomes[early] ?? nil {} else { Issue.record("sent in \(rig.phase)") }
            rig.succeed()
        }
        #expect(rig.started.suffix(2).first == .subscribe(MachineRig.transmit))
        #expect(rig.reconnections == 1)
        #expect(rig.problems == [])
    }

    @Test func `a manual disconnect while a retry is scheduled starts nothing`() {
        let rig = MachineRig { $0.reconnectsAutomatically = true }
        rig.reach(.autoReconnecting)
        let started = rig.started.count
        let stop = rig.disconnect()
        #expect(rig.phase == .idle)
        if case .succeeded = rig.outcomes[stop] {} else { Issue.record("disconnect did not return") }
        rig.advance(.seconds(3_600))
        rig.bluetooth(.poweredOff)
        rig.bluetooth(.poweredOn)
        rig.advance(.seconds(3_600))
        #expect(rig.started.count == started)
        #expect(rig.nextDeadline == nil)
        #expect(!rig.isObserving)
        #expect(rig.disconnections.count == 1)
    }

    /// The radio is silent from that phase on: the error and the deadline agree.
    @Test(arguments: [
        (LinkPhase.connecting, Duration.seconds(10)), (.discoveringServices, .seconds(40)),
        (.discoveringCharacteristics, .seconds(40)), (.subscribingToNotifications, .seconds(5)),
        (.discoveryComplete, .seconds(5)),
    ])
    func `a peripheral powered off during a connection phase`(phase: LinkPhase, deadline: Duration) {
        let rig = MachineRig()
        rig.reach(phase)
        let begin = rig.now
        rig.reachDeadline()
        #expect(rig.now == begin + deadline)
        rig.fail(.cancelled)
        if rig.current != nil { rig.succeed() }
        let failure = rig.failure(of: 1)
        #expect(failure?.phase == phase)
        if case .timedOut(deadline) = failure?.cause {} else { Issue.record("\(String(describing: failure))") }
        #expect(rig.text(of: 1).contains("after \(deadline.optionText)"))
        #expect(failure?.isFinal == false)
        #expect(rig.phases.last == .idle)
    }

    /// The radio says so, or its supervision timeout does.
    @Test(arguments: [
        LinkPhase.discoveringServices, .discoveringCharacteristics, .subscribingToNotifications, .discoveryComplete,
    ])
    func `a link lost during a connection phase`(phase: LinkPhase) {
        let rig = MachineRig()
        rig.reach(phase)
        rig.loseLink()
        rig.fail(.linkLost)
        #expect(rig.phase == .idle)
        #expect(rig.failure(of: 1)?.phase == phase)
        #expect(rig.failure(of: 1)?.code == .connectionFailed)
        #expect(rig.text(of: 1).contains("the link was lost"))
        #expect(!rig.started.contains(.close))
        rig.drain()
        #expect(rig.problems == [])
    }

    @Test(arguments: LinkPhase.allCases)
    func `Bluetooth goes off and on in a phase`(phase: LinkPhase) {
        let rig = MachineRig { $0.reconnectsAutomatically = phase == .autoReconnecting }
        rig.reach(phase)
        rig.bluetooth(.poweredOff)
        if phase == .waitingForBluetooth { rig.reachDeadline() }
        while rig.current != nil { rig.fail(.bluetoothUnavailable) }
        switch phase {
        case .idle: break
        case .autoReconnecting:
            #expect(rig.phase == .autoReconnecting)
            #expect(rig.adapterReports == [false])
        case .disconnecting: #expect(rig.phase == .idle)
        case .connected:
            #expect(rig.phase == .idle)
            #expect(rig.sessionEnds.last??.code == .adapterUnavailable)
            #expect(rig.adapterReports == [false])
        case .waitingForBluetooth, .connecting, .discoveringServices, .discoveringCharacteristics,
            .subscribingToNotifications, .discoveryComplete, .restoringState:
            #expect(rig.phase == .idle)
            #expect(rig.failure(of: 1)?.code == .adapterUnavailable)
            #expect(rig.failure(of: 1)?.phase == phase)
            #expect(rig.adapterReports == [false])
            #expect(rig.text(of: 1).contains("bluetoothctl power on"))
        }
        rig.bluetooth(.poweredOn)
        if phase != .idle, phase != .disconnecting { #expect(rig.adapterReports == [false, true]) }
        if rig.phase == .idle {
            rig.connect()
            rig.bluetooth(.poweredOn)
        }
        while rig.phase != .connected, rig.current != nil { rig.succeed() }
        #expect(rig.phase == .connected)
        rig.drain()
        #expect(rig.problems == [])
    }

    @Test func `who was told that the adapter is away is told that it is back, also after a disconnect`() {
        let rig = MachineRig()
        rig.connect()
        rig.bluetooth(.absent)
        rig.reachDeadline()
        rig.disconnect()
        #expect(rig.isObserving)
        rig.bluetooth(.poweredOff)
        rig.bluetooth(.poweredOn)
        #expect(rig.adapterReports == [false, true])
        #expect(!rig.isObserving)
        #expect(rig.phase == .idle)
        #expect(rig.nextDeadline == nil)
    }

    @Test func `a blip of Bluetooth before an attempt concerns nobody`() {
        let rig = MachineRig()
        rig.connect()
        rig.bluetooth(.poweredOff)
        rig.advance(.milliseconds(900))
        rig.bluetooth(.poweredOn)
        #expect(rig.phase == .restoringState)
        #expect(rig.adapterReports == [])
    }

    @Test(arguments: [LinkPhase.restoringState, .connecting, .discoveringServices, .discoveryComplete])
    func `the target is switched between two radios while an attempt is in flight`(phase: LinkPhase) {
        let rig = MachineRig()
        rig.bluetooth(.poweredOn)
        rig.reach(.connected)
        rig.bluetooth(.poweredOff)
        rig.fail(.bluetoothUnavailable)
        rig.bluetooth(.poweredOn)
        let old = rig.connect()
        while rig.phase != phase { rig.succeed() }
        let oldOperation = rig.current!
        let other = BLETarget.address(BLEAddress("C0:11:22:33:44:66")!)
        let stop = rig.disconnect(newTarget: other)
        let new = rig.connect()
        #expect(rig.outcomes[stop] == nil, "the old attempt has not ended")
        #expect(rig.machine.settings.target == MachineRig.address)
        // It succeeds at the last moment.
        rig.succeed(oldOperation)
        if rig.currentKind == .close { rig.succeed() }
        if case .succeeded = rig.outcomes[stop] {} else { Issue.record("the switch did not end") }
        #expect(rig.failure(of: old)?.code == .cancelled)
        #expect(rig.machine.settings.target == other)
        #expect(rig.links == [])
        #expect(rig.outcomes[new] == nil)
        #expect(rig.currentKind == .adopt)
        while rig.phase != .connected { rig.succeed() }
        rig.loseLink(.linkLost, oldOperation)
        #expect(rig.isUp, "the old link's loss is not the new one's")
        rig.drain()
        #expect(rig.problems == [])
    }
}
