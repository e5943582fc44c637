// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshStream
import Testing

struct StreamLinkStateMachineTests {
    private typealias Machine = StreamLinkStateMachine

    private func connected(at now: Duration = .zero) -> Machine {
        var machine = Machine(writeTimeout: .seconds(5))
        guard case .startAttempt(generation: 1) = machine.connectRequested(),
            case .bringLinkUp = machine.attemptSucceeded(generation: 1, isCancelled: false, now: now)
        else {
            Issue.record("the first connect does not lead to a link")
            return machine
        }
        return machine
    }

    @Test func `one attempt at a time`() {
        var machine = Machine(writeTimeout: .seconds(5))
        #expect(machine.connectRequested() == .startAttempt(generation: 1))
        #expect(machine.connectRequested() == .refuse)
        machine.attemptFailed(generation: 1)
        #expect(machine.connectRequested() == .startAttempt(generation: 2))
        machine.attemptFailed(generation: 1)
        #expect(machine.connectRequested() == .refuse)
    }

    @Test func `a success that comes after disconnect is closed`() {
        var machine = Machine(writeTimeout: .seconds(5))
        _ = machine.connectRequested()
        #expect(machine.disconnectRequested() == .cancelAttempt)
        #expect(machine.disconnectRequested() == .cancelAttempt)
        #expect(machine.connectRequested() == .refuse)
        #expect(machine.attemptSucceeded(generation: 1, isCancelled: false, now: .zero) == .closeStream)
        #expect(machine.connectRequested() == .startAttempt(generation: 2))
    }

    @Test func `a success whose caller has gone is closed`() {
        var machine = Machine(writeTimeout: .seconds(5))
        _ = machine.connectRequested()
        #expect(machine.attemptSucceeded(generation: 1, isCancelled: true, now: .zero) == .closeStream)
        #expect(machine.disconnectRequested() == .nothing)
    }

    @Test func `facts about an older connection change nothing`() {
        var machine = connected()
        #expect(machine.linkEnded(generation: 0, now: .zero) == .nothing)
        machine.writeStarted(generation: 1, now: .seconds(1))
        machine.writeStarted(generation: 0, now: .seconds(1))
        machine.writeFinished(generation: 0, now: .seconds(2))
        #expect(machine.nextDeadline == .seconds(6))
        #expect(machine.attemptSucceeded(generation: 0, isCancelled: false, now: .zero) == .closeStream)
        machine.attemptFailed(generation: 0)
        #expect(machine.disconnectRequested() == .closeLink)
        #expect(machine.linkEnded(generation: 1, now: .zero) == .nothing)
    }

    @Test func `a link that ends tells how long it was up`() {
        var machine = connected(at: .seconds(100))
        #expect(machine.linkEnded(generation: 1, now: .seconds(109)) == .closeLink(.ended(after: .seconds(9))))
        #expect(machine.linkEnded(generation: 1, now: .seconds(109)) == .nothing)
        #expect(machine.connectRequested() == .startAttempt(generation: 2))
    }

    @Test func `writes that make no progress end the link`() {
        var machine = connected()
        #expect(machine.nextDeadline == nil)
        machine.writeStarted(generation: 1, now: .seconds(1))
        machine.writeStarted(generation: 1, now: .seconds(2))
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
