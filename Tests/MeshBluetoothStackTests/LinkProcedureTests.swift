// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import MeshBluetoothStack

struct LinkProcedureTests {
    private let handle = ConnectionHandle(0x40)

    private func machine() -> LinkProcedureStateMachine {
        LinkProcedureStateMachine(
            ConnectionComplete(
                status: .success, handle: handle, role: .central, peer: DeviceAddress(1, .random),
                parameters: .init(interval: 12, latency: 0, supervisionTimeout: 500)))
    }

    private let all: LEFeatures = [.dataLengthExtension, .twoMegabit]

    @Test func `features, data length, mode and parameters, one after the other`() {
        var machine = machine()
        #expect(
            machine.procedureRequested(.readRemoteFeatures, now: at(0)).commands
                == [.read(.readRemoteFeatures, of: handle)])
        for procedure in [LinkProcedure.setDataLength(.maximum), .setPHY(.twoMegabit), .updateParameters(.relaxed)] {
            #expect(machine.procedureRequested(procedure, now: at(0)) == .init())
        }
        #expect(machine.commandFinished(.readRemoteFeatures, .started, now: at(0)) == .init())
        let features = machine.eventReceived(.remoteFeatures(.success, handle, all), now: at(0))
        #expect(features.finished == [.init(procedure: .readRemoteFeatures, status: .success)])
        #expect(features.commands == [.setDataLength(handle, .maximum)])
        let length = machine.commandFinished(.setDataLength, .completed([]), now: at(0))
        #expect(length.commands == [.setPHY(handle, .twoMegabit)])
        _ = machine.eventReceived(.dataLengthChanged(handle, transmit: .maximum, receive: .maximum), now: at(0))
        #expect(machine.dataLength == .maximum)
        #expect(machine.commandFinished(.setPHY, .started, now: at(0)) == .init())
        let mode = machine.eventReceived(.phyUpdated(.success, handle, transmit: 2, receive: 2), now: at(0))
        #expect(machine.transmitPHY == 2)
        #expect(mode.commands == [.updateConnection(handle, .relaxed)])
        _ = machine.commandFinished(.updateConnection, .started, now: at(0))
        let current = HCIEvent.CurrentParameters(interval: 24, latency: 0, supervisionTimeout: 500)
        let update = machine.eventReceived(.connectionUpdated(.success, handle, current), now: at(0))
        #expect(update.finished == [.init(procedure: .updateParameters(.relaxed), status: .success)])
        #expect(machine.parameters == current)
        #expect(machine.nextDeadline == nil)
    }

    @Test func `what the peer cannot do is not asked for`() {
        var machine = machine()
        _ = machine.eventReceived(.remoteFeatures(.success, handle, []), now: at(0))
        for procedure in [LinkProcedure.setDataLength(.maximum), .setPHY(.twoMegabit)] {
            let action = machine.procedureRequested(procedure, now: at(0))
            #expect(action.commands == [])
            #expect(action.finished == [.init(procedure: procedure, status: .unsupportedRemoteFeature)])
        }
    }

    @Test(arguments: [HCIStatus.procedureCollision, .differentTransactionCollision, .controllerBusy])
    func `a collision is tried again three times, 100 ms apart`(status: HCIStatus) {
        var machine = machine()
        let command = [HCICommand.setPHY(handle, .twoMegabit)]
        #expect(machine.procedureRequested(.setPHY(.twoMegabit), now: at(0)).commands == command)
        for round in 1...3 {
            // Once as the command's status, else as the event's.
            if round == 1 {
                #expect(machine.commandFinished(.setPHY, .refused(status), now: at(0)) == .init())
            } else {
                _ = machine.commandFinished(.setPHY, .started, now: at(0))
                #expect(
                    machine.eventReceived(.phyUpdated(status, handle, transmit: 1, receive: 1), now: at(0)) == .init())
            }
            #expect(machine.nextDeadline == at(0.1))
            #expect(machine.deadlineReached(now: at(0.1)).commands == command)
        }
        _ = machine.commandFinished(.setPHY, .started, now: at(0))
        let last = machine.eventReceived(.phyUpdated(status, handle, transmit: 1, receive: 1), now: at(0))
        #expect(last.finished == [.init(procedure: .setPHY(.twoMegabit), status: status)])
    }

    @Test func `a peer that asks for parameters all the time fills no queue`() {
        var machine = machine()
        _ = machine.procedureRequested(.setPHY(.twoMegabit), now: at(0))
        var over: [HCIStatus] = []
        for timeout: UInt16 in 400..<500 {
            var wanted = ConnectionParameters.relaxed
            wanted.supervisionTimeout = timeout
            over += machine.procedureRequested(.updateParameters(wanted), now: at(0)).finished.map(\.status)
        }
        #expect(over == [HCIStatus](repeating: .commandDisallowed, count: 99))
        _ = machine.commandFinished(.setPHY, .started, now: at(0))
        var last = ConnectionParameters.relaxed
        last.supervisionTimeout = 499
        #expect(
            machine.eventReceived(.phyUpdated(.success, handle, transmit: 2, receive: 2), now: at(0)).commands
                == [.updateConnection(handle, last)])
        var statuses: [HCIStatus] = []
        for _ in 0..<20 {
            statuses += machine.procedureRequested(.setPHY(.twoMegabit), now: at(0)).finished.map(\.status)
        }
        #expect(statuses == [HCIStatus](repeating: .memoryExceeded, count: 4))
    }

    @Test func `a refusal or silence lets the link go on`() {
        var machine = machine()
        _ = machine.procedureRequested(.updateParameters(.relaxed), now: at(0))
        _ = machine.procedureRequested(.setPHY(.twoMegabit), now: at(0))
        let refusal = machine.commandFinished(.updateConnection, .refused(.unacceptableParameters), now: at(0))
        #expect(refusal.finished.map(\.status) == [.unacceptableParameters])
        #expect(refusal.end == nil)
        #expect(machine.nextDeadline == at(5))
        let silence = machine.deadlineReached(now: at(5))
        #expect(silence.finished.map(\.status) == [.responseTimeout])
        #expect(silence.end == nil)
        // What comes too late is nobody's.
        #expect(machine.eventReceived(.phyUpdated(.success, handle, transmit: 2, receive: 2), now: at(6)) == .init())
    }

    @Test func `the end of a link fails what waits`() {
        var machine = machine()
        _ = machine.procedureRequested(.setPHY(.twoMegabit), now: at(0))
        _ = machine.procedureRequested(.updateParameters(.relaxed), now: at(0))
        let other = HCIEvent.disconnectionComplete(.success, ConnectionHandle(1), reason: .connectionTimeout)
        #expect(machine.eventReceived(other, now: at(0)) == .init())
        let end = machine.eventReceived(
            .disconnectionComplete(.success, handle, reason: .connectionTimeout), now: at(0))
        #expect(end.end == .disconnected(.connectionTimeout))
        #expect(end.finished.map(\.procedure) == [.setPHY(.twoMegabit), .updateParameters(.relaxed)])
        #expect(machine.nextDeadline == nil)
        #expect(
            machine.procedureRequested(.readRemoteFeatures, now: at(1)).finished.map(\.status) == [.unknownConnection])
        #expect(machine.disconnectRequested(now: at(1)) == .init())
    }

    @Test func `closing waits for as long as the peer may be silent`() {
        var long = machine()
        let current = HCIEvent.CurrentParameters(interval: 24, latency: 4, supervisionTimeout: 3200)
        _ = long.eventReceived(.connectionUpdated(.success, handle, current), now: at(0))
        _ = long.disconnectRequested(now: at(0))
        #expect(long.nextDeadline == at(34))
        // Or may be silent as soon as what was ordered is in effect.
        var ordered = machine()
        var wanted = ConnectionParameters.relaxed
        wanted.supervisionTimeout = 1000
        _ = ordered.procedureRequested(.updateParameters(wanted), now: at(0))
        _ = ordered.disconnectRequested(now: at(0))
        #expect(ordered.nextDeadline == at(12))
    }

    @Test func `closing waits for its event`() {
        var machine = machine()
        _ = machine.procedureRequested(.setPHY(.twoMegabit), now: at(0))
        let action = machine.disconnectRequested(now: at(0))
        #expect(action.commands == [.disconnect(handle)])
        #expect(action.finished.map(\.status) == [.localHostTerminated])
        #expect(machine.disconnectRequested(now: at(0)) == .init())
        #expect(machine.commandFinished(.disconnect, .started, now: at(0)) == .init())
        #expect(machine.nextDeadline == at(7))
        var gone = self.machine()
        _ = gone.disconnectRequested(now: at(0))
        #expect(
            gone.commandFinished(.disconnect, .refused(.unknownConnection), now: at(0)).end
                == .disconnected(.localHostTerminated))
        #expect(
            machine.eventReceived(.disconnectionComplete(.success, handle, reason: .localHostTerminated), now: at(1))
                .end
                == .disconnected(.localHostTerminated))
        var silent = self.machine()
        _ = silent.disconnectRequested(now: at(0))
        #expect(silent.deadlineReached(now: at(7)).end == .unanswered)
    }
}
