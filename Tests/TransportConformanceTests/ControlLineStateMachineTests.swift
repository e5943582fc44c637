// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshLoop
import Testing

@testable import MeshSerialTransport

struct ControlLineStateMachineTests {
    private static let on = SerialControl(dtr: true, rts: true)
    private static let off = SerialControl(dtr: false, rts: false)

    private func machine(_ candidates: [SerialControl] = [on, off]) -> ControlLineStateMachine {
        var machine = ControlLineStateMachine(.init(answerTimeout: .seconds(2)))
        machine.boardFound(candidates)
        return machine
    }

    /// A link on which a frame is sent at `time` and nothing answers until it is closed.
    private func silentLink(_ machine: inout ControlLineStateMachine, at time: Duration) {
        machine.linkOpened()
        machine.frameSent(now: time)
        machine.linkClosed()
    }

    @Test func `what is known of the board comes first`() {
        #expect(machine().control == Self.on)
        #expect(machine([Self.off, Self.on]).control == Self.off)
        #expect(machine([]).control == nil)
        #expect(machine().startTime == .zero)
    }

    @Test func `silence means nothing before something was sent`() {
        var machine = machine()
        machine.linkOpened()
        #expect(machine.nextDeadline == nil)
        machine.linkClosed()
        #expect(machine.unansweredLinks == 0)
    }

    @Test func `a board that does not answer is tried the other way, once on a link`() {
        var machine = machine()
        machine.linkOpened()
        machine.frameSent(now: .seconds(10))
        machine.frameSent(now: .seconds(11))
        #expect(machine.nextDeadline == .seconds(12))
        #expect(machine.deadlineReached(now: .seconds(11.9)) == .nothing)
        #expect(machine.deadlineReached(now: .seconds(12)) == .setControl(Self.off))
        #expect(machine.nextDeadline == nil)
        #expect(machine.deadlineReached(now: .seconds(99)) == .nothing)
        machine.linkClosed()
        #expect(machine.control == Self.off)
    }

    @Test func `an answer ends the search and is remembered`() {
        var machine = machine()
        machine.linkOpened()
        machine.frameSent(now: .zero)
        #expect(machine.deadlineReached(now: .seconds(2)) == .setControl(Self.off))
        machine.frameReceived()
        #expect(machine.nextDeadline == nil)
        machine.linkClosed()
        #expect(machine.control == Self.off)
        #expect(machine.startTime == .zero)
    }

    @Test func `a radio that once answered gets one silent link before its lines are moved`() {
        var machine = machine()
        machine.linkOpened()
        machine.frameSent(now: .zero)
        machine.frameReceived()
        machine.linkClosed()
        machine.linkOpened()
        machine.frameSent(now: .seconds(10))
        #expect(machine.nextDeadline == nil)
        machine.linkClosed()
        machine.linkOpened()
        machine.frameSent(now: .seconds(20))
        #expect(machine.deadlineReached(now: .seconds(22)) == .setControl(Self.off))
    }

    @Test func `after a link without an answer the board gets time to start`() {
        var machine = machine()
        silentLink(&machine, at: .zero)
        #expect(machine.unansweredLinks == 1)
        #expect(machine.startTime == .seconds(2))
        machine.linkOpened()
        machine.frameSent(now: .seconds(10))
        machine.frameReceived()
        #expect(machine.startTime == .zero)
    }

    @Test func `both ways are tried in turn from link to link`() {
        var machine = machine()
        var tried: [SerialControl?] = []
        for link in 0..<4 {
            machine.linkOpened()
            let start = Duration.seconds(100 * link)
            tried.append(machine.control)
            machine.frameSent(now: start)
            _ = machine.deadlineReached(now: start + .seconds(2))
            tried.append(machine.control)
            machine.linkClosed()
        }
        #expect(tried == [Self.on, Self.off, Self.off, Self.on, Self.on, Self.off, Self.off, Self.on])
    }

    @Test func `lines that the user has set are not moved`() {
        var machine = machine([Self.off])
        silentLink(&machine, at: .zero)
        machine.linkOpened()
        machine.frameSent(now: .seconds(1))
        #expect(machine.nextDeadline == nil)
    }

    @Test func `another board begins anew, the same one does not`() {
        var machine = machine()
        machine.linkOpened()
        machine.frameSent(now: .zero)
        _ = machine.deadlineReached(now: .seconds(2))
        machine.linkClosed()
        machine.boardFound([Self.on, Self.off])
        #expect(machine.control == Self.off)
        machine.boardFound([Self.off, Self.on])
        #expect(machine.control == Self.off && machine.unansweredLinks == 0)
    }
}
