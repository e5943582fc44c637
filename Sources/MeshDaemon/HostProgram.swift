// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc
internal import MeshCompanion
internal import MeshConfig
internal import MeshLoop
internal import MeshModuleHost
internal import MeshModuleTesting
internal import MeshTransportAPI
internal import MeshWire

/// The program `meshhost`: daemon and command line.
public struct HostProgram {
    let options: HostOptions
    private let command: HostCommand
    let environment: [String: String]

    /// Does what the words after the program's name say and returns the exit status.
    public static func run(_ words: [String], environment: [String: String]) -> Int32 {
        if words.first == ModuleRunner.word { return ModuleRunner.run(Array(words.dropFirst())) }
        if words.first == TrialProcess.word { return TrialProcess.run() }
        Terminal.openMissingDescriptors()
        do throws(UsageError) {
            let (command, options) = try HostCommand.parse(words)
            return HostProgram(options: options, command: command, environment: environment).run().rawValue
        } catch {
            Terminal.complain(error)
            return ExitStatus.usage.rawValue
        }
    }

    private func run() -> ExitStatus {
        // A client that goes away is an error of one write, not the end of the program.
        signal(SIGPIPE, SIG_IGN)
        // Modules are tried with the signals that a host has.
        if case .moduleTest(let test) = command {
            return ModuleTestProgram(options: test, environment: environment).run()
        }
        // Nor is a file that has reached a limit.
        signal(SIGXFSZ, SIG_IGN)
        switch command {
        case .run: return runDaemon()
        case .check: return check()
        case .configShow: return showConfig()
        case .configSchema:
            Terminal.write(ConfigSchema.reference())
            return .ok
        case .version:
            options.isJSON
                ? Terminal.write(Version.json) : Terminal.write("meshhost \(Version.text), module ABI \(Version.abi)\n")
            return .ok
        case .help(let topic):
            Terminal.write(CommandHelp.text(topic))
            return .ok
        case .completion(let shell):
            Terminal.write(CommandCompletion.script(shell))
            return .ok
        case .decode(let subject, let hex, let wishes): return decode(subject, hex, wishes)
        case .decodeBluetooth(let subject, let hex, let wishes): return decodeBluetooth(subject, hex, wishes)
        case .decodeRecording(let path, let wishes): return decodeRecording(path, wishes)
        case .encode(let subject, let json): return encode(subject, json)
        case .bridge(let bridge): return runBridge(bridge)
        case .scan(let scan): return runScan(scan)
        case .pair(let pair): return runPair(pair, isRemoval: false)
        case .unpair(let pair): return runPair(pair, isRemoval: true)
        case .doctor: return runDoctor()
        case .modulesVerify(let subjects): return verifyModules(subjects)
        case .controllerInfo(let controller): return runControllerInfo(controller)
        case .status, .modules, .modulesReset, .devices, .device, .clients, .listen, .reload, .moduleTest:
            return askDaemon()
        }
    }

    var isJSON: Bool { options.isJSON }
    var isQuiet: Bool { options.isQuiet }

    var source: ConfigSource {
        ConfigSource(files: options.configFiles, assignments: options.assignments, environment: environment)
    }

    /// Runs `body` with the modules a config may name, on a loop that never turns.
    func withCatalog<Result>(_ body: (ModuleCatalog) -> Result) -> Result {
        let loop = EventLoop()
        let result = body(ModuleCatalog(loop: loop, log: .none))
        try? loop.shutDown()
        return result
    }

    // MARK: The daemon

    /// How long the daemon waits for who reads standard error, in milliseconds.
    private static let patience: Int32 = 1_000

