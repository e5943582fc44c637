// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import Glibc
internal import MeshLoop
internal import MeshModuleHost
internal import MeshTransportAPI
internal import MeshTransportTesting

/// The process that one rule is tried in, so that a module that crashes, hangs or spoils its surroundings harms one trial.
public enum TrialProcess {
    /// The first word of its command line, which is meshhost's own.
    public static let word = "module-trial"
    /// Where it answers.
    static let descriptor: Int32 = 3

    /// Tries what standard input says. Returns an exit status, if it returns.
    public static func run() -> Int32 {
        // As the host has it.
        signal(SIGPIPE, SIG_IGN)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        guard let request = TrialRequest(standardInput()) else {
            tell("meshhost: this command is meshhost's own, for `meshhost module-test`", to: STDERR_FILENO)
            return 64
        }
        // Ended in the middle of things: what a module leaves behind is no business of this process.
        let loop = EventLoop()
        let answer =
            request.part == .functions && !request.isCommand ? functions(request, loop) : hosted(request, loop)
        tell(answer.document.text(), to: descriptor)
        withExtendedLifetime(loop) { _exit(0) }
    }

    /// One line. Without a reader there is no more to do.
    private static func tell(_ line: String, to descriptor: Int32) {
        var bytes = Array("\(line)\n".utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { _exit(1) }
            bytes = bytes.dropFirst(count)
        }
    }

