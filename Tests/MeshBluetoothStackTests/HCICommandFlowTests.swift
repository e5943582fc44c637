// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshTestSupport
import Testing

struct HCICommandFlowTests {
    private typealias Machine = HCICommandFlowStateMachine<Int>

    /// A machine whose first Reset was answered.
    private func ready() -> Machine {
        var machine = Machine()
        #expect(machine.opened(now: at(0)).commands == [.reset])
        let action = machine.commandCompleted(.reset, parameters: [0], allowance: 1, now: at(0.1))
        #expect(action.change == .becameReady)
        return machine
    }

    private let first = HCICommand.read(.readAddress)
    private let second = HCICommand.read(.readLocalVersion)

    @Test func `one command at a time until the controller allows more`() {
        var machine = ready()
        #expect(machine.commandRequested(first, waiter: 1, now: at(1)).commands == [first])
        #expect(machine.commandRequested(second, waiter: 2, now: at(1)).commands == [])
        let answer = machine.commandCompleted(.readAddress, parameters: [0, 9], allowance: 1, now: at(1))
        #expect(answer.finished.map(\.waiter) == [1])
        #expect(answer.finished.map(\.outcome) == [.completed([9])])
        #expect(answer.commands == [second])
        let wide = machine.commandCompleted(.readLocalVersion, parameters: [0], allowance: 2, now: at(1))
        #expect(wide.finished.map(\.waiter) == [2])
        #expect(machine.commandRequested(first, waiter: 3, now: at(1)).commands == [first])
        #expect(machine.commandRequested(second, waiter: 4, now: at(1)).commands == [second])
        #expect(machine.commandRequested(.reset, waiter: 5, now: at(1)).commands == [])
        // Answers may come in any order.
        let late = machine.commandCompleted(.readLocalVersion, parameters: [0], allowance: 2, now: at(1))
        #expect(late.finished.map(\.waiter) == [4])
        #expect(late.commands == [.reset])
    }

    @Test func `no allowance stops everything until an event of no command gives it back`() {
        var machine = ready()
        _ = machine.commandRequested(first, waiter: 1, now: at(1))
        _ = machine.commandCompleted(.readAddress, parameters: [0], allowance: 0, now: at(1))
        #expect(machine.commandRequested(second, waiter: 2, now: at(1)).commands == [])
        #expect(machine.commandCompleted(.none, parameters: [], allowance: 1, now: at(1.5)).commands == [second])
        // Without it the controller is reset, too.
        var stuck = ready()
        _ = stuck.commandCompleted(.none, parameters: [], allowance: 0, now: at(1))
        _ = stuck.commandRequested(first, waiter: 1, now: at(2))
        #expect(stuck.deadlineReached(now: at(4)).change == .beganReset(.commandTimedOut(.readAddress)))
    }

    @Test func `an unknown command is refused with either event`() {
        var machine = ready()
        _ = machine.commandRequested(first, waiter: 1, now: at(1))
        let complete = machine.commandCompleted(.readAddress, parameters: [1], allowance: 1, now: at(1))
        #expect(complete.finished.map(\.outcome) == [.refused(.unknownCommand)])
        _ = machine.commandRequested(second, waiter: 2, now: at(1))
        let status = machine.commandStatusReported(.readLocalVersion, .unknownCommand, allowance: 1, now: at(1))
        #expect(status.finished.map(\.outcome) == [.refused(.unknownCommand)])
    }

    @Test func `a status without failure says that an event will follow`() {
        var machine = ready()
        _ = machine.commandRequested(.createConnectionCancel, waiter: 1, now: at(1))
        let status = machine.commandStatusReported(.createConnectionCancel, .success, allowance: 1, now: at(1))
        #expect(status.finished.map(\.outcome) == [.started])
    }

