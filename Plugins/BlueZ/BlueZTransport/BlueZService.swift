// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshDBus
internal import MeshLoop
internal import MeshTransportAPI

/// bluetoothd, as all devices of one factory share it: the connection to the bus, the tree of objects, and the three lifetimes
/// that are watched, those of the bus, of bluetoothd and of the objects.
///
/// It exists without a connection. The first user opens one, the last one closes it; in between, a lost one is made anew with
/// backoff. Idle, it wakes up for nothing. Aspects in files of their own: `+Discovery`, `+Connect`, `+Agent`, `+Power`.
actor BlueZService {
    /// Who wants to know what an adapter is like.
    struct Observer {
        var choice: AdapterChoice
        var powersOn: Bool
        var isDefaultAgent: Bool
        var told: BluetoothState?
        var handler: @Sendable (BluetoothState) -> Void
    }

    /// A signal that came while the tree was being read.
    enum Recorded {
        case added(String, DBusValue)
        case removed(String, [String])
        case changed(String, String, DBusValue, [String])
    }

    /// Until the bus, or bluetoothd, must have answered what needs no radio.
    static let promptly = Duration.seconds(5)
    /// Until the bus must have taken all our matches.
    private static let subscribeTime = Duration.seconds(5)
    private static let retryDelays = Duration.milliseconds(250) ... .seconds(30)

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let log: LogSink
    private let busAddress: String
    private let staysOpen: Bool
    private(set) var bus: (DBusConnection)?
    private var subscriptions: [DBusMatchToken] = []
    /// Why bluetoothd cannot be used; nil while it can.
    private(set) var outage: BlueZFailure? = .serviceGone
    /// The error that the log names as the reason.
    private var toldOutage: String?
    /// The unique name of bluetoothd.
    private(set) var owner: String?
    /// Counts the lives of bluetoothd: what belongs to an earlier one is stale.
    private var life: UInt64 = 0
    var objects = BlueZObjects()
    var recorded: [Recorded]?
    private var users = 0
    private var isClosed = false
    private var opening: Task<Void, Never>?
    private var closing: Task<Void, Never>?
    private var retryTimer: LoopTimer?
    private var retryDelay = retryDelays.lowerBound
    var observers: [UInt64: Observer] = [:]
    var lastSerial: UInt64 = 0

    var waiters = ConditionWaiters()
    /// Links that are up, by device path.
    var links: [String: BlueZLink] = [:]
    /// What to do with a characteristic's values, by its path.
    var sinks: [String: @Sendable (UnsafeRawBufferPointer) -> Void] = [:]
    var bondSuspicion = BondSuspicion()
    /// Devices that another program's attempt to connect to was ended for, and whose `Connect` has not come to anything else
    /// since.
    var endedAttempts: Set<String> = []
    /// What bluetoothd said of the end of a link, just before it.
    var lossReasons: [String: String] = [:]
    /// Counts changes below a device, for whoever waits until there are no more.
    var gattChanges: [String: UInt64] = [:]
    /// What devices had on their last links, by their paths.
    var knownServices: [String: KnownServices] = [:]
    /// How often in a row the services of a device did not become known.
    var unresolved: [String: Int] = [:]
    var searches: [String: AdapterSearch] = [:]
    var scanners: [UInt64: Scanner] = [:]
    var turns: [String: TurnQueue] = [:]
    /// Adapters where a link failed while a search was on.
    var pausesSearch: Set<String> = []
    var book = PairingBook()
    var agentToken: DBusExportToken?
    var isAgentRegistered = false
    var isDefaultAgent = false
    var agentTimer: LoopTimer?
    var registering: Task<Bool, Never>?
    var agentWork: Task<Void, Never>?
    /// Adapters that may be switched on.
    var powerChoices: Set<AdapterChoice> = []
    /// Adapters that rfkill was found to hold.
    var blocked: Set<String> = []
    var poweringOn: [String: Task<Void, Never>] = [:]
    /// Links that are of no use any more, by device path.
    var endings: [String: Task<Void, Never>] = [:]

    /// `staysOpen`: until ``close()``, not only as long as somebody needs it.
    init(loop: EventLoop, log: LogSink, busAddress: String, staysOpen: Bool = false) {
        self.staysOpen = staysOpen
        self.loop = loop
        self.log = log
        self.busAddress = busAddress
    }

    // MARK: Users

    /// Somebody needs the connection, until ``release()``. Returns when it is known whether bluetoothd can be used.
    func retain() async {
        users += 1
        if bus == nil, opening == nil { readLater() }
        // While it is usable, a reading of the tree changes nothing about that.
        if outage != nil { await opening?.value }
    }

    func release() {
        users -= 1
        guard users == 0, !staysOpen else { return }
        retryTimer = nil
        waiters.evaluate(self)
        guard let bus, opening == nil else { return }
        shutDown(bus)
    }

    /// The same, and waits until a connection that nobody needs any more is closed.
    func releaseAndClose() async {
        release()
        await closing?.value
    }

    /// Ends the connection whoever still needs it; there is none after it.
    func close() async {
        isClosed = true
        retryTimer = nil
        // What a bus that hangs would answer is not waited for.
        opening?.cancel()
        await opening?.value
        if let bus { shutDown(bus) }
        await closing?.value
        // Links that are being closed, and attempts that are being undone, end by themselves, with no bus to wait for.
        _ = await wait(upTo: .seconds(1)) { $0.users == 0 }
    }

    /// Whether there is a connection to the bus.
    var isOpen: Bool { bus != nil }

    private func shutDown(_ bus: DBusConnection) {
        forgetBus()
        waiters.evaluate(self)
        closing = Task(executorPreference: loop.taskExecutor) { await self.close(bus) }
    }

    private func close(_ bus: DBusConnection) async {
        await bus.close()
        closing = nil
    }

    private func openNow() async {
        await closing?.value
        if bus == nil, !isClosed { await openBus() }
        // Again if bluetoothd began a new life meanwhile: what was read may be of the old one.
        var readLife: UInt64?
        while bus != nil, readLife != life {
            readLife = life
            await readTree()
        }
        opening = nil
        if isClosed || users == 0 && !staysOpen {
            if let bus { shutDown(bus) }
        } else if bus == nil {
            retryLater()
        }
        changed()
    }

    private func openBus() async {
        do throws(DBusError) {
            let bus = try await DBusConnection.open(address: busAddress, loop: loop, timeout: Self.promptly)
            await bus.setDisconnectionHandler {
                self.assumeIsolated { $0.busEnded() }
            }
            self.bus = bus
            let limit = LoopTimer(loop)
            limit.schedule(after: Self.subscribeTime) { self.opening?.cancel() }
            defer { limit.cancel() }
            try await subscribe(bus)
        } catch {
            if let bus { shutDown(bus) }
            outage = BlueZFailure(error, during: .readTree) == .accessDenied ? .accessDenied : .serviceGone
            let isLate = error.name == DBusError.cancelled
            tellOutage(isLate ? DBusError(DBusError.noReply, "the bus does not answer") : error)
        }
    }

    /// Matches first, questions later: nothing can happen in between unseen.
    private func subscribe(_ bus: DBusConnection) async throws(DBusError) {
        let service = BlueZNames.service
        subscriptions = []
        subscriptions.append(
            try await bus.addMatch(
                DBusMatch(
                    sender: BlueZNames.bus, interface: BlueZNames.bus, member: "NameOwnerChanged", argument0: service)
            ) { signal in self.assumeIsolated { $0.ownerChanged(signal) } })
        for (interface, member) in [
            (BlueZNames.objectManager, "InterfacesAdded"), (BlueZNames.objectManager, "InterfacesRemoved"),
            (BlueZNames.device, "Disconnected"),
        ] {
            subscriptions.append(
                try await bus.addMatch(DBusMatch(sender: service, interface: interface, member: member)) {
                    signal in self.assumeIsolated { $0.treeSignal(signal) }
                })
        }
        subscriptions.append(
            try await bus.addMatch(
                DBusMatch(
                    sender: service, interface: BlueZNames.properties, member: "PropertiesChanged",
                    pathNamespace: BlueZNames.agentManagerPath)
            ) { signal in self.assumeIsolated { $0.propertiesChanged(signal) } })
    }

    private func busEnded() {
        guard bus != nil else { return }
        log(.notice, "the connection to the system bus was lost")
        forgetBus()
        changed()
        if users > 0 { retryLater() }
    }

    private func forgetBus() {
        bus = nil
        subscriptions = []
        agentToken = nil
        agentTimer = nil
        serviceEnded()
    }

    private func retryLater() {
        if isClosed { return }
        let timer = retryTimer ?? LoopTimer(loop)
        retryTimer = timer
        timer.schedule(after: retryDelay) { self.retry() }
        retryDelay = min(retryDelay * 2, Self.retryDelays.upperBound)
    }

    private func retry() {
        guard users > 0, opening == nil else { return }
        readLater()
    }

    // MARK: bluetoothd

    private func ownerChanged(_ signal: DBusSignal) {
        guard signal.arguments.count == 3, let new = signal.arguments[2].text else { return }
        if owner != nil || outage == nil {
            log(.notice, "bluetoothd has gone")
            serviceEnded()
        }
        life += 1
        changed()
        if !new.isEmpty, opening == nil { readLater() }
    }

    /// Reads the tree anew, or waits for the end of a reading that has begun.
    func refresh() async {
        guard bus != nil else { return }
        if opening == nil { readLater() }
        await opening?.value
    }

    /// Opens the connection, if there is none, and reads the tree; ``opening`` while it lasts.
    private func readLater() {
        opening = Task(executorPreference: loop.taskExecutor) { await self.openNow() }
    }

    /// All that bluetoothd held for us is gone, and every link is told in this turn.
    private func serviceEnded() {
        life += 1
        outage = .serviceGone
        owner = nil
        objects = BlueZObjects()
        recorded = nil
        isAgentRegistered = false
        lossReasons = [:]
        gattChanges = [:]
        knownServices = [:]
        blocked = []
        for (path, link) in links {
            endLink(
                path,
                GATTError(
                    .serviceGone, during: .connect, peer: link.peerName, adapter: link.adapterName, cause: nil))
        }
        searchesChanged()
    }

    /// Reads all objects. Signals that come while the reply is under way are applied to both trees, the old one and, again, the
    /// new one: repeating what the reply knows already leads to the same.
    private func readTree() async {
        guard let bus else { return }
        let life = life
        recorded = []
        do throws(DBusError) {
            let name = try await bus.call(
                DBusCall(
                    BlueZNames.bus, path: "/org/freedesktop/DBus", interface: BlueZNames.bus, member: "GetNameOwner",
                    [.string(BlueZNames.service)]), timeout: Self.promptly)
            let reply = try await bus.call(
                DBusCall(
                    BlueZNames.service, path: "/", interface: BlueZNames.objectManager, member: "GetManagedObjects"),
                timeout: Self.promptly)
            guard life == self.life else { return }
            owner = name.first?.text
            objects.replace(with: reply.first ?? .dictionary(key: "o", value: "a{sa{sv}}", [:]))
            replay()
            endLostLinks()
            outage = nil
            toldOutage = nil
            retryDelay = Self.retryDelays.lowerBound
        } catch {
            guard life == self.life, !isClosed else { return }
            recorded = nil
            if outage == nil {
                // What is known is kept up by signals, and the links are as good as before: that bluetoothd has gone, or the
                // bus, is told in another way.
                log(.info, "the objects of bluetoothd could not be read anew", [("error", error.description)])
                if users > 0 { retryLater() }
                return changed()
            }
            outage = BlueZFailure(error, during: .readTree)
            tellOutage(error)
            // That it comes to life is told; that it answers again, or lets us, is not.
            if outage != .serviceGone, users > 0 { retryLater() }
        }
        searchesChanged()
        changed()
        if outage == nil { await registerAgent() }
    }

    /// Once for each reason, however often it is tried again.
    private func tellOutage(_ error: DBusError) {
        if isClosed || toldOutage == error.name { return }
        toldOutage = error.name
        log(.info, "bluetoothd cannot be used", [("error", error.description)])
    }

    private func replay() {
        for signal in recorded ?? [] {
            switch signal {
            case .added(let path, let interfaces): _ = objects.interfacesAdded(path, interfaces)
            case .removed(let path, let interfaces): _ = objects.interfacesRemoved(path, interfaces)
            case .changed(let path, let interface, let properties, let invalidated):
                _ = objects.propertiesChanged(path, interface, properties, invalidated: invalidated)
            }
        }
        recorded = nil
    }

    // MARK: Calls

    /// Calls a method of bluetoothd.
    func call(
        _ path: String, _ interface: String, _ member: String, _ arguments: [DBusValue] = [],
        timeout: Duration = promptly
    ) async throws(DBusError) -> [DBusValue] {
        guard let bus else { throw DBusError(DBusError.disconnected, "there is no connection to the system bus") }
        return try await bus.call(
            DBusCall(BlueZNames.service, path: path, interface: interface, member: member, arguments),
            timeout: timeout)
    }

    /// Sets a property.
    func set(_ path: String, _ interface: String, _ name: String, _ value: DBusValue) async throws(DBusError) {
        _ = try await call(
            path, BlueZNames.properties, "Set", [.string(interface), .string(name), .variant(value)])
    }
}