    private static func standardInput() -> Data {
        var document = Data()
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(STDIN_FILENO, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return document }
            document += buffer.prefix(count)
        }
    }

    // MARK: The module's functions

    /// How long a module is listened to that has nothing more to say.
    private static let aftermath: Duration = .milliseconds(100)

    private static func functions(_ request: TrialRequest, _ loop: EventLoop) -> TrialAnswer {
        let before = ProcessFacts()
        let module: ExaminedModule
        do throws(RuleEnd) {
            module = try ExaminedModule(path: request.words[0])
        } catch {
            guard case .broken(let what) = error else { return TrialAnswer(.broken("\(error)")) }
            return TrialAnswer(
                request.rule == nil || request.rule == ABIRule.loading
                    ? .broken(what) : .skipped("the module cannot be used: \(what)"))
        }
        let stage = Stage(
            module, loop, options: request.options(for: module.options), hasEcho: request.hasEcho,
            patience: request.patience, obstacle: request.obstacle
        ) { tell($0, to: descriptor) }
        guard let name = request.rule else { return TrialAnswer(.kept, module: stage.description) }
        guard let rule = ABIRule.all.first(where: { $0.name == name }) else {
            return TrialAnswer(.broken("there is no such rule"))
        }
        let handles = loop.openHandles
        var outcome = ConformanceResult.Outcome.kept
        var isApplicable = true
        var isOverdue = false
        var obstacle: String?
        do {
            try rule.run(on: stage)
            try stage.idle(for: aftermath)
        } catch RuleEnd.broken(let what) {
            outcome = .broken(what)
        } catch RuleEnd.overdue(let what) {
            outcome = .broken(what)
            isOverdue = true
        } catch RuleEnd.skipped(let why) {
            outcome = .skipped(why)
            // What was begun ends as it should.
            for instance in stage.instances { try? instance.end() }
        } catch RuleEnd.unreachable(let why) {
            obstacle = why
            for instance in stage.instances { try? instance.end() }
        } catch RuleEnd.inapplicable(let why) {
            outcome = .skipped(why)
            isApplicable = false
            for instance in stage.instances { try? instance.end() }
        } catch {
            outcome = .broken("\(error)")
        }
        var breaches = stage.breaches
        if case .kept = outcome, obstacle == nil {
            let left = loop.openHandles.count - handles.count
            if left > 0 {
                breaches.append(
                    Breach(
                        rule: .handles,
                        what: "\(left) are left (\(Set(loop.openHandles).sorted().joined(separator: ", ")))"))
            }
        }
        for change in ProcessFacts().changes(since: before) {
            breaches.append(Breach(rule: .surroundings, what: "\(change) is another than before"))
        }
        if let obstacle { return TrialAnswer(unreachable: obstacle, breaches: breaches) }
        var answer = TrialAnswer(outcome, isApplicable: isApplicable, breaches: breaches)
        answer.isOverdue = isOverdue
        return answer
    }

    // MARK: The module behind the host

    /// Rules of a transport take longer than one wait: they try things many times.
    static func timeLimit(_ patience: Duration) -> Duration { patience * 10 }

    private static func hosted(_ request: TrialRequest, _ loop: EventLoop) -> TrialAnswer {
        tell("making the module", to: descriptor)
        let result = HostedResult()
        do throws(ModuleRefusal) {
            let factory = try makeFactory(request, loop)
            guard let rule = request.rule else {
                return TrialAnswer(.kept, module: describe(factory, request))
            }
            tell("using its link", to: descriptor)
            _ = Task(executorPreference: loop.taskExecutor) { [loop] in
                result.answer = await LoopActor(loop).run { _ in await check(rule, factory, request) }
                loop.stop()
            }
            loop.run()
        } catch {
            return TrialAnswer(
                request.rule == nil ? .broken(error.description) : .skipped("the host refuses the module"))
        }
        return result.answer
    }

    /// Sendable: written on the loop's thread, read by it after the loop has ended.
    private final class HostedResult: @unchecked Sendable {
        var answer = TrialAnswer(.broken("it gave no outcome"))
    }

    private static func makeFactory(
        _ request: TrialRequest, _ loop: EventLoop
    ) throws(ModuleRefusal) -> ModuleTransportFactory {
        if request.isCommand {
            let module = try IsolatedModule(nil, ModuleLaunch(.command(request.words)))
            return ModuleTransportFactory(module: module, loop: loop, log: .none)
        }
        let (name, path) = (request.words[1], request.words[0])
        switch request.part {
        case .functions, .inProcess:
            let module = try ModuleLoader(locator: ModuleLocator(only: [])).load(name, path: path)
            return ModuleTransportFactory(module: module, loop: loop, log: .none)
        case .process:
            let module = try IsolatedModule(name, ModuleLaunch(.library(name: name, path: path)))
            return ModuleTransportFactory(module: module, loop: loop, log: .none)
        }
    }

    private static func describe(
        _ factory: ModuleTransportFactory, _ request: TrialRequest
    ) -> ModuleTestReport.Module {
        let facts = factory.descriptor
        return ModuleTestReport.Module(
            name: facts.name, version: facts.version, vendor: facts.vendor, abi: factory.status.abi ?? "",
            problems: facts.options.problems(request.options(for: facts.options)))
    }

    private static func check(
        _ rule: String, _ factory: ModuleTransportFactory, _ request: TrialRequest
    ) async -> TrialAnswer {
        let answer = await tryOut(rule, factory, request)
        await factory.shutDown()
        return answer
    }

    private static func tryOut(
        _ rule: String, _ factory: ModuleTransportFactory, _ request: TrialRequest
    ) async -> TrialAnswer {
        let written = request.options(for: factory.descriptor.options)
        let (values, issues) = factory.check(written)
        guard issues.isEmpty else {
            let missing = factory.descriptor.options.missing(written)
            let words = missing ?? issues.map(\.message).joined(separator: "; ")
            return TrialAnswer(.skipped("it needs a device's options: give \(words)"))
        }
        if request.obstacle != nil { return TrialAnswer(.skipped("no link comes up")) }
        @Sendable func makeTransport(_ environment: TransportEnvironment) throws -> any MeshTransport {
            try factory.makeTransport(
                TransportSettings(device: "test", options: values, written: written, environment: environment))
        }
        if let answer = await obstacle(makeTransport) { return answer }
        let conformance = TransportConformance(timeLimit: timeLimit(request.patience)) { environment in
            ConformanceSubject(
                transport: try makeTransport(environment), peer: SilentPeer(isEchoing: request.hasEcho))
        }
        guard let result = await conformance.run(rule: rule) else {
            return TrialAnswer(.broken("there is no such rule"))
        }
        if case .skipped = result.outcome, !request.hasEcho {
            return TrialAnswer(.skipped("it needs a device that gives back every frame: say --peer echo"))
        }
        return TrialAnswer(result.outcome)
    }

    /// Whether no link comes up at all. Nil: one does.
    private static func obstacle(
        _ makeTransport: (TransportEnvironment) throws -> any MeshTransport
    ) async -> TrialAnswer? {
        var last = ""
        for _ in 0..<TestedInstance.attempts {
            do {
                let transport = try makeTransport(TransportEnvironment(log: .none, linkEvents: { _ in }))
                try await transport.connect()
                await transport.disconnect()
                return nil
            } catch {
                let known = error as? MeshError
                last = known?.message ?? "\(error)"
                if known?.code == .moduleFailed || known == nil { return TrialAnswer(.broken(last)) }
            }
        }
        return TrialAnswer(unreachable: last)
    }
}

extension Stage {
    /// What the module says of itself.
    var description: ModuleTestReport.Module {
        let info = module.info.pointee
        func text(_ text: UnsafePointer<CChar>?) -> String { text.map { String(cString: $0) } ?? "" }
        return ModuleTestReport.Module(
            name: module.name, version: text(info.version), vendor: text(info.vendor),
            abi: "\(info.abi_major).\(info.abi_minor_built)", problems: module.options.problems(options))
    }
}

extension [OptionSpec] {
    /// What is wrong with what was given; what is missing is not wrong.
    func problems(_ given: [String: JSONValue]) -> [String] {
        resolve(given).issues.filter { given[$0.option] != nil }.map { issue in
            issue.hint.map { "\(issue.message) (\($0))" } ?? issue.message
        }
    }

    /// `--option a=… --option b=…`, or nil.
    func missing(_ given: [String: JSONValue]) -> String? {
        let missing = filter { $0.defaultText == nil && given[$0.name] == nil }.map { "--option \($0.name)=…" }
        return missing.isEmpty ? nil : missing.joined(separator: " ")
    }
}
