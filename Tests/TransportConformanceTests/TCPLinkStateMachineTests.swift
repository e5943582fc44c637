// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import MeshTCPTransport

struct TCPLinkStateMachineTests {
    private typealias Machine = TCPLinkStateMachine

    private func connected(at now: Duration = .zero) -> Machine {
        var machine = Machine(.init(writeTimeout: .seconds(5)))
        guard case .startAttempt(generation: 1) = machine.connectRequested(),
            case .bringLinkUp = machine.attemptSucceeded(generation: 1, isCancelled: false, now: now)
        else {
            Issue.record("the first connect does not lead to a link")
            return machine
        }
        return machine
    }

    @Test func `one attempt at a time`() {
        var machine = Machine(.init(writeTimeout: .seconds(5)))
        #expect(machine.connectRequested() == .startAttempt(generation: 1))
        #expect(machine.connectRequested() == .refuse)
        machine.attemptFailed(generation: 1)
        #expect(machine.connectRequested() == .startAttempt(generation: 2))
    }

    @Test func `a success that comes after disconnect is closed`() {
        var machine = Machine(.init(writeTimeout: .seconds(5)))
        _ = machine.connectRequested()
        #expect(machine.disconnectRequested() == .cancelAttempt)
        #expect(machine.connectRequested() == .refuse)
        #expect(machine.attemptSucceeded(generation: 1, isCancelled: false, now: .zero) == .closeConnection)
        #expect(machine.connectRequested() == .startAttempt(generation: 2))
    }

    @Test func `a success whose caller has gone is closed`() {
        var machine = Machine(.init(writeTimeout: .seconds(5)))
        _ = machine.connectRequested()
        #expect(machine.attemptSucceeded(generation: 1, isCancelled: true, now: .zero) == .closeConnection)
        #expect(machine.disconnectRequested() == .nothing)
    }

    @Test func `facts about an older connection change nothing`() {
        var machine = connected()
        #expect(machine.linkEnded(generation: 0, byPeer: true, now: .zero) == .nothing)
        machine.writeStarted(now: .seconds(1))
        machine.writeFinished(generation: 0, now: .seconds(2))
        #expect(machine.nextDeadline == .seconds(6))
        #expect(machine.attemptSucceeded(generation: 0, isCancelled: false, now: .zero) == .closeConnection)
        machine.attemptFailed(generation: 0)
        #expect(machine.disconnectRequested() == .closeLink)
        #expect(machine.linkEnded(generation: 1, byPeer: true, now: .zero) == .nothing)
    }

    @Test func `a close within ten seconds looks like another host`() {
        var early = connected(at: .seconds(100))
        #expect(
            early.linkEnded(generation: 1, byPeer: true, now: .seconds(109))
                == .closeLink(.closedByPeer(soonAfterConnect: true)))
        var late = connected(at: .seconds(100))
        #expect(
            late.linkEnded(generation: 1, byPeer: true, now: .seconds(110))
                == .closeLink(.closedByPeer(soonAfterConnect: false)))
        var failed = connected()
        #expect(failed.linkEnded(generation: 1, byPeer: false, now: .zero) == .closeLink(.failed))
    }

    @Test func `writes that make no progress end the link`() {
        var machine = connected()
        #expect(machine.nextDeadline == nil)
        machine.writeStarted(now: .seconds(1))
        machine.writeStarted(now: .seconds(2))
        #expect(machine.nextDeadline == .seconds(6))
        machine.writeFinished(generation: 1, now: .seconds(4))
        #expect(machine.nextDeadline == .seconds(9))
        #expect(machine.deadlineReached(now: .seconds(8)) == .nothing)
        #expect(machine.deadlineReached(now: .seconds(9)) == .closeLink(.writeStalled))
        #expect(machine.deadlineReached(now: .seconds(99)) == .nothing)
        machine.writeFinished(generation: 1, now: .seconds(99))
        #expect(machine.connectRequested() == .startAttempt(generation: 2))
    }
}
