// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc
internal import MeshConfig
internal import MeshJournal
internal import MeshLoop
internal import MeshModuleHost
internal import MeshRuntime
internal import MeshSharing
internal import MeshTransportAPI

/// The composition root: puts config, modules, links, shares and the control socket together, and takes them apart again.
///
///     config ──▶ modules ──▶ transports ──▶ coordinator ──▶ sessions ──▶ shares ──▶ clients
///                                   └────────── bus ◀──────────┘
///                                                └──▶ control socket, service manager
actor HostDaemon {
    /// What exists only while the daemon runs.
    struct Running {
        var state: StateDirectory
        var coordinator: ReconnectionCoordinator
        var journal: MessageJournal
        var control: ControlServer
        var reserve: DescriptorReserve
        var network: NetworkMonitor?
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    let input: ConfigSource
    let logWriter: LogWriter
    let log: LogSink
    let notifier: SystemdNotifier
    let bus: EventBus
    let catalog: ModuleCatalog
    var config: HostConfig
    var running: Running?
    /// One per device of the companion protocol.
    var sessions: [String: RadioSession] = [:]
    /// Open shares by their config's id.
    var shares: [String: OpenShare] = [:]
    /// Devices that the coordinator has.
    var takenOn: Set<String> = []
    /// Devices whose last change could not be applied.
    var unapplied: Set<String> = []
    var lastClientID: UInt64 = 0
    /// What is wrong with the daemon itself.
    var troubles = TroubleBook()
    let startedAt: Duration
    /// Of links, for what they may tell of descriptors.
    var linkFailures: EventSubscription?
    var linkFailureTask: Task<Void, Never>?
    /// Until all is ready, or has failed to be.
    private(set) var starting: Task<StartFailure?, Never>?
    /// The reload under way, and those that wait for it, in their order.
    var reloads: [Task<ReloadOutcome, Never>] = []
    /// SIGHUP came and its reload has not begun.
    var isHungUp = false
    private var signals: [LoopSignal] = []
    private var watchdog: LoopTimer?
    private var statusChanges: EventSubscription?
    private var statusTask: Task<Void, Never>?
    private var stopWaiter: CheckedContinuation<Void, Never>?
    private(set) var isStopping = false

    /// A share and the session that serves it.
    struct OpenShare {
        var device: String
        var number: Int
    }

    init(
        loop: EventLoop, input: ConfigSource, config: HostConfig, catalog: sending ModuleCatalog, logWriter: LogWriter,
        environment: [String: String]
    ) {
        self.loop = loop
        self.input = input
        self.config = config
        self.catalog = catalog
        self.logWriter = logWriter
        startedAt = loop.now
        log = logWriter.sink
        notifier = SystemdNotifier(environment: environment)
        bus = EventBus(loop: loop, wallClock: { .sinceEpoch })
    }

    /// Runs until SIGTERM, SIGINT or ``stop()``. Throws what kept it from being ready; nothing is left running then.
    func run() async throws(StartFailure) {
        // First of all: from here on a signal ends the daemon in an orderly way, however far the start has come.
        do throws(MeshError) {
            try watchSignals()
        } catch {
            throw StartFailure(errors: [error])
        }
        let starting = Task(executorPreference: loop.taskExecutor) { await self.startFailure() }
        self.starting = starting
        let failure = await starting.value
        self.starting = nil
        if let failure, !isStopping {
            isStopping = true
            await tearDown()
            throw failure
        }
        await withCheckedContinuation { continuation in
            if isStopping { continuation.resume() } else { stopWaiter = continuation }
        }
        log(.notice, "stopping")
        notifier.stopping()
        // A second signal must not wait for anything. One that asks for a reload is too late, and must end nothing: without a
        // watch it would end the daemon before all is stored.
        signals = [SIGTERM, SIGINT].compactMap { number in
            try? LoopSignal(loop, number) { _exit(ExitStatus.ok.rawValue) }
        }
        if let watch = try? LoopSignal(loop, SIGHUP, {}) { signals.append(watch) }
        await tearDown()
    }

    /// Makes ``run()`` return.
    func stop() {
        isStopping = true
        // It may wait for a name that nobody answers for.
        starting?.cancel()
        stopWaiter?.resume()
        stopWaiter = nil
    }

    // MARK: Start

    private func start() async throws(StartFailure) {
        let running: Running
        do throws(MeshError) {
            running = try await openState()
        } catch {
            throw StartFailure(errors: [error])
        }
        self.running = running
        await watchTroubles(of: running)
        for status in catalog.statuses(searchPath: config.daemon.modulePath) where status.state != .found {
            moduleChanged(status)
        }
        // Listeners first: a client that comes early waits for its radio, not for its port.
        let errors = await openListeners(running)
        if !errors.isEmpty { throw StartFailure(errors: errors) }
        for device in config.devices { await addDevice(device, running) }
        self.running?.network = NetworkMonitor.watch(loop: loop, coordinator: running.coordinator, log: log)
        if isStopping { return }
        log(.notice, "ready", [("devices", "\(config.devices.count)"), ("shares", "\(shares.count)")])
        bus.publish(
            "daemon.ready",
            .json(["devices": .int(Int64(config.devices.count)), "version": .string(Version.text)]))
        notifier.ready(status: await status)
        ProcessMemory.releaseCode()
        feedWatchdog()
        if notifier.isActive { reportStatus() }
    }

    /// What must survive a restart, as it was left.
    private func openState() async throws(MeshError) -> Running {
        let state = try StateDirectory(config.daemon.stateDirectory)
        catalog.onChange = { self.moduleChanged($0) }
        catalog.onCrash = { self.moduleCrashed($0) }
        let intents = try await IntentStore.open(directory: state.path, loop: loop, log: log)
        let coordinator = ReconnectionCoordinator(
            loop: loop, events: bus, intents: intents, log: log, wallClock: { .sinceEpoch })
        let journal = try await MessageJournal.open(
            path: "\(state.path)/journal.db", settings: JournalSettings(config.journal), loop: loop, log: log)
        let control = ControlServer(loop: loop, handler: self, log: log) { [unowned self] path, error in
            self.assumeIsolated { $0.socketChanged(path, error) }
        }
        return Running(
            state: state, coordinator: coordinator, journal: journal, control: control, reserve: loop.descriptorReserve)
    }

    /// All shares and the control socket; what could not be opened, all of it.
    private func openListeners(_ running: Running) async -> [MeshError] {
        for device in config.devices where device.deviceProtocol == .companion {
            _ = session(for: device.name, running)
        }
        var errors: [MeshError] = []
        for share in config.shares where !isStopping {
            do throws(MeshError) {
                try await openShare(share, running)
            } catch {
                errors.append(error)
            }
        }
        do throws(LoopError) {
            try await running.control.start(path: config.daemon.controlSocket)
        } catch {
            errors.append(MeshError(control: error, path: config.daemon.controlSocket))
        }
        return errors
    }

    private func watchSignals() throws(MeshError) {
        do throws(LoopError) {
            signals = [
                try LoopSignal(loop, SIGTERM) { self.stop() },
                try LoopSignal(loop, SIGINT) { self.stop() },
                try LoopSignal(loop, SIGHUP) { self.hangUp() },
            ]
        } catch {
            throw MeshError(.internalError, "cannot watch signals", cause: error)
        }
    }

    /// One line for `systemctl status`.
    var status: String {
        get async {
            let links = await running?.coordinator.statuses ?? []
            var clients = 0
            for session in sessions.values { clients += await session.clientCount }
            let ready = links.count { $0.link.phase == .ready }
            let line = "\(ready)/\(config.devices.count) devices ready, \(clients) clients"
            let wrong = troubles.all.filter { !$0.isPast }.map { "\($0.topic.rawValue): \($0.error.message)" }
            return ([line] + wrong).joined(separator: "; ")
        }
    }

    /// Starts; what kept it from being ready, or nil.
    private func startFailure() async -> StartFailure? {
        do throws(StartFailure) {
            try await start()
            return nil
        } catch {
            return error
        }
    }

    /// What comes and goes within this time is told as one: links that are lost together, a client that comes anew, a device
    /// that flaps.
    private static let statusPause = Duration.seconds(1)

    /// Tells the service manager when a link or a client comes or goes, and when something is wrong; not in the same moment,
    /// where others wait for more than a line of text.
    private func reportStatus() {
        let changes = bus.subscribe(
            EventFilter(
                types: [
                    "link.ready", "link.down", "client.join", "client.leave", "daemon.trouble", "daemon.recovered",
                ]), capacity: 1)
        statusChanges = changes
        statusTask = Task(executorPreference: loop.taskExecutor) { [notifier, loop] in
            for await _ in changes {
                guard (try? await loop.sleep(for: Self.statusPause)) != nil else { return }
                notifier.status(await self.status)
            }
        }
    }

    /// The timer is the loop's: a loop that is stuck does not feed the watchdog.
    private func feedWatchdog() {
        guard let interval = notifier.watchdogInterval else { return }
        notifier.watchdog()
        let timer = watchdog ?? LoopTimer(loop)
        watchdog = timer
        timer.schedule(after: interval) { self.feedWatchdog() }
    }

    private func moduleChanged(_ status: ModuleStatus) {
        switch status.state {
        case .loaded:
            log(.notice, "module loaded", [("module", status.name), ("version", status.version ?? "")])
            bus.publish("module.loaded", .json(status.json))
        case .refused, .missing:
            // Only devices that are optional, or modules nobody needs any more, can be concerned while the daemon runs.
            log(.warning, "module refused", [("module", status.name), ("reason", status.reason ?? "")])
            bus.publish("module.refused", .json(status.json))
        case .found, .quarantined:
            break
        }
    }

    /// The log has been told.
    private func moduleCrashed(_ crash: ModuleCrash) {
        bus.publish(
            "module.crash",
            .json([
                "name": .string(crash.module), "pid": .int(Int64(crash.pid)), "reason": .string(crash.reason),
                "restart_ms": crash.restartAfter.map { .int($0.milliseconds) } ?? .null,
                "quarantined": .bool(crash.restartAfter == nil),
            ]))
    }

    // MARK: End

    /// Ends everything, the outside first: no new clients, then links (6 s at most), then modules (3 s at most).
    private func tearDown() async {
        watchdog = nil
        for reload in reloads { reload.cancel() }
        _ = await reloads.last?.value
        statusChanges?.cancel()
        statusTask?.cancel()
        await statusTask?.value
        await forgetTroubles()
        for session in sessions.values { await session.closeShares() }
        shares = [:]
        if let running {
            running.network?.stop()
            await running.control.endModuleRequests()
            await running.coordinator.shutDown(within: .seconds(6))
            await running.control.stop()
            for session in sessions.values { await session.shutDown() }
            await running.journal.close()
        }
        await catalog.shutDown()
        catalog.onChange = nil
        catalog.onCrash = nil
        sessions = [:]
        running = nil
        signals = []
    }
}
