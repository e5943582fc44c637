// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshLoop
import Testing

@testable import MeshSerialTransport

struct SerialLinkStateMachineTests {
    private static let on = SerialControl(dtr: true, rts: true)
    private static let off = SerialControl(dtr: false, rts: false)

    private func machine() -> SerialLinkStateMachine {
        SerialLinkStateMachine(.init(writeTimeout: .seconds(5), lines: .init(answerTimeout: .seconds(2))))
    }

    private func machineUp(at now: Duration = .zero) -> SerialLinkStateMachine {
        var machine = machine()
        _ = machine.connectRequested()
        machine.boardFound([Self.on, Self.off])
        #expect(machine.attemptSucceeded(generation: 1, isCancelled: false, now: now) == .bringLinkUp)
        return machine
    }

    @Test func `an attempt at a time, and a link at a time`() {
        var machine = machine()
        #expect(machine.connectRequested() == .startAttempt(generation: 1))
        #expect(machine.connectRequested() == .refuse)
        #expect(machine.attemptSucceeded(generation: 1, isCancelled: false, now: .zero) == .bringLinkUp)
        #expect(machine.connectRequested() == .refuse)
        #expect(machine.disconnectRequested() == .closeLink)
        #expect(machine.connectRequested() == .startAttempt(generation: 2))
    }

    @Test func `an attempt that failed may be followed by another`() {
        var machine = machine()
        _ = machine.connectRequested()
        machine.attemptFailed(generation: 1)
        #expect(machine.connectRequested() == .startAttempt(generation: 2))
        machine.attemptFailed(generation: 1)
        #expect(machine.connectRequested() == .refuse)
    }

    @Test func `a port that was opened too late is closed`() {
        var machine = machine()
        _ = machine.connectRequested()
        #expect(machine.disconnectRequested() == .cancelAttempt)
        #expect(machine.disconnectRequested() == .cancelAttempt)
        #expect(machine.connectRequested() == .refuse)
        #expect(machine.attemptSucceeded(generation: 1, isCancelled: true, now: .zero) == .closePort)
        #expect(machine.disconnectRequested() == .nothing)
        #expect(machine.attemptSucceeded(generation: 1, isCancelled: false, now: .zero) == .closePort)
        #expect(machine.connectRequested() == .startAttempt(generation: 2))
    }

    @Test func `a caller that gave up gets no link`() {
        var machine = machine()
        _ = machine.connectRequested()
        #expect(machine.attemptSucceeded(generation: 1, isCancelled: true, now: .zero) == .closePort)
        #expect(machine.connectRequested() == .startAttempt(generation: 2))
    }

    @Test(arguments: [
        (isPresent: false, after: 1, loss: SerialLinkStateMachine.Loss.unplugged),
        (isPresent: true, after: 1, loss: .hungUp), (isPresent: true, after: 10, loss: .unplugged),
        (isPresent: false, after: 10, loss: .unplugged),
    ])
    func `a port that hangs up at once though it is there is broken, else it was unplugged`(
        isPresent: Bool, after: Int, loss: SerialLinkStateMachine.Loss
    ) {
        var machine = machineUp()
        #expect(
            machine.linkEnded(generation: 1, isPresent: isPresent, now: .seconds(after)) == .closeLink(loss))
        #expect(machine.linkEnded(generation: 1, isPresent: isPresent, now: .seconds(after)) == .nothing)
        #expect(machine.connectRequested() == .startAttempt(generation: 2))
    }

    @Test func `a device that takes nothing is given up after write_timeout, counted from the last progress`() {
        var machine = machineUp()
        machine.frameReceived(generation: 1)
        #expect(machine.nextDeadline == nil)
        machine.writeStarted(generation: 1, now: .seconds(1))
        machine.writeStarted(generation: 1, now: .seconds(2))
        #expect(machine.nextDeadline == .seconds(6))
        machine.writeFinished(generation: 1, now: .seconds(4))
        #expect(machine.deadlineReached(now: .seconds(8)) == .nothing)
        #expect(machine.nextDeadline == .seconds(9))
        #expect(machine.deadlineReached(now: .seconds(9)) == .closeLink(.writeStalled))
        #expect(machine.nextDeadline == nil)
    }

    @Test func `lines are moved on a link that is up, and not otherwise`() {
        var machine = machineUp()
        machine.frameSent(generation: 1, now: .seconds(1))
        #expect(machine.nextDeadline == .seconds(3))
        #expect(machine.deadlineReached(now: .seconds(3)) == .setControl(Self.off))
        #expect(machine.disconnectRequested() == .closeLink)
        #expect(machine.lines.unansweredLinks == 1)
        #expect(machine.deadlineReached(now: .seconds(9)) == .nothing)
    }

    @Test func `facts about an older link change nothing`() {
        var machine = machineUp()
        _ = machine.disconnectRequested()
        _ = machine.connectRequested()
        _ = machine.attemptSucceeded(generation: 2, isCancelled: false, now: .zero)
        machine.frameSent(generation: 1, now: .zero)
        machine.writeStarted(generation: 1, now: .zero)
        machine.writeFinished(generation: 1, now: .zero)
        #expect(machine.nextDeadline == nil)
        #expect(machine.linkEnded(generation: 1, isPresent: false, now: .zero) == .nothing)
        machine.frameSent(generation: 2, now: .zero)
        machine.frameReceived(generation: 1)
        #expect(machine.nextDeadline == .seconds(2))
    }
}