    @Test func `a controller silent for 2 s is reset, then given up (R26)`() {
        var machine = ready()
        _ = machine.commandRequested(first, waiter: 1, now: at(10))
        _ = machine.commandRequested(second, waiter: 2, now: at(11))
        #expect(machine.nextDeadline == at(12))
        #expect(machine.deadlineReached(now: at(11.9)).commands == [])
        let action = machine.deadlineReached(now: at(12))
        #expect(action.change == .beganReset(.commandTimedOut(.readAddress)))
        #expect(action.commands == [.reset])
        #expect(action.finished.map(\.waiter) == [1, 2])
        #expect(action.finished.allSatisfy { $0.outcome == .lost })
        // Nothing is taken meanwhile, and late answers are nobody's.
        #expect(machine.commandRequested(first, waiter: 3, now: at(12)).finished.map(\.outcome) == [.lost])
        #expect(machine.commandCompleted(.readAddress, parameters: [0], allowance: 1, now: at(12)).finished.isEmpty)
        #expect(machine.strayAnswers == 1)
        #expect(machine.nextDeadline == at(14))
        #expect(machine.deadlineReached(now: at(14)).change == .gaveUp)
        #expect(machine.nextDeadline == nil)
        #expect(machine.opened(now: at(20)).commands == [.reset])
    }

    @Test func `a reset that is answered makes it ready again`() {
        var machine = ready()
        #expect(machine.hardwareErrorReported(0x42, now: at(5)).change == .beganReset(.hardwareError(0x42)))
        #expect(machine.commandCompleted(.reset, parameters: [0], allowance: 1, now: at(5)).change == .becameReady)
        #expect(machine.commandRequested(first, waiter: 1, now: at(6)).commands == [first])
    }

    @Test func `the reset of a fresh line is sent four times`() {
        var machine = Machine()
        #expect(machine.opened(now: at(0)).change == .beganReset(.opened))
        for time in [0.2, 0.4, 0.6] { #expect(machine.deadlineReached(now: at(time)).commands == [.reset]) }
        #expect(machine.deadlineReached(now: at(0.8)).commands == [])
        #expect(machine.deadlineReached(now: at(2.6)).change == .gaveUp)
    }

    @Test func `answers to nothing keep no silent controller alive`() {
        var machine = ready()
        _ = machine.commandRequested(first, waiter: 1, now: at(1))
        _ = machine.commandCompleted(.readLocalVersion, parameters: [0], allowance: 1, now: at(2.5))
        #expect(machine.nextDeadline == at(3))
    }

    @Test func `closing loses what waits`() {
        var machine = ready()
        _ = machine.commandRequested(first, waiter: 1, now: at(1))
        #expect(machine.closed().finished.map(\.waiter) == [1])
        #expect(machine.nextDeadline == nil)
        #expect(machine.commandRequested(first, waiter: 2, now: at(1)).finished.map(\.outcome) == [.lost])
    }

    @Test(arguments: 0..<40) func `any order of answers gives every waiter one outcome`(seed: UInt64) {
        var random = SplitMix(state: seed)
        var machine = Machine()
        var pending: Set<Int> = []
        var underWay = 0
        var now = Duration.zero
        let opcodes: [HCIOpcode] = [.readAddress, .readLocalVersion, .none, .reset]
        for number in 0..<500 {
            now += .milliseconds(Int.random(in: 0...400, using: &random))
            let opcode = opcodes.randomElement(using: &random) ?? .none
            let allowance = UInt8.random(in: 0...3, using: &random)
            let action: Machine.Action
            switch Int.random(in: 0..<8, using: &random) {
            case 0, 1, 2:
                pending.insert(number)
                action = machine.commandRequested(.read(opcode), waiter: number, now: now)
            case 3, 4: action = machine.commandCompleted(opcode, parameters: [0], allowance: allowance, now: now)
            case 5: action = machine.commandStatusReported(opcode, .success, allowance: allowance, now: now)
            case 6: action = machine.deadlineReached(now: now)
            default:
                action =
                    machine.isReady ? machine.hardwareErrorReported(1, now: now) : machine.opened(now: now)
            }
            for (waiter, _) in action.finished { #expect(pending.remove(waiter) != nil) }
            switch action.change {
            case .beganReset, .becameReady, .gaveUp: underWay = 0
            case nil:
                underWay += action.commands.count - action.finished.count { $0.outcome != .lost }
                if machine.isReady { #expect((0...3).contains(underWay)) }
            }
        }
        for (waiter, _) in machine.closed().finished { #expect(pending.remove(waiter) != nil) }
        #expect(pending.isEmpty)
    }
}
