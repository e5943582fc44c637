// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI

/// The processes of one module: who runs, and whether more may be started. Used on the loop's thread only.
final class ModuleSupervisor {
    /// The longest wait for processes that got SIGKILL and are not gone.
    private static let settleDeadline: Duration = .seconds(2)

    private var machine: ModuleSupervisorStateMachine
    private var generator = SystemRandomNumberGenerator()
    /// Those that have not ended, whether or not an instance still uses them.
    private var processes: [ObjectIdentifier: ProcessBackend] = [:]
    private var waiters: [CheckedContinuation<Void, Never>] = []
    private var settleTimer: LoopTimer?
    var onCrash: ((ModuleCrash) -> Void)?
    /// Processes that were started.
    private(set) var starts = 0
    private(set) var crashes = 0
    /// Starts that followed a crash.
    private(set) var restarts = 0
    private var isRestart = false
    private(set) var lastCrash: String?

    init(_ configuration: ModuleSupervisorStateMachine.Configuration) {
        machine = ModuleSupervisorStateMachine(configuration)
    }

    var isQuarantined: Bool { machine.isQuarantined }
    var pids: [Int32] { processes.values.compactMap(\.pid).sorted() }

    /// Throws where none may be started now.
    func permitStart(of module: String, now: Duration) throws(MeshError) {
        let last = lastCrash.map { "; the last one \($0)" } ?? ""
        switch machine.startRequested(now: now) {
        case .start: return
        case .wait(let delay):
            let seconds = max(1, delay.components.seconds)
            throw MeshError(
                .serviceUnavailable, "module \(module) has crashed and is started again in \(seconds) s\(last)")
        case .refuse:
            throw MeshError(
                .moduleRefused,
                "module \(module) has crashed too often and is in quarantine\(last); see its log, "
                    + "then run: meshhost modules reset \(module)")
        }
    }

    func started(_ process: ProcessBackend) {
        starts += 1
        if isRestart { restarts += 1 }
        isRestart = false
        processes[ObjectIdentifier(process)] = process
    }

    /// A process ended, or is being ended, that should not have.
    func crashed(_ module: String, pid: Int32, reason: String, now: Duration, log: LogSink) {
        crashes += 1
        isRestart = true
        lastCrash = reason
        var restart: Duration?
        switch machine.crashed(now: now, using: &generator) {
        case .wait(let delay):
            restart = delay
            log(.error, "module crashed", [("pid", "\(pid)"), ("reason", reason), ("restart", delay.optionText)])
        case .quarantine:
            log(
                .error, "module crashed and is in quarantine",
                [("pid", "\(pid)"), ("reason", reason), ("advice", "meshhost modules reset \(module)")])
        }
        onCrash?(ModuleCrash(module: module, pid: pid, reason: reason, restartAfter: restart))
    }

    /// A process is no more.
    func ended(_ process: ProcessBackend) {
        processes[ObjectIdentifier(process)] = nil
        if processes.isEmpty { resumeWaiters() }
    }

    func reset() {
        machine.reset()
    }

    /// Returns when no process is left.
    func settled() async {
        await withCheckedContinuation { continuation in
            // The last one may have ended since the caller looked.
            guard let loop = processes.values.first?.loop else { return continuation.resume() }
            waiters.append(continuation)
            let timer = settleTimer ?? LoopTimer(loop)
            settleTimer = timer
            timer.schedule(after: Self.settleDeadline) { self.resumeWaiters() }
        }
    }

    private func resumeWaiters() {
        settleTimer = nil
        let waiters = waiters
        self.waiters = []
        for waiter in waiters { waiter.resume() }
    }
}
