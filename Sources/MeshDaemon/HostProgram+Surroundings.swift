// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc
internal import MeshConfig
internal import MeshLoop
internal import MeshTransportAPI
internal import Synchronization

/// `scan`, `pair`, `unpair`: the running daemon is asked, so that an adapter has one user. Without one, the modules are
/// loaded into this process.
extension HostProgram {
    func runScan(_ scan: HostCommand.ScanOptions) -> ExitStatus {
        reporting { () throws(MeshError) in
            var report = ScanReport(scan, options)
            if try !daemonScans(scan, &report) { try scanHere(scan, &report) }
            report.finish()
            // Told already; what is wrong needs no further examination.
            if let failure = report.failure { return Self.status(of: failure) }
            return report.isEmpty ? try explainSilence(report.modules) : .ok
        }
    }

    /// Nothing was heard: because nobody is there, or because of what the modules know.
    private func explainSilence(_ modules: [String]) throws(MeshError) -> ExitStatus {
        let findings: [DoctorFinding]
        if let answer = try askDaemon("examine", ["modules": .array(modules.map { .string($0) })]) {
            findings = (answer["findings"]?.arrayValue ?? []).compactMap { DoctorFinding($0) }
        } else {
            findings = try locally { (host: LocalHost) throws(MeshError) in await host.examine(modules) }
        }
        let problems = findings.filter { $0.finding.severity == .problem }
        Terminal.complain("meshhost: nothing was heard\(problems.isEmpty ? "; is the device on, and near?" : ":")")
        if problems.isEmpty { return .ok }
        Terminal.complain(String(Doctor.text(problems).dropLast()))
        return .unavailable
    }

    func runPair(_ request: HostCommand.PairOptions, isRemoval: Bool) -> ExitStatus {
        reporting { () throws(MeshError) in
            var request = request
            if !isRemoval { request.pin = try pin(request.pin) }
            let asked = request
            var answer = try askDaemon(isRemoval ? "unpair" : "pair", asked.json)
            if answer == nil {
                answer = try locally { (host: LocalHost) throws(MeshError) in
                    isRemoval ? try await host.unpair(asked) : try await host.pair(asked)
                }
            }
            show(answer ?? .null, asked.target, isRemoval: isRemoval)
            return .ok
        }
    }

    // MARK: Where it is done

    /// The daemon's answer; nil where none runs.
    func askDaemon(_ method: String, _ params: JSONValue) throws(MeshError) -> JSONValue? {
        guard var client = try daemon() else { return nil }
        return try client.ask(method, params)
    }

    /// A connection to the daemon, if one runs.
    func daemon() throws(MeshError) -> ControlClient? {
        do throws(MeshError) {
            return try ControlClient(path: controlSocket)
        } catch {
            if error.code == .serviceUnavailable { return nil }
            throw error
        }
    }

    private func daemonScans(
        _ scan: HostCommand.ScanOptions, _ report: inout ScanReport
    ) throws(MeshError) -> Bool {
        guard var client = try daemon() else { return false }
        let params: JSONValue = [
            "for_ms": .int(scan.time.milliseconds), "module": scan.module.map { .string($0) } ?? .null,
        ]
        var isWanted = true
        try client.stream("scan", params) { event in
            isWanted = report.take(event)
            return isWanted
        }
        return true
    }

    private func scanHere(_ scan: HostCommand.ScanOptions, _ report: inout ScanReport) throws(MeshError) {
        let shared = Shared(report)
        try locally { (host: LocalHost) throws(MeshError) in
            try await host.scan(scan) { event in shared.value.withLock { $0.take(event) } }
        }
        report = shared.value.withLock { $0 }
    }

    /// Does something with modules in this process. SIGINT and SIGTERM end it, and the modules, in an orderly way: what was begun
    /// is undone. What they kept from its end then ends the process as such a signal does where nobody minds it.
    func locally<Outcome: Sendable>(
        _ body: @escaping @Sendable (LocalHost) async throws(MeshError) -> Outcome
    ) throws(MeshError) -> Outcome {
        let logWriter = LogWriter(level: .warning, environment: environment)
        let loop = EventLoop()
        let catalog = ModuleCatalog(loop: loop, log: logWriter.sink)
        let reading = source.read(catalog)
        if reading.config == nil {
            Terminal.complain("meshhost: the config has errors and is not used; see `meshhost check`")
        }
        let host = LocalHost(
            loop: loop, catalog: catalog, config: reading.config ?? HostConfig(), log: logWriter.sink)
        let result = Shared<Result<Outcome, MeshError>?>(nil)
        let interruption = Shared<Int32?>(nil)
        _ = host.assumeIsolated { host in
            let work = Task(executorPreference: host.loop.taskExecutor) {
                do throws(MeshError) {
                    let outcome = try await body(host)
                    result.value.withLock { $0 = .success(outcome) }
                } catch {
                    result.value.withLock { $0 = .failure(error) }
                }
            }
            host.watchSignals { number in
                interruption.value.withLock { $0 = $0 ?? number }
                work.cancel()
            }
            return Task(executorPreference: host.loop.taskExecutor) {
                await work.value
                await host.shutDown()
                host.loop.stop()
            }
        }
        loop.run()
        try? loop.shutDown()
        guard let result = result.value.withLock({ $0 }) else {
            throw MeshError(.internalError, "the loop ended before its work")
        }
        if case .failure = result, let number = interruption.value.withLock({ $0 }) {
            Terminal.complain("meshhost: interrupted")
            signal(number, SIG_DFL)
            raise(number)
        }
        return try result.get()
    }

    /// Runs `body`; its error is told.
    func reporting(_ body: () throws(MeshError) -> ExitStatus) -> ExitStatus {
        do throws(MeshError) {
            return try body()
        } catch {
            Terminal.complain("meshhost: \(error.message)")
            return Self.status(of: error)
        }
    }

    // MARK: Pairing

    /// The PIN of the command line, of standard input, or of the environment, where nobody else sees it.
    private func pin(_ given: String?) throws(MeshError) -> String? {
        let text: String
        switch given {
        case "-": text = readLine() ?? ""
        case let given?: text = given
        case nil:
            guard let named = environment["MESHHOST_PIN"], !named.isEmpty else { return nil }
            text = named
        }
        do throws(UsageError) {
            return try HostCommand.PairOptions.checked(pin: text)
        } catch {
            throw MeshError(.invalidArgument, error.message)
        }
    }

    private func show(_ answer: JSONValue, _ target: String, isRemoval: Bool) {
        if options.isJSON { return Terminal.write(answer) }
        guard !options.isQuiet else { return }
        let device = answer["device"]?.stringValue ?? target
        if isRemoval {
            let wasBonded = answer["was_bonded"] == true
            return Terminal.write(
                wasBonded ? "the keys of \(device) are forgotten\n" : "there were no keys of \(device)\n")
        }
        if answer["connected"] == true {
            return Terminal.write("\(device) is connected: there is nothing to pair\n")
        }
        guard let report = answer["report"].flatMap({ PairingReport($0) }) else { return }
        let name = report.name.isEmpty ? report.address : "\(report.name) (\(report.address))"
        if report.wasBonded {
            Terminal.write("\(name) was paired before; nothing was done\n")
        } else {
            Terminal.write("paired with \(name)\(report.usedPasskey ? ", with the PIN" : ", without a PIN")\n")
        }
    }
}

/// What the loop's tasks leave for those who have turned the loop.
private final class Shared<Value: Sendable>: Sendable {
    let value: Mutex<Value>

    init(_ value: Value) {
        self.value = Mutex(value)
    }
}