    private func runDaemon() -> ExitStatus {
        // Files the daemon makes are its own; a share's socket is given its mode by name.
        umask(0o077)
        ProcessDescriptors.raiseLimit()
        let logWriter = LogWriter(level: .notice, environment: environment)
        let loop = EventLoop()
        let catalog = ModuleCatalog(loop: loop, log: logWriter.sink)
        let examined = self.examined(source.read(catalog), for: .start)
        for diagnostic in examined.diagnostics {
            Terminal.complain(diagnostic.rendered(), waitingAtMost: Self.patience)
        }
        guard let config = examined.config else {
            try? loop.shutDown()
            return examined.status
        }
        logWriter.setLevel(config.daemon.logLevel)
        let daemon = HostDaemon(
            loop: loop, input: source, config: config, catalog: catalog, logWriter: logWriter, environment: environment)
        let outcome = Outcome()
        // The task starts on the loop and ends with it: `run` waits for both.
        _ = daemon.assumeIsolated { daemon in
            Task(executorPreference: daemon.loop.taskExecutor) { [outcome] in
                do throws(StartFailure) {
                    try await daemon.run()
                } catch {
                    outcome.failure = error
                }
                daemon.loop.stop()
            }
        }
        loop.run()
        do throws(LoopError) {
            try loop.shutDown()
        } catch {
            logWriter.sink(.warning, "not everything was closed", [("handles", error.detail)])
        }
        var status = ExitStatus.ok
        if let failure = outcome.failure {
            for error in failure.errors {
                Terminal.complain("meshhost: \(error.message)", waitingAtMost: Self.patience)
            }
            status = failure.status
        }
        // All that matters is closed and written; `exit` would wait until the resolver gives up.
        if loop.hasUnfinishedWork { _exit(status.rawValue) }
        return status
    }

    /// How the daemon ended. Sendable: written on the loop's thread, read by it after the loop has ended.
    private final class Outcome: @unchecked Sendable {
        var failure: StartFailure?
    }

    static func status(of error: MeshError) -> ExitStatus {
        switch error.code {
        case .serviceUnavailable, .resourceExhausted, .adapterUnavailable, .connectionFailed, .connectionTimeout,
            .operationTimeout, .linkClosed, .linkClosedByPeer, .contended:
            .unavailable
        case .permissionDenied, .authenticationFailed: .permission
        case .configurationInvalid, .moduleRefused: .configuration
        case .invalidArgument, .deviceUnknown, .notSupported: .usage
        default: .internalError
        }
    }

    // MARK: Without a daemon

    private func showConfig() -> ExitStatus {
        let reading = withCatalog { source.read($0) }
        if !reading.diagnostics.isEmpty { Terminal.complain(reading.diagnostics.rendered()) }
        guard let config = reading.config else { return .configuration }
        if options.isJSON {
            Terminal.write(["schema": "meshhost.config/1", "config": config.shownJSON()])
        } else {
            Terminal.write(config.shownTOML())
        }
        return .ok
    }

    private func decode(
        _ subject: HostCommand.DecodeSubject, _ hex: String, _ wishes: HostCommand.DecodeOptions
    ) -> ExitStatus {
        do throws(UsageError) {
            let (member, values) = try Decoding(wishes, subject).values(of: hex)
            if options.isJSON {
                Terminal.write(.object(["schema": "meshhost.decode/1", member: .array(values)]))
            } else {
                for value in values { Terminal.write(value.text() + "\n") }
            }
            return .ok
        } catch {
            Terminal.complain(error)
            return .usage
        }
    }

    private func encode(_ subject: HostCommand.DecodeSubject, _ json: String) -> ExitStatus {
        do throws(UsageError) {
            let (member, bytes) = try Encoding.bytes(of: json, subject)
            let hex = CompanionFrame.hex(bytes)
            options.isJSON
                ? Terminal.write([
                    "schema": "meshhost.encode/1", member: .string(hex), "length": .int(Int64(bytes.count)),
                ])
                : Terminal.write(hex + "\n")
            return .ok
        } catch {
            Terminal.complain(error)
            return .usage
        }
    }

    // MARK: With a daemon

    private func askDaemon() -> ExitStatus {
        do throws(MeshError) {
            var client = try ControlClient(path: controlSocket)
            return try DaemonQuestion(command: command, options: options).ask(&client)
        } catch {
            if case .modules = command, error.code == .serviceUnavailable { return listModules() }
            Terminal.complain("meshhost: \(error.message)")
            return Self.status(of: error)
        }
    }

    /// Without a daemon: what the config would load.
    private func listModules() -> ExitStatus {
        let (reading, statuses) = withCatalog { catalog in
            let reading = source.read(catalog)
            return (reading, catalog.statuses(searchPath: reading.config?.daemon.modulePath ?? []))
        }
        DaemonQuestion.show(modules: statuses.map(\.json), options)
        if reading.config == nil {
            Terminal.complain("meshhost: the config has errors; see `meshhost check`")
        }
        return .ok
    }

    /// `--control`, then MESHHOST_CONTROL, then the config, then the default.
    var controlSocket: String {
        // An empty variable is what a unit file leaves of an unset one.
        let named = environment["MESHHOST_CONTROL"].flatMap { $0.isEmpty ? nil : $0 }
        if let path = options.controlSocket ?? named { return path }
        return withCatalog { source.read($0) }.controlSocket
    }
}
