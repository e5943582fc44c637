// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshBLE

/// Deadlines, lateness and texts of ``BLELinkStateMachine``.
struct BLELinkStateMachineTests {
    private let passkey: (inout BLETransportSettings) -> Void = { $0.passkey = BLEPasskey(123_456) }

    // MARK: Deadlines

    @Test(arguments: [
        (LinkPhase.restoringState, 10, MeshError.Code.connectionTimeout, "while looking for a connection"),
        (.connecting, 10, .connectionTimeout, "while connecting (MeshCore-roof (C0:11:22:33:44:55)): no end after 10s"),
        (.discoveringServices, 40, .connectionTimeout, "while discovering services"),
        (.discoveringCharacteristics, 40, .connectionTimeout, "while discovering characteristics"),
        (.subscribingToNotifications, 5, .connectionTimeout, "while subscribing to notifications"),
        (.discoveryComplete, 5, .connectionTimeout, "while reading the longest write"),
        (.waitingForBluetooth, 1, .adapterUnavailable, "while waiting for Bluetooth"),
    ])
    func `the error of a deadline names its phase`(phase: LinkPhase, seconds: Int, code: MeshError.Code, text: String) {
        let rig = MachineRig()
        rig.reach(phase)
        let begin = rig.now
        let operation = rig.current
        #expect(rig.nextDeadline == begin + .seconds(seconds))
        rig.advance(.seconds(seconds) - .milliseconds(1))
        #expect(rig.phase == phase)
        rig.reachDeadline()
        if let operation {
            #expect(rig.phase == .disconnecting)
            #expect(rig.operations[operation]?.isCancelled == true)
            #expect(rig.failure(of: 1) == nil, "the end of the operation is awaited")
            rig.fail(.cancelled, operation)
            rig.succeed()
        }
        #expect(rig.phase == .idle)
        #expect(rig.failure(of: 1)?.code == code)
        #expect(rig.failure(of: 1)?.phase == phase)
        #expect(rig.text(of: 1).hasPrefix(text), "\(rig.text(of: 1))")
        if operation != nil { #expect(rig.text(of: 1).contains("RSSI -87 dBm")) }
        #expect(!rig.text(of: 1).lowercased().contains("no hardware"))
        rig.drain()
        #expect(rig.problems == [])
    }

    @Test func `the second discovery of a device has 15 seconds`() {
        let rig = MachineRig()
        rig.reach(.connected)
        rig.loseLink()
        rig.connect()
        rig.succeed()
        #expect(rig.phase == .discoveringServices)
        #expect(rig.nextDeadline == rig.now + .seconds(15))
    }

    @Test func `one deadline spans the discovery of services and characteristics`() {
        let rig = MachineRig()
        rig.reach(.discoveringServices)
        let deadline = rig.nextDeadline
        rig.advance(.seconds(30))
        rig.succeed()
        #expect(rig.phase == .discoveringCharacteristics)
        #expect(rig.nextDeadline == deadline)
        rig.reachDeadline()
        rig.fail(.cancelled)
        rig.succeed()
        #expect(rig.text(of: 1).contains("after 40s"))
    }

    /// Each phase takes as long as it may, and the next one hangs as well; so do the end of what is under way, and of the link.
    @Test(arguments: [LinkPhase.connecting, .discoveringServices, .discoveringCharacteristics, .discoveryComplete])
    func `an error is told within a minute, wherever an attempt hangs (R3)`(phase: LinkPhase) {
        let rig = MachineRig(passkey)
        rig.connect()
        rig.bluetooth(.poweredOn)
        let begin = rig.now
        while rig.phase != .disconnecting, let deadline = rig.nextDeadline {
            if rig.phase == phase {
                rig.reachDeadline()
            } else {
                rig.advance(deadline - rig.now - .milliseconds(1))
                rig.succeed()
            }
        }
        while rig.failure(of: 1) == nil, rig.nextDeadline != nil { rig.reachDeadline() }
        #expect(rig.failure(of: 1)?.code == .connectionTimeout)
        #expect(rig.now <= begin + .seconds(60))
        rig.drain()
        #expect(rig.problems == [])
    }

    @Test func `a link that comes after the deadline is closed`() {
        let rig = MachineRig()
        rig.reach(.connecting)
        rig.reachDeadline()
        rig.succeed()
        #expect(rig.currentKind == .close)
        #expect(rig.failure(of: 1) == nil)
        rig.succeed()
        #expect(rig.failure(of: 1)?.code == .connectionTimeout)
        #expect(rig.links == [])
        #expect(rig.phase == .idle)
    }

    @Test func `a central that does not end what is cancelled is let go of`() {
        let rig = MachineRig()
        rig.reach(.connecting)
        let hung = rig.current
        rig.reachDeadline()
        rig.reachDeadline()
        #expect(rig.phase == .idle)
        #expect(rig.failure(of: 1)?.code == .connectionTimeout)
        rig.connect()
        rig.succeed(hung)
        #expect(rig.strayLinksClosed == 1)
        #expect(rig.phase == .connecting)
        rig.drain()
        #expect(rig.problems == [])
    }

    @Test func `after a minute of silence the error says what may be wrong with the radio`() {
        let rig = MachineRig()
        rig.bluetooth(.poweredOn)
        var texts: [String] = []
        for _ in 0..<7 {
            let waiter = rig.connect()
            rig.bluetooth(.poweredOn)
            if rig.currentKind == .adopt { rig.succeed() }
            rig.reachDeadline()
            rig.fail(.unreachable)
            texts.append(rig.text(of: waiter))
        }
        #expect(texts.map { $0.contains("power-cycle the radio") } == [false, false, false, false, false, true, true])
        // Somebody answers: the silence is over.
        rig.connect()
        rig.succeed()
        rig.loseLink()
        rig.fail(.linkLost)
        let waiter = rig.connect()
        rig.fail(.unreachable)
        #expect(!rig.text(of: waiter).contains("power-cycle"))
    }

    // MARK: Adoption

    @Test func `the first attempt and the first after Bluetooth came back ask for a connection that is there`() {
        let rig = MachineRig()
        rig.reach(.connected)
        rig.loseLink()
        rig.connect()
        #expect(rig.currentKind == .connect)
        rig.bluetooth(.poweredOff)
        rig.fail(.cancelled)
        rig.bluetooth(.poweredOn)
        rig.connect()
        #expect(rig.currentKind == .adopt)
        rig.succeed(nil, .adopted(isBonded: true))
        #expect(rig.phase == .discoveringServices)
        #expect(rig.started.filter { $0 == .adopt }.count == 2)
        #expect(rig.adapterReports == [false, true])
    }

    // MARK: What the device lacks

    @Test func `a device without the service is the wrong one`() {
        let rig = MachineRig()
        rig.reach(.discoveringServices)
        rig.succeed(nil, .services([]))
        rig.succeed()
        #expect(rig.failure(of: 1)?.code == .characteristicNotFound)
        #expect(rig.text(of: 1).contains("6e400001"))
    }

    @Test(arguments: [[], [MachineRig.receive], [MachineRig.transmit]])
    func `a device without a characteristic is the wrong one`(found: [GATTCharacteristic]) {
        let rig = MachineRig()
        rig.reach(.discoveringCharacteristics)
        rig.succeed(nil, .characteristics(found))
        rig.succeed()
        #expect(rig.failure(of: 1)?.code == .characteristicNotFound)
    }

    @Test func `what was there before is missed twice before it is believed`() {
        let rig = MachineRig()
        rig.reach(.connected)
        var codes: [MeshError.Code?] = []
        rig.loseLink()
        for _ in 0..<2 {
            let waiter = rig.connect()
            rig.succeed()
            rig.succeed(nil, .services([]))
            rig.succeed()
            codes.append(rig.failure(of: waiter)?.code)
        }
        #expect(codes == [.connectionFailed, .characteristicNotFound])
    }

    // MARK: Pairing

    @Test func `with a passkey and no bond the device is paired with before anything is used`() {
        let rig = MachineRig(passkey)
        rig.reach(.discoveringCharacteristics)
        rig.succeed()
        #expect(rig.currentKind == .pair)
        #expect(rig.phase == .discoveringCharacteristics)
        #expect(rig.nextDeadline == rig.now + .seconds(35))
        rig.succeed()
        #expect(rig.phase == .subscribingToNotifications)
        #expect(rig.warnings == 0)
    }

    @Test func `a bonded device, and one without a passkey, are not paired with`() {
        for (isBonded, change) in [(true, passkey), (false, { _ in })] as [(Bool, (inout BLETransportSettings) -> Void)]
        {
            let rig = MachineRig(change)
            rig.isBonded = isBonded
            rig.reach(.connected)
            #expect(!rig.started.contains(.pair))
        }
    }

    @Test func `a wrong passkey is one attempt and a final error`() {
        let rig = MachineRig(passkey)
        rig.reach(.discoveringCharacteristics)
        rig.succeed()
        rig.fail(.pairingFailed)
        rig.succeed()
        #expect(rig.failure(of: 1)?.code == .authenticationFailed)
        #expect(rig.failure(of: 1)?.isFinal == true)
        #expect(rig.text(of: 1).contains("the PIN is wrong"))
        #expect(rig.started.filter { $0 == .pair }.count == 1)
        #expect(rig.phase == .idle)
    }

    @Test func `a radio that drops the link over the passkey is told apart from one that went away`() {
        let rig = MachineRig(passkey)
        rig.reach(.discoveringCharacteristics)
        rig.succeed()
        rig.loseLink()
        #expect(rig.phase == .disconnecting)
        rig.fail(.pairingFailed)
        #expect(rig.failure(of: 1)?.code == .authenticationFailed)

        let other = MachineRig(passkey)
        other.reach(.discoveringCharacteristics)
        other.succeed()
        other.loseLink()
        other.fail(.linkLost)
        #expect(other.failure(of: 1)?.code == .connectionFailed)
        #expect(other.text(of: 1).hasPrefix("while pairing"))
    }

    @Test func `a pairing without the passkey that was given is worth a warning`() {
        let rig = MachineRig(passkey)
        rig.pairsWithPasskey = false
        rig.reach(.connected)
        #expect(rig.warnings == 1)
    }

    @Test func `a subscription that is refused leads to pairing, then to the subscription`() {
        let rig = MachineRig()
        rig.reach(.subscribingToNotifications)
        rig.fail(.insufficientSecurity)
        #expect(rig.currentKind == .pair)
        rig.succeed()
        #expect(rig.currentKind == .subscribe(MachineRig.transmit))
    }

    @Test func `a bond that the device refuses is replaced once`() {
        let rig = MachineRig(passkey)
        rig.isBonded = true
        rig.reach(.subscribingToNotifications)
        rig.fail(.insufficientSecurity)
        #expect(rig.currentKind == .close)
        rig.succeed()
        #expect(rig.currentKind == .removeBond)
        rig.succeed()
        #expect(rig.currentKind == .connect)
        for _ in 0..<3 { rig.succeed() }
        #expect(rig.currentKind == .pair)
        rig.succeed()
        rig.fail(.insufficientSecurity)
        rig.succeed()
        #expect(rig.failure(of: 1)?.code == .authenticationFailed)
        #expect(rig.started.filter { $0 == .removeBond }.count == 1)
        #expect(rig.phase == .idle)
        #expect(rig.problems == [])
    }

    @Test func `a write that is refused closes the link, and the next attempt replaces the bond`() {
        let rig = MachineRig(passkey)
        rig.isBonded = true
        rig.reach(.connected)
        let write = rig.write()
        rig.fail(.insufficientSecurity)
        guard case .linkEnded(let failure) = rig.writeOutcomes[write] ?? nil else {
            Issue.record("the write did not fail with the link")
            return
        }
        #expect(failure.code == .linkClosed)
        #expect(!failure.isFinal)
        rig.succeed()
        #expect(rig.phase == .idle)
        rig.connect()
        #expect(rig.currentKind == .removeBond)
        rig.succeed()
        for _ in 0..<3 { rig.succeed() }
        #expect(rig.currentKind == .pair)
        for _ in 0..<3 { rig.succeed() }
        #expect(rig.phase == .connected)
        rig.write()
        rig.fail(.insufficientSecurity)
        #expect(rig.sessionEnds.last??.code == .authenticationFailed)
    }

    @Test func `a radio that wants a PIN where there is none says so`() {
        let rig = MachineRig()
        rig.isBonded = true
        rig.reach(.connected)
        rig.write()
        rig.fail(.insufficientSecurity)
        let failure = rig.sessionEnds.last ?? nil
        #expect(failure?.code == .authenticationFailed)
        #expect(failure.map { MeshError($0, of: rig.subject).message.contains("set `pin`") } == true)
    }

    @Test(arguments: [0, 1])
    func `a bond that is only suspected is repaired where that is allowed, and needs no person otherwise`(repairs: Int)
    {
        let rig = MachineRig {
            $0.passkey = BLEPasskey(123_456)
            $0.staleBondRepairs = repairs
        }
        rig.reach(.connecting)
        rig.fail(.bondSuspect)
        if repairs == 0 {
            #expect(rig.failure(of: 1)?.isFinal == false)
        } else {
            #expect(rig.currentKind == .removeBond)
        }
    }

    @Test(arguments: [0, 1])
    func `a stale bond is repaired only where that is allowed`(repairs: Int) {
        let rig = MachineRig {
            $0.passkey = BLEPasskey(123_456)
            $0.staleBondRepairs = repairs
        }
        rig.reach(.connecting)
        rig.fail(.bondStale)
        if repairs == 0 {
            #expect(rig.failure(of: 1)?.code == .authenticationFailed)
            #expect(rig.text(of: 1).contains("meshhost unpair C0:11:22:33:44:55"))
            #expect(rig.text(of: 1).contains("stale_bond_repairs"))
            return
        }
        #expect(rig.currentKind == .removeBond)
        while rig.phase != .connected { rig.succeed() }
        rig.write()
        rig.succeed()
        // The second one on the same day is left to a person; on the next day it is not.
        for (hours, allowed) in [(1, false), (24, true)] {
            rig.advance(.seconds(hours * 3_600))
            rig.loseLink(.bondStale)
            #expect(rig.sessionEnds.last??.isFinal == !allowed)
            rig.connect()
            #expect(rig.started.last == (allowed ? .removeBond : .connect))
            while rig.phase != .connected { rig.succeed() }
            rig.write()
            rig.succeed()
        }
    }

    // MARK: Writes

    @Test func `a write over its deadline leaves the link up, two in a row do not`() {
        let rig = MachineRig()
        rig.reach(.connected)
        let (first, second, third) = (rig.write(), rig.write(), rig.write())
        rig.advance(.seconds(5))
        #expect(rig.writeOutcomes[first] == nil, "its end is awaited")
        rig.fail(.cancelled)
        guard case .timedOut = rig.writeOutcomes[first] ?? nil else {
            Issue.record("no timeout")
            return
        }
        #expect(rig.phase == .connected)
        rig.succeed()
        #expect(rig.writeOutcomes[second]! == nil)
        rig.advance(.seconds(5))
        rig.fail(.cancelled)
        #expect(rig.phase == .connected)
        rig.write()
        rig.advance(.seconds(5))
        rig.fail(.cancelled)
        #expect(rig.phase == .disconnecting)
        #expect(rig.sessionEnds.last??.code == .operationTimeout)
        #expect(rig.writeOutcomes[third] != nil)
        rig.drain()
        #expect(rig.problems == [])
    }

    @Test(arguments: [true, false])
    func `where a write over its deadline ends the link, its error says so`(isToldByWrite: Bool) {
        let rig = MachineRig()
        rig.reach(.connected)
        let (write, waiting) = (rig.write(), rig.write())
        rig.advance(.seconds(5))
        if isToldByWrite { rig.fail(.linkLost) } else { rig.loseLink() }
        guard case .timedOut(_, endsLink: true) = rig.writeOutcomes[write] ?? nil else {
            Issue.record("\(rig.writeOutcomes)")
            return
        }
        guard case .linkEnded = rig.writeOutcomes[waiting] ?? nil else {
            Issue.record("\(rig.writeOutcomes)")
            return
        }
        #expect(rig.phase == .disconnecting)
        #expect(rig.sessionEnds.last??.code == .linkClosed)
        rig.drain()
        #expect(rig.problems == [])
    }

    @Test func `writes keep their order and their pause`() {
        let rig = MachineRig { $0.writePacingDelay = .milliseconds(60) }
        rig.reach(.connected)
        let writes = (0..<3).map { _ in rig.write() }
        rig.succeed()
        #expect(rig.writeOutcomes[writes[0]]! == nil)
        #expect(rig.current == nil)
        #expect(rig.nextDeadline == rig.now + .milliseconds(60))
        rig.reachDeadline()
        #expect(rig.currentKind == .write)
        rig.succeed()
        rig.reachDeadline()
        rig.succeed()
        #expect(rig.nextDeadline == nil, "a pause that nobody waits for wakes nobody")
        #expect(rig.writeOutcomes.count == 3)
    }

    @Test func `a write whose caller has gone keeps its slot`() {
        let rig = MachineRig()
        rig.reach(.connected)
        let (first, second) = (rig.write(), rig.write())
        rig.cancelWrite(first)
        rig.cancelWrite(second)
        #expect(rig.writeOutcomes.count == 2)
        let third = rig.write()
        #expect(rig.operations.count == 1)
        rig.succeed()
        rig.succeed()
        #expect(rig.writeOutcomes[third]! == nil)
        #expect(rig.problems == [])
    }

    @Test func `129 frames may be on their way, no more`() {
        let rig = MachineRig()
        rig.reach(.connected)
        for _ in 0..<129 { rig.write() }
        #expect(rig.writeOutcomes.isEmpty)
        let last = rig.write()
        guard case .queueFull = rig.writeOutcomes[last] ?? nil else {
            Issue.record("the queue has no end")
            return
        }
        rig.loseLink()
        #expect(rig.writeOutcomes.count == 130)
    }

    // MARK: Reconnecting by itself

    @Test func `pauses grow, with jitter, within their bounds`() {
        var policy = BLEReconnectPolicy(bounds: .milliseconds(250) ... .seconds(30), seed: 7)
        let delays = (0..<100).map { _ in policy.nextDelay() }
        #expect(delays.allSatisfy { $0 >= .milliseconds(250) && $0 <= .seconds(30) })
        #expect(delays[0] <= .milliseconds(500))
        #expect(Set(delays.suffix(50)).count == 50)
        #expect(delays.suffix(50).max()! > .seconds(20))
        policy.reset()
        #expect(policy.nextDelay() <= .milliseconds(500))
    }

    @Test func `it goes on for ever, and ends at a permanent error`() {
        let rig = MachineRig { $0.reconnectsAutomatically = true }
        rig.reach(.autoReconnecting)
        #expect(rig.autoReconnects == 1)
        for _ in 0..<200 {
            rig.reachDeadline()
            #expect(rig.phase == .autoReconnecting)
            #expect(rig.currentKind == .connect)
            rig.fail(.unreachable)
        }
        rig.reachDeadline()
        rig.succeed()
        #expect(rig.nextDeadline == rig.now + .seconds(15))
        rig.fail(.pairingFailed)
        rig.succeed()
        #expect(rig.phase == .idle)
        #expect(rig.disconnections.count == 1)
        #expect(rig.disconnections.last??.code == .authenticationFailed)
        #expect(rig.problems == [])
    }

    @Test func `Bluetooth that comes back ends the pause`() {
        let rig = MachineRig { $0.reconnectsAutomatically = true }
        rig.reach(.connected)
        rig.bluetooth(.absent)
        rig.succeed()
        #expect(rig.phase == .autoReconnecting)
        rig.bluetooth(.poweredOn)
        #expect(rig.phase == .restoringState)
        rig.succeed(nil, .adopted(isBonded: true))
        while rig.phase != .connected { rig.succeed() }
        #expect(rig.reconnections == 1)
    }

    @Test func `a connect while it reconnects waits with it`() {
        let rig = MachineRig { $0.reconnectsAutomatically = true }
        rig.reach(.autoReconnecting)
        let waiter = rig.connect()
        #expect(rig.currentKind == .connect)
        rig.fail(.unreachable)
        #expect(rig.failure(of: waiter) != nil)
        #expect(rig.phase == .autoReconnecting)
    }
}
