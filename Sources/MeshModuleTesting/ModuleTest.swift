// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI
internal import MeshTransportTesting

/// Tries every rule of the module ABI, and of a transport, on one module.
///
/// Each rule is tried in a process of its own: a module that crashes breaks one rule and not the test.
///
/// ```swift
/// let report = try ModuleTest(ModuleTestSettings(.library(path: "acme.so"), options: ["port": "7"])).run { _ in }
/// for result in report.broken { print(result.line) }
/// ```
public struct ModuleTest {
    private let settings: ModuleTestSettings
    private let program: String

    /// `program` is a meshhost, by default the running one.
    public init(_ settings: ModuleTestSettings, program: String = "/proc/self/exe") {
        self.settings = settings
        self.program = program
    }

    /// Every rule, in the order in which they are tried and told.
    public static var rules: [(part: ModuleTestPart, rule: String)] {
        let functions = ABIRule.all.map(\.name) + StandingRule.allCases.map(\.rawValue)
        return functions.map { (.functions, $0) }
            + ModuleIsolation.allCases.flatMap { isolation in
                TransportConformance.rules(for: .echoing).map { (ModuleTestPart(isolation), $0) }
            }
    }

    /// The rules that are tried with these settings.
    private var chosen: [(part: ModuleTestPart, rule: String)] {
        Self.rules.filter { part, rule in
            switch part {
            case .functions: isLibrary && settings.wants(rule)
            case .inProcess: settings.isolations.contains(.inProcess) && settings.wants(rule)
            case .process: settings.isolations.contains(.process) && settings.wants(rule)
            }
        }
    }

    private var isLibrary: Bool { if case .library = settings.subject { true } else { false } }

    /// What the module says of itself, and what is wrong with the options that were given. Nil: it cannot be said.
    public func examine() throws -> ModuleTestReport.Module? {
        try withLoop { try examine($0) }
    }

    /// Tries the rules, and tells each result when it is there. Blocks; makes an event loop on this thread.
    public func run(telling tell: (ModuleTestReport.Result) -> Void) throws -> ModuleTestReport {
        try withLoop { loop in
            var report = ModuleTestReport()
            report.module = try examine(loop)
            try run(loop, &report, tell)
            return report
        }
    }

    private func withLoop<Value>(_ body: (EventLoop) throws -> Value) throws -> Value {
        let loop = EventLoop()
        let result = Result { try body(loop) }
        try loop.shutDown()
        return try result.get()
    }

    private func examine(_ loop: EventLoop) throws -> ModuleTestReport.Module? {
        try attempt(loop, isLibrary ? .functions : .process, module: "", rule: nil).answer.module
    }

    private func attempt(
        _ loop: EventLoop, _ part: ModuleTestPart, module: String, rule: String?, obstacle: String? = nil
    ) throws -> TrialRun.Ending {
        // A trial waits for the module with the patience of the settings; the trial itself may take somewhat longer.
        let limit = part == .functions ? settings.patience : TrialProcess.timeLimit(settings.patience)
        return try TrialRun(loop, patience: limit * 2 + .seconds(5))
            .run(program, TrialRequest(settings, part, module: module, rule: rule, obstacle: obstacle))
    }

    private func run(
        _ loop: EventLoop, _ report: inout ModuleTestReport, _ tell: (ModuleTestReport.Result) -> Void
    ) throws {
        let chosen = chosen
        func add(_ result: ModuleTestReport.Result) {
            report.results.append(result)
            tell(result)
        }
        var ledger = StandingLedger()
        let functions = chosen.filter { $0.part == .functions }.map(\.rule)
        let standing = StandingRule.allCases.filter { functions.contains($0.rawValue) }
        var trials = ABIRule.all.map(\.name).filter { functions.contains($0) }
        // What always holds is looked for in every trial, if none is named beside it.
        if trials.isEmpty, !standing.isEmpty { trials = ABIRule.all.map(\.name) }
        var course = Course(module: report.module?.name)
        for rule in trials {
            let ending = try attempt(loop, .functions, rule, &course)
            ledger.note(ending, in: rule)
            if functions.contains(rule) { add(Self.result(.functions, rule, ending)) }
        }
        for rule in standing { add(ledger.result(of: rule)) }
        for (part, rule) in chosen where part != .functions {
            add(Self.result(part, rule, try attempt(loop, part, rule, &course)))
        }
    }

    /// What trials have taught for those that follow.
    private struct Course {
        /// Nil: the module cannot say what it is.
        var module: String?
        /// A device that cannot be reached is not tried again and again.
        var obstacle: String?
        /// Trials that have waited in vain.
        var overdue = 0
        static let overdueLimit = 5
    }

    private func attempt(
        _ loop: EventLoop, _ part: ModuleTestPart, _ rule: String, _ course: inout Course
    ) throws -> TrialRun.Ending {
        if course.overdue >= Course.overdueLimit {
            return TrialRun.Ending(
                skipped: "\(course.overdue) rules have waited in vain; name this one with --rule to try it")
        }
        guard part == .functions || course.module != nil else {
            return TrialRun.Ending(skipped: "the module cannot be used")
        }
        let ending = try attempt(loop, part, module: course.module ?? "", rule: rule, obstacle: course.obstacle)
        course.obstacle = course.obstacle ?? ending.answer.obstacle
        if ending.answer.isOverdue { course.overdue += 1 }
        return ending
    }

    private static func result(
        _ part: ModuleTestPart, _ rule: String, _ ending: TrialRun.Ending
    ) -> ModuleTestReport.Result {
        var result = ModuleTestReport.Result(
            part: part, rule: rule, outcome: ending.answer.outcome, isApplicable: ending.answer.isApplicable)
        if case .broken = result.outcome { result.notes = ending.errors }
        return result
    }
}

/// What has been noticed of the rules that always hold.
private struct StandingLedger {
    private var breaches: [StandingRule: [String]] = [:]
    /// There was a trial that the module took part in.
    private var isUsed = false

    mutating func note(_ ending: TrialRun.Ending, in rule: String) {
        if case .skipped = ending.answer.outcome {} else { isUsed = true }
        for breach in ending.answer.breaches { add(breach.rule, breach.what, rule) }
        if let line = ending.output.first { add(.surroundings, "the module wrote to standard output: \(line)", rule) }
    }

    private mutating func add(_ rule: StandingRule, _ what: String, _ trial: String) {
        breaches[rule, default: []].append("\(what) (while trying \"\(trial)\")")
    }

    func result(of rule: StandingRule) -> ModuleTestReport.Result {
        let outcome: ConformanceResult.Outcome
        var notes: [String] = []
        if let list = breaches[rule] {
            outcome = .broken(list[0])
            notes = Array(list.dropFirst().prefix(4))
        } else {
            outcome = isUsed ? .kept : .skipped("the module cannot be used")
        }
        return ModuleTestReport.Result(part: .functions, rule: rule.rawValue, outcome: outcome, notes: notes)
    }
}
