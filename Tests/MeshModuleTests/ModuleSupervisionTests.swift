// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport
import Testing

@testable import MeshModuleHost

/// The machines behind the processes of modules, in virtual time.
@Suite struct ModuleSupervisionTests {
    private static func seconds(_ duration: Duration) -> Double { duration / .seconds(1) }

    // MARK: The supervisor

    @Test func `the wait doubles from crash to crash up to five minutes`() {
        var machine = ModuleSupervisorStateMachine(.init(crashLimit: .max))
        var chance = SplitMix(state: 1)
        var now = Duration.zero
        for base in [1.0, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            guard case .wait(let delay) = machine.crashed(now: now, using: &chance) else {
                Issue.record("quarantined")
                return
            }
            #expect((base...base * 1.25).contains(Self.seconds(delay)), "\(delay) after \(base) s")
            guard case .wait(let left) = machine.startRequested(now: now) else {
                Issue.record("may start at once")
                return
            }
            #expect(left == delay)
            now += delay
            guard case .start = machine.startRequested(now: now) else {
                Issue.record("may not start in time")
                return
            }
        }
        now += .seconds(600)
        guard case .wait(let delay) = machine.crashed(now: now, using: &chance) else {
            Issue.record("quarantined")
            return
        }
        #expect(Self.seconds(delay) <= 1.25)
    }

