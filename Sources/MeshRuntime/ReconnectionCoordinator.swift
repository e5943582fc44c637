// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
public import MeshTransportAPI

/// Keeps the links of all devices as they are wanted: performs what ``ReconnectionStateMachine`` orders and tells it what
/// happens.
///
/// Everything it does is told on the bus: `link.connecting`, `link.up`, `link.ready`, `link.down`, `link.waiting`,
/// `link.unended`, `link.phase`, `link.frames-dropped`, `link.bytes-skipped`, `intent.changed`, `adapter.off`, `adapter.on`
/// and `frame.rx`.
///
/// An actor on the loop. ``shutDown(within:)`` ends it; call that before it is dropped.
public actor ReconnectionCoordinator {
    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// How long the end of a link waits for its session's last frames: a message that a radio gives out takes some 100 ms over
    /// BLE, and a radio that is not there any more must not hold up the host's own end (6 s).
    public static let farewell = Duration.seconds(1)

    let events: EventBus
    let log: LogSink
    var machine: ReconnectionStateMachine
    var generator = SystemRandomNumberGenerator()
    var devices: [String: Device] = [:]
    /// Tasks that have been started and have not ended; none are left after ``shutDown(within:)``.
    var runningTasks = 0
    private let intents: IntentStore
    private let wallClock: @Sendable () -> Duration
    private var timer: LoopTimer?
    private var armedDeadline: Duration?
    private var isShuttingDown = false
    private var lastTransportNumber = 0
    private var shutDownLimiter: LoopTimer?
    private var shutDownWaiters: [CheckedContinuation<Void, Never>] = []

    /// `wallClock` gives the time since 1970-01-01 UTC; it serves only releases with a time limit.
    public init(
        loop: EventLoop, events: EventBus, intents: IntentStore, log: LogSink, maximumConcurrentAttempts: Int = 50,
        wallClock: @escaping @Sendable () -> Duration
    ) {
        self.loop = loop
        self.events = events
        self.intents = intents
        self.log = log
        self.wallClock = wallClock
        machine = ReconnectionStateMachine(maximumConcurrentAttempts: maximumConcurrentAttempts)
    }

    // MARK: Devices

    /// Takes on a device: its stored intent, else the configured one, decides what happens next. If a device of that name
    /// is being removed, waits for its end first. Throws ``MeshError/Code-swift.struct/invalidArgument`` if the name is
    /// taken, ``MeshError/Code-swift.struct/cancelled`` while shutting down.
    public func addDevice(_ settings: DeviceSettings) async throws(MeshError) {
        let name = settings.name
        let stored = await intents.intent(of: name)
        while let device = devices[name], device.isBeingRemoved { await removal(of: device) }
        if isShuttingDown { throw MeshError(.cancelled, "the host is shutting down") }
        if devices[name] != nil { throw MeshError(.invalidArgument, "there already is a device called \"\(name)\"") }
        devices[name] = Device(settings)
        let now = loop.now
        let intent = stored.map { $0.intent(now: now, wallClock: wallClock()) } ?? settings.initialIntent
        settings.session.linkWanted(intent == .connect)
        apply(machine.addDevice(name, settings.link, intent: intent, now: now))
    }

    /// Lets go of a device. Returns when nothing of its link is left. Its stored intent stays.
    public func removeDevice(_ name: String) async throws(MeshError) {
        let device = try known(name)
        device.isBeingRemoved = true
        apply(machine.removeDevice(name, now: loop.now))
        await removal(of: device)
    }

    /// Changes a device. With `needsNewLink` its transport is made anew, and a link that is up is ended for that; without,
    /// the new session and policy serve from the next link on. What waited because of the old settings is tried again.
    public func updateDevice(_ settings: DeviceSettings, needsNewLink: Bool) throws(MeshError) {
        let device = try known(settings.name)
        device.settings = settings
        if needsNewLink { device.isTransportOutdated = true }
        // It may be another one.
        if let link = machine.snapshot(settings.name, now: loop.now) {
            settings.session.linkWanted(link.intent == .connect)
        }
        apply(
            machine.settingsChanged(settings.name, settings.link, needsNewLink: needsNewLink, now: loop.now))
    }

    // MARK: Commands

    /// Does what a person asks. Takes effect at once; returns when the intent is on disk and will hold after a restart.
    /// Throws ``MeshError/Code-swift.struct/deviceUnknown``, or ``MeshError/Code-swift.struct/storageFailed`` when it holds
    /// only until a restart.
    public func perform(_ command: LinkCommand, _ device: String) async throws(MeshError) {
        _ = try known(device)
        let intent = StoredIntent(command, wallClock: wallClock())
        apply(machine.perform(command, device, now: loop.now))
        do throws(MeshError) {
            try await intents.set(intent, for: device)
        } catch {
            throw MeshError(
                error.code,
                "what was asked of \(device) is done, and holds until a restart: it could not be stored, \(error.message)",
                cause: error, context: error.context)
        }
    }

    /// Leaves a device alone for what needs it whole: ends its link or attempt, and returns when nothing of it is left. The
    /// stored intent stays. False, and nothing is done, where no link is wanted anyway.
    public func pause(_ name: String) async throws(MeshError) -> Bool {
        let device = try known(name)
        guard machine.snapshot(name, now: loop.now)?.intent == .connect else { return false }
        let generation = device.attempt?.generation
        apply(machine.perform(.release(for: nil), name, now: loop.now))
        await withCheckedContinuation {
            // Not for a later one: somebody may have asked for that meanwhile, and it may last.
            if let generation, device.attempt?.generation == generation {
                device.endWaiters.append($0)
            } else {
                $0.resume()
            }
        }
        return true
    }

    /// Ends a pause: the link is wanted again, at once. Not if somebody has said otherwise meanwhile.
    public func resume(_ name: String) async {
        switch await intents.intent(of: name) {
        case .connect, nil: break
        case .disconnect, .release: return
        }
        guard machine.snapshot(name, now: loop.now)?.intent == .release(until: nil) else { return }
        apply(machine.perform(.connect, name, now: loop.now))
    }

    /// An adapter, or `network`, became usable or unusable.
    public func adapterChanged(_ adapter: String, isAvailable: Bool) {
        apply(machine.adapterChanged(adapter, isAvailable: isAvailable, now: loop.now))
    }

    // MARK: Looking

    /// What is known of a device. Throws ``MeshError/Code-swift.struct/deviceUnknown``.
    public func status(of name: String) throws(MeshError) -> DeviceStatus {
        let device = try known(name)
        guard let link = machine.snapshot(name, now: loop.now) else { throw unknown(name) }
        return DeviceStatus(link: link, transportPhase: device.phase, info: device.facts.info)
    }

    /// What is known of all devices, sorted by name.
    public var statuses: [DeviceStatus] {
        devices.keys.sorted().compactMap { try? status(of: $0) }
    }

    /// What the device's transport tells of its inside; nil if it tells nothing.
    public func diagnostics(of name: String) async throws(MeshError) -> JSONValue? {
        await (try known(name).transport as? any TransportDiagnosing)?.diagnostics()
    }

    private func known(_ name: String) throws(MeshError) -> Device {
        guard let device = devices[name], !device.isBeingRemoved else { throw unknown(name) }
        return device
    }

    private func unknown(_ name: String) -> MeshError {
        let hint = NearestName.of(name, among: devices.keys.sorted()).map { "; did you mean \"\($0)\"?" } ?? ""
        return MeshError(
            .deviceUnknown, "no device is called \"\(name)\"\(hint)", context: MeshError.Context(device: name))
    }

    // MARK: End

    /// Ends all links and takes on nothing more. False if something had not ended after `limit`; it is named in the log.
    @discardableResult
    public func shutDown(within limit: Duration) async -> Bool {
        isShuttingDown = true
        for (name, device) in devices where !device.isBeingRemoved {
            device.isBeingRemoved = true
            apply(machine.removeDevice(name, now: loop.now))
        }
        await withCheckedContinuation { continuation in
            if devices.isEmpty, runningTasks == 0 { return continuation.resume() }
            shutDownWaiters.append(continuation)
            let limiter = LoopTimer(loop)
            limiter.schedule(after: limit) { self.endShutDown() }
            shutDownLimiter = limiter
        }
        shutDownLimiter = nil
        timer = nil
        for name in devices.keys.sorted() { log(.warning, "a link did not end in time", [("device", name)]) }
        return devices.isEmpty
    }

    private func endShutDown() {
        let waiters = shutDownWaiters
        shutDownWaiters = []
        for waiter in waiters { waiter.resume() }
    }

    private func removal(of device: Device) async {
        await withCheckedContinuation {
            // It may have gone, and another of its name have come, since the caller looked.
            if devices[device.name] === device { device.removalWaiters.append($0) } else { $0.resume() }
        }
    }

    /// A task of an attempt has ended.
    func taskEnded() {
        runningTasks -= 1
        if isShuttingDown, devices.isEmpty, runningTasks == 0 { endShutDown() }
    }

    // MARK: Orders

    /// Performs the machine's orders. The machine has moved already; nothing here waits.
    func apply(_ actions: [ReconnectionAction]) {
        for action in actions {
            switch action {
            case .startAttempt(let name, let generation):
                if let device = devices[name] { startAttempt(device, generation) }
            case .endLink(let name, let generation):
                if let device = devices[name] { endAttempt(device, generation) }
            case .forget(let name):
                let waiters = devices.removeValue(forKey: name)?.removalWaiters ?? []
                for waiter in waiters { waiter.resume() }
            case .report(let name, let report):
                if case .intentChanged(let intent) = report {
                    devices[name]?.settings.session.linkWanted(intent == .connect)
                }
                tell(report, of: name)
            case .reportAdapter(let name, let isAvailable): tellAdapter(name, isAvailable: isAvailable)
            }
        }
        armTimer()
    }

    /// The one timer follows the machine's one deadline.
    private func armTimer() {
        let deadline = machine.nextDeadline
        guard deadline != armedDeadline else { return }
        armedDeadline = deadline
        guard let deadline else {
            timer?.cancel()
            return
        }
        let timer = timer ?? LoopTimer(loop)
        self.timer = timer
        timer.schedule(after: deadline - loop.now) { self.timerFired() }
    }

    private func timerFired() {
        armedDeadline = nil
        apply(machine.deadlineReached(now: loop.now))
    }

    /// The device's transport, made now if there is none. Called when no attempt is under way.
    func transport(of device: Device) throws(MeshError) -> any MeshTransport {
        if let transport = device.transport, !device.isTransportOutdated { return transport }
        lastTransportNumber += 1
        let number = lastTransportNumber
        device.transportNumber = number
        device.isTransportOutdated = false
        device.transport = nil
        device.phase = .idle
        let name = device.name
        let facts = LinkFacts()
        device.facts = facts
        let environment = TransportEnvironment(
            log: log.adding([("device", name)]),
            linkEvents: { [weak self, loop] event in
                // From any thread, perhaps in the middle of the coordinator's own work: what the end of a link needs is
                // noted at once, the rest has its turn on the loop.
                facts.note(event)
                loop.perform { self?.assumeIsolated { $0.linkEventReported(event, name, transport: number) } }
            })
        let transport = try device.settings.makeTransport(environment)
        device.transport = transport
        return transport
    }

    private func linkEventReported(_ event: LinkEvent, _ name: String, transport number: Int) {
        guard let device = devices[name], device.transportNumber == number else { return }
        switch event {
        case .phase(let phase):
            device.phase = phase
            if events.hasSubscribers(for: "link.phase") {
                events.publish("link.phase", device: name, .json(["phase": .string(phase.rawValue)]))
            }
        case .up, .down: break
        case .framesDropped(let count):
            events.publish("link.frames-dropped", device: name, .json(["count": .int(Int64(count))]))
        case .bytesSkipped(let count):
            events.publish("link.bytes-skipped", device: name, .json(["count": .int(Int64(count))]))
        case .adapter(let isAvailable):
            apply(machine.adapterChanged(ofDevice: name, isAvailable: isAvailable, now: loop.now))
        }
    }
}
