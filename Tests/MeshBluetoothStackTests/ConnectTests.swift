// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import Testing

struct ConnectTests {
    private let request = ConnectionRequest(
        peer: DeviceAddress(0xC123_4567_89AB, .random), ownAddressKind: .random)
    private let handle = ConnectionHandle(0x40)

    private func complete(_ status: HCIStatus = .success) -> ConnectionComplete {
        ConnectionComplete(
            status: status, handle: handle, role: .central, peer: request.peer,
            parameters: .init(interval: 12, latency: 0, supervisionTimeout: 500))
    }

    /// A machine that has asked for a link, and whose controller has begun.
    private func initiating() -> ConnectStateMachine {
        var machine = ConnectStateMachine()
        #expect(
            machine.connectRequested(request, family: .legacy, now: at(0)) == .send(.createConnection(request)))
        #expect(machine.createAnswered(.started, now: at(0)) == .nothing)
        return machine
    }

    @Test func `a link is made`() {
        var machine = initiating()
        #expect(machine.nextDeadline == at(10))
        #expect(machine.connectionCompleted(complete(), now: at(1)) == .finish(.connected(complete())))
        #expect(machine.isIdle == true)
        #expect(machine.nextDeadline == nil)
    }

    @Test func `the extended family has its own command`() {
        var machine = ConnectStateMachine()
        #expect(
            machine.connectRequested(request, family: .extended, now: at(0))
                == .send(.extendedCreateConnection(request)))
    }

    @Test func `one attempt at a time`() {
        var machine = initiating()
        #expect(machine.connectRequested(request, family: .legacy, now: at(1)) == .finish(.busy))
        #expect(machine.connectionCompleted(complete(), now: at(1)) == .finish(.connected(complete())))
    }

    @Test func `after 10 s the attempt is cancelled and its end awaited (R25)`() {
        var machine = initiating()
        #expect(machine.deadlineReached(now: at(9.9)) == .nothing)
        #expect(machine.deadlineReached(now: at(10)) == .send(.createConnectionCancel))
        #expect(machine.cancelAnswered(.completed([])) == .nothing)
        #expect(machine.isIdle == false)
        #expect(machine.connectRequested(request, family: .legacy, now: at(10)) == .finish(.busy))
        #expect(machine.connectionCompleted(complete(.unknownConnection), now: at(10.1)) == .finish(.timedOut))
        #expect(machine.isIdle == true)
    }

    @Test func `a link made while it is cancelled is closed (R25)`() {
        var machine = initiating()
        #expect(machine.cancelRequested(now: at(3)) == .send(.createConnectionCancel))
        // Too late: the controller has nothing to cancel.
        #expect(machine.cancelAnswered(.refused(.commandDisallowed)) == .nothing)
        #expect(machine.connectionCompleted(complete(), now: at(3)) == .send(.disconnect(handle)))
        #expect(machine.disconnected(ConnectionHandle(0x41)) == .nothing)
        #expect(machine.disconnected(handle) == .finish(.cancelled))
        #expect(machine.isIdle == true)
    }

    @Test func `a cancellation before the command's status follows it`() {
        var machine = ConnectStateMachine()
        _ = machine.connectRequested(request, family: .legacy, now: at(0))
        #expect(machine.cancelRequested(now: at(0)) == .nothing)
        #expect(machine.createAnswered(.started, now: at(0)) == .send(.createConnectionCancel))
        #expect(machine.connectionCompleted(complete(.unknownConnection), now: at(0)) == .finish(.cancelled))
        // The status is a refusal: nothing to cancel.
        _ = machine.connectRequested(request, family: .legacy, now: at(1))
        _ = machine.cancelRequested(now: at(1))
        #expect(machine.createAnswered(.refused(.commandDisallowed), now: at(1)) == .finish(.cancelled))
        // The event overtakes the status.
        _ = machine.connectRequested(request, family: .legacy, now: at(2))
        _ = machine.cancelRequested(now: at(2))
        #expect(machine.connectionCompleted(complete(), now: at(2)) == .send(.disconnect(handle)))
        #expect(machine.createAnswered(.started, now: at(2)) == .nothing)
        #expect(machine.disconnected(handle) == .finish(.cancelled))
    }

    @Test func `a controller that does not end what it began is reset`() {
        var machine = initiating()
        _ = machine.cancelRequested(now: at(3))
        #expect(machine.deadlineReached(now: at(5)) == .resetController)
        #expect(machine.nextDeadline == nil)
        #expect(machine.controllerLost() == .finish(.controllerLost))
        #expect(machine.isIdle == true)
        var closing = initiating()
        _ = closing.cancelRequested(now: at(3))
        _ = closing.connectionCompleted(complete(), now: at(3))
        #expect(closing.nextDeadline == at(13))
        #expect(closing.deadlineReached(now: at(13)) == .resetController)
        #expect(closing.controllerLost() == .finish(.controllerLost))
    }

    @Test func `a peer that was there and then silent is tried again at once, not for ever`() {
        var machine = initiating()
        for _ in 0..<3 {
            #expect(
                machine.connectionCompleted(complete(.failedToEstablish), now: at(1))
                    == .send(.createConnection(request)))
            #expect(machine.createAnswered(.started, now: at(1)) == .nothing)
        }
        #expect(
            machine.connectionCompleted(complete(.failedToEstablish), now: at(1))
                == .finish(.failed(.failedToEstablish)))
        // The deadline is that of the first attempt.
        var late = initiating()
        _ = late.connectionCompleted(complete(.failedToEstablish), now: at(9))
        #expect(late.nextDeadline == at(10))
    }

    @Test func `a refusal ends the attempt`() {
        var machine = ConnectStateMachine()
        _ = machine.connectRequested(request, family: .legacy, now: at(0))
        #expect(machine.createAnswered(.refused(.connectionLimit), now: at(0)) == .finish(.failed(.connectionLimit)))
        _ = machine.connectRequested(request, family: .legacy, now: at(0))
        #expect(machine.createAnswered(.lost, now: at(0)) == .finish(.controllerLost))
        _ = machine.connectRequested(request, family: .legacy, now: at(0))
        #expect(machine.createAnswered(.started, now: at(0)) == .nothing)
        #expect(machine.controllerLost() == .finish(.controllerLost))
        #expect(machine.controllerLost() == .nothing)
    }

    /// Every input in every state: none traps, and after the controller is lost everything is idle again (acceptance
    /// d).
    @Test func `any order of facts ends`() {
        let inputs: [(inout ConnectStateMachine) -> ConnectStateMachine.Action] = [
            { $0.connectRequested(self.request, family: .legacy, now: at(1)) }, { $0.cancelRequested(now: at(2)) },
            { $0.createAnswered(.started, now: at(2)) },
            { $0.createAnswered(.refused(.commandDisallowed), now: at(2)) },
            { $0.connectionCompleted(self.complete(), now: at(2)) },
            { $0.connectionCompleted(self.complete(.unknownConnection), now: at(2)) },
            { $0.disconnected(self.handle) }, { $0.deadlineReached(now: at(100)) },
            { $0.cancelAnswered(.refused(.commandDisallowed)) },
        ]
        for first in inputs.indices {
            for second in inputs.indices {
                for third in inputs.indices {
                    for fourth in inputs.indices {
                        var machine = ConnectStateMachine()
                        var begun = 0
                        var finished = 0
                        for index in [0, first, second, third, fourth] {
                            let wasIdle = machine.isIdle
                            let action = inputs[index](&machine)
                            if index == 0, wasIdle { begun += 1 }
                            if case .finish(let result) = action, result != .busy { finished += 1 }
                        }
                        if case .finish = machine.controllerLost() { finished += 1 }
                        #expect(machine.isIdle == true)
                        #expect(machine.nextDeadline == nil)
                        #expect(begun == finished, "\([first, second, third, fourth])")
                    }
                }
            }
        }
    }
}