    @Test func `the fifth crash within ten minutes is the last`() {
        var chance = SplitMix(state: 2)
        var machine = ModuleSupervisorStateMachine()
        for crash in 0..<5 {
            let action = machine.crashed(now: .seconds(crash * 149), using: &chance)
            let isQuarantined = machine.isQuarantined
            #expect(isQuarantined == (crash == 4))
            if case .quarantine = action { #expect(crash == 4) }
        }
        guard case .refuse = machine.startRequested(now: .seconds(1_000_000)) else {
            Issue.record("starts out of quarantine")
            return
        }
        guard case .quarantine = machine.crashed(now: .seconds(1_000_001), using: &chance) else {
            Issue.record("a process that still ran lifts the quarantine")
            return
        }
        machine.reset()
        guard case .start = machine.startRequested(now: .seconds(1_000_002)) else {
            Issue.record("does not start after a reset")
            return
        }
    }

    @Test func `crashes further apart never lead to quarantine`() {
        var chance = SplitMix(state: 3)
        var machine = ModuleSupervisorStateMachine()
        for crash in 0..<1_000 { _ = machine.crashed(now: .seconds(crash * 151), using: &chance) }
        let isQuarantined = machine.isQuarantined
        #expect(!isQuarantined)
    }

    // MARK: A process

    /// What a deadline asked for, in a word.
    private static func word(_ action: ModuleProcessStateMachine.DeadlineAction) -> String {
        switch action {
        case .none: "none"
        case .ping: "ping"
        case .terminate: "terminate"
        case .kill(let reason): "kill: \(reason)"
        }
    }

    @Test func `a process that says nothing is killed in time`() {
        var machine = ModuleProcessStateMachine(now: .zero)
        let first = machine.nextDeadline
        #expect(first == .seconds(5))
        #expect(Self.word(machine.deadlineReached(now: .milliseconds(4_999))) == "none")
        #expect(Self.word(machine.deadlineReached(now: .seconds(5))) == "kill: said nothing within 5 s")
        let isCrash = machine.killed()
        #expect(isCrash)
        let none = machine.nextDeadline
        #expect(none == nil)
        let isCounted = machine.exited()
        #expect(!isCounted)
    }

    @Test func `a module that does not start is killed in time`() {
        var machine = ModuleProcessStateMachine(now: .zero)
        let isGreeted = machine.helloReceived(now: .seconds(1))
        #expect(isGreeted)
        let deadline = machine.nextDeadline
        #expect(deadline == .seconds(11))
        #expect(Self.word(machine.deadlineReached(now: .seconds(11))) == "kill: did not start within 10 s")
    }

    @Test func `pings go every five seconds and fifteen without an answer are the end`() {
        var machine = Self.running()
        for second in stride(from: 5, through: 100, by: 5) {
            let deadline = machine.nextDeadline
            #expect(deadline == .seconds(second))
            #expect(Self.word(machine.deadlineReached(now: .seconds(second))) == "ping")
            machine.pongReceived(now: .seconds(second))
        }
        #expect(Self.word(machine.deadlineReached(now: .seconds(105))) == "ping")
        #expect(Self.word(machine.deadlineReached(now: .seconds(110))) == "ping")
        let last = machine.nextDeadline
        #expect(last == .seconds(115))
        #expect(Self.word(machine.deadlineReached(now: .seconds(115))).hasPrefix("kill: hangs"))
    }

    @Test func `a process that is stopped is not a crash, however it ends`() {
        for step in 0..<4 {
            var machine = Self.running()
            guard case .sendStop = machine.stop(now: .zero) else {
                Issue.record("is not asked to stop")
                return
            }
            if step > 0 { machine.stopped(now: .seconds(1)) }
            if step > 1 { #expect(Self.word(machine.deadlineReached(now: .seconds(2))) == "terminate") }
            if step > 2 {
                #expect(Self.word(machine.deadlineReached(now: .seconds(3))) == "kill: does not end")
                let isCrash = machine.killed()
                #expect(!isCrash)
            }
            let isCrash = machine.exited()
            #expect(!isCrash)
        }
    }

    @Test func `a stop before the hello kills what has begun nothing`() {
        var machine = ModuleProcessStateMachine(now: .zero)
        guard case .kill = machine.stop(now: .zero) else {
            Issue.record("is not killed")
            return
        }
        let isCrash = machine.exited()
        #expect(!isCrash)
    }

    @Test func `what comes at the wrong time is a breach or nothing`() {
        var machine = Self.running()
        let isGreetedTwice = machine.helloReceived(now: .zero)
        let isStartedTwice = machine.started(now: .zero)
        #expect(!isGreetedTwice && !isStartedTwice)
        let isCrash = machine.exited()
        #expect(isCrash)
        machine.pongReceived(now: .seconds(1))
        machine.stopped(now: .seconds(1))
        let isCrashAgain = machine.killed()
        #expect(!isCrashAgain)
        guard case .none = machine.stop(now: .seconds(1)) else {
            Issue.record("an ended process is stopped")
            return
        }
        let none = machine.nextDeadline
        #expect(none == nil)
    }

    private static func running() -> ModuleProcessStateMachine {
        var machine = ModuleProcessStateMachine(now: .zero)
        _ = machine.helloReceived(now: .zero)
        _ = machine.started(now: .zero)
        return machine
    }

    // MARK: Records

    @Test func `lines become records, whatever pieces they come in`() {
        let text = Array("<3>grave\n\nplain\r\n<9>odd\n<4>\nlast".utf8)
        for portion in 1...text.count {
            var lines = ErrorLines()
            var records: [String] = []
            for start in stride(from: 0, to: text.count, by: portion) {
                records += lines.take(text[start..<min(start + portion, text.count)]).map { "\($0.level) \($0.text)" }
            }
            if let record = lines.finish() { records.append("\(record.level) \(record.text)") }
            #expect(records == ["error grave", "info plain ", "info <9>odd", "info last"])
        }
    }

    @Test func `a line without end is cut`() {
        var lines = ErrorLines()
        #expect(lines.take([UInt8](repeating: 65, count: 100_000)).isEmpty)
        #expect(lines.take([10]).first?.text.count == 1_025)
    }

    @Test func `records beyond the allowance are counted and told of`() {
        var allowance = LogAllowance(now: .zero)
        let allowed = (0..<1_000).count { _ in allowance.take(now: .zero).isAllowed }
        #expect(allowed == 200)
        let next = allowance.take(now: .seconds(1))
        #expect(next.isAllowed)
        #expect(next.lost == 800)
    }
}
