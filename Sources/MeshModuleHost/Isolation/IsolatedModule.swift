// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshLoop
public import MeshTransportAPI
internal import Synchronization

/// A module that runs in processes of its own: a library that meshhost's runner loads there, or a program that speaks the
/// protocol itself. Each instance is one process. Nothing of the module is in this process.
///
/// Sendable: what it says of itself does not change, and ``supervisor`` is used on the loop's thread only.
public final class IsolatedModule: HostedModule, @unchecked Sendable {
    public let descriptor: TransportDescriptor
    let launch: ModuleLaunch
    /// Which files it was made of: another module lies at the same place when they change.
    private let files: [ModuleFile.Version]
    let hello: ModuleHello
    /// Who may start processes, and those that run.
    let supervisor: ModuleSupervisor
    /// What it said of one device's options.
    struct Verdict: Sendable {
        var issues: [OptionIssue]
        /// Which device they mean; nil where it does not say.
        var identity: String?
    }

    /// Asking costs a process.
    private let verdicts = Mutex<[OptionQuestion: Verdict]>([:])
    private static let verdictLimit = 1_024

    /// The module that a config calls `name`; nil: whatever it calls itself. Checks its file as ``ModuleLoader`` does, and
    /// starts a process to ask what it is; waits for its answer, 3 s at most. Throws with one line that says which file, which
    /// rule and what to do.
    public convenience init(_ name: String?, _ launch: ModuleLaunch) throws(ModuleRefusal) {
        try self.init(name, launch, supervision: ModuleSupervisorStateMachine.Configuration())
    }

    init(
        _ name: String?, _ launch: ModuleLaunch, supervision: ModuleSupervisorStateMachine.Configuration
    ) throws(ModuleRefusal) {
        supervisor = ModuleSupervisor(supervision)
        files = try Self.check(launch)
        var probe = try ModuleProbe(launch)
        hello = try probe.hello(name: name)
        self.launch = launch
        descriptor = hello.descriptor
    }

    /// Whether ``init(_:_:)`` would make the same again.
    public func isCurrent(_ launch: ModuleLaunch) -> Bool {
        launch == self.launch && (try? Self.check(launch)) == files
    }

    private static func check(_ launch: ModuleLaunch) throws(ModuleRefusal) -> [ModuleFile.Version] {
        switch launch.program {
        case .library(_, let path): [try ModuleFile.open(path, pin: launch.pin).version]
        case .command(let words):
            [try ModuleFile.checkProgram(launch.path, pin: launch.pin)]
                + words.dropFirst().compactMap { ModuleFile.version(ofArgument: $0) }
        }
    }

    var abi: String { hello.abi }
    var canScan: Bool { descriptor.capabilities.rawValue & MH_CAP_SCAN != 0 }
    var canSendWithoutResponse: Bool { descriptor.capabilities.rawValue & MH_CAP_SEND_WITHOUT_RESPONSE != 0 }
    /// Credits tell it.
    var canResume: Bool { true }
    var status: ModuleStatus { ModuleStatus(self) }

    /// Told of each process that ended without being asked to. On the loop's thread.
    public func onCrash(_ tell: @escaping (ModuleCrash) -> Void) {
        supervisor.onCrash = tell
    }

    /// Lifts the quarantine, and lets the next process start at once. On the loop's thread.
    public func reset() {
        supervisor.reset()
    }

    /// What it has said when it was asked. Options that nobody has asked it about, such as those with a secret that is new, it
    /// judges when it gets them.
    func validate(_ options: [String: JSONValue]) -> [OptionIssue] {
        hello.validates ? verdict(OptionQuestion(options))?.issues ?? [] : []
    }

    /// Two devices that are one and are not told here fight at run time, and say so: no answer is no reason to refuse.
    func identity(_ options: [String: JSONValue]) -> String? {
        hello.identifies ? verdict(OptionQuestion(options))?.identity : nil
    }

    func verdict(_ question: OptionQuestion) -> Verdict? {
        verdicts.withLock { $0[question] }
    }

    func remember(_ question: OptionQuestion, _ verdict: Verdict) {
        verdicts.withLock { if $0.count < Self.verdictLimit { $0[question] = verdict } }
    }

    func settled() async {
        await supervisor.settled()
    }

    func start(
        _ options: [String: JSONValue], inbox: InstanceInbox, loop: EventLoop, log: LogSink, settings: ModuleSettings
    ) throws(MeshError) -> any ModuleBackend {
        try supervisor.permitStart(of: descriptor.name, now: loop.now)
        let backend = try ProcessBackend(self, options, inbox: inbox, loop: loop, log: log, settings: settings)
        supervisor.started(backend)
        return backend
    }
}

/// A process of a module that ended without being asked to.
public struct ModuleCrash: Sendable {
    public var module: String
    public var pid: Int32
    /// How it ended, such as `was ended by signal 11 (Segmentation fault)`.
    public var reason: String
    /// When the next one may start; nil: not before a person says so.
    public var restartAfter: Duration?
}
