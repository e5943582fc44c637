// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshLoop
internal import MeshTransportAPI

/// One instance of a module, from `create` to `destroy`, and the links that go through it.
///
/// Calls the ops and hands what the module says to the links it concerns. Used on the loop's thread only: that is what
/// makes it Sendable.
final class ModuleInstance: @unchecked Sendable {
    /// `created ─start─▶ running ─stop─▶ stopping ─stopped─▶ ended`; a module that never answers `stop` is abandoned.
    private enum Phase {
        case running
        case stopping(LoopTimer, [CheckedContinuation<Void, Never>])
        case ended
    }

    /// Whom a link's events concern.
    private struct Route {
        var transport: ModuleTransport
        var frames: FrameQueue
    }

    /// Whom the adapter of an ended link concerns, if it still exists.
    private struct Ended {
        weak var transport: ModuleTransport?
    }

    private static let slowOp: Duration = .milliseconds(50)
    private static let wedgedOp: Duration = .seconds(2)

    let module: LoadedModule
    let loop: EventLoop
    private let log: LogSink
    let handle: OpaquePointer
    let inbox: InstanceInbox
    private let stopDeadline: Duration
    /// What was asked with `manage` and is not answered yet.
    let requests: ManagedRequests
    private var phase = Phase.running
    private var routes: [mh_link: Route] = [:]
    /// The last link of each transport that has none now.
    private var ended: [mh_link: Ended] = [:]
    private var lastLink: UInt32 = 0
    private var spare: [HostEvent] = []
    private var scanners: [Int: AsyncThrowingStream<ScanResult, any Error>.Continuation] = [:]
    private var lastScanner = 0
    private var metrics: [String: Double] = [:]
    private var slowOps = 0
    private var brokenRules = 0

    /// Creates and starts an instance with this configuration.
    static func start(
        _ module: LoadedModule, loop: EventLoop, log: LogSink, options: [String: JSONValue], settings: ModuleSettings
    ) throws(MeshError) -> ModuleInstance {
        let name = module.descriptor.name
        let inbox = InstanceInbox(
            limits: InstanceInbox.Limits(frames: settings.frameLimit, bytes: settings.byteLimit),
            canResume: module.ops.rx_ready != nil, log: log)
        let api = HostCallbacks.makeAPI(inbox, loop: loop)
        var handle: OpaquePointer?
        let created = JSONValue.object(options).serialized().withABIString { module.ops.create(api, $0, &handle) }
        guard created == MH_OK, let handle else {
            throw MeshError(
                status: created == MH_OK ? MH_EINTERNAL : created, detail: "module \(name) could not be created",
                module: name)
        }
        let instance = ModuleInstance(
            module, loop: loop, log: log, handle: handle, inbox: inbox, settings: settings)
        // Broken by close(): the inbox lives for ever, the instance must not.
        inbox.open { loop.perform { instance.drain() } }
        let started = instance.timed("start") { module.ops.start(handle) }
        guard started == MH_OK else {
            instance.phase = .ended
            inbox.close()
            module.ops.destroy(handle)
            throw MeshError(status: started, detail: "module \(name) could not be started", module: name)
        }
        return instance
    }

    private init(
        _ module: LoadedModule, loop: EventLoop, log: LogSink, handle: OpaquePointer, inbox: InstanceInbox,
        settings: ModuleSettings
    ) {
        self.module = module
        self.loop = loop
        self.log = log
        self.handle = handle
        self.inbox = inbox
        stopDeadline = settings.stopDeadline
        requests = ManagedRequests(loop, grace: settings.disconnectDeadline)
    }

    var isRunning: Bool {
        if case .running = phase { true } else { false }
    }

    // MARK: Links

    /// A link of this transport, and its frames. Nothing is connected yet.
    func openLink(for transport: ModuleTransport) -> (link: mh_link, frames: FrameQueue) {
        lastLink += 1
        let link = mh_link(lastLink)
        let credits = FrameCredits(inbox.limits)
        let frames = FrameQueue { [weak self] frame in
            guard let taken = credits.add(frame.count), let self else { return }
            guard inbox.release(link, frames: taken.frames, bytes: taken.bytes), isRunning,
                let ready = module.ops.rx_ready
            else { return }
            _ = timed("rx_ready") { ready(self.handle, link) }
        }
        routes[link] = Route(transport: transport, frames: frames)
        inbox.openLink(link)
        return (link, frames)
    }

    /// The link has ended. What the module says of its adapter still reaches its transport, until ``forgetLink(_:)``.
    func closeLink(_ link: mh_link) {
        guard let route = routes.removeValue(forKey: link) else { return }
        for (other, end) in ended where end.transport == nil { forgetLink(other) }
        ended[link] = Ended(transport: route.transport)
        inbox.closeLink(link)
    }

    /// The transport of this ended link has a new one.
    func forgetLink(_ link: mh_link) {
        ended[link] = nil
        inbox.forgetLink(link)
    }

    func connect(_ link: mh_link, device: String, options: [String: JSONValue]) -> mh_status {
        guard isRunning else { return MH_ECLOSED }
        return JSONValue.object(options).serialized().withABIString { options in
            device.withABIString { device in
                timed("connect") { module.ops.connect(handle, link, device, options) }
            }
        }
    }

    func disconnect(_ link: mh_link) -> mh_status {
        guard isRunning else { return MH_ECLOSED }
        return timed("disconnect") { module.ops.disconnect(handle, link) }
    }

    /// The module's answer and, if the frame is done already, how that went.
    func send(
        _ link: mh_link, _ frame: Data, cookie: UInt64, withoutResponse: Bool
    ) -> (accepted: mh_status, done: mh_status?) {
        guard isRunning else { return (MH_ECLOSED, nil) }
        let send = withoutResponse ? module.ops.send_without_response ?? module.ops.send : module.ops.send
        return inbox.sending(cookie) {
            frame.withABIBytes { bytes in timed("send") { send!(handle, link, bytes, cookie) } }
        }
    }

    /// The cookie of the n-th frame of a link: it says which link a `tx_done` belongs to.
    static func cookie(_ link: mh_link, _ number: UInt32) -> UInt64 { link << 32 | UInt64(number) }

    // MARK: Events

    private func drain() {
        var events = inbox.take(spare: &spare)
        for event in events { handle(event) }
        events.removeAll(keepingCapacity: events.capacity <= 16_384)
        spare = events
    }

    private func handle(_ event: HostEvent) {
        switch event {
        case .frame(let link, let frame):
            routes[link]?.frames.put(frame)
        case .framesRefused(let link):
            let count = inbox.takeRefused(link)
            if count > 0 { routes[link]?.transport.assumeIsolated { $0.framesLost(count) } }
        case .linkUp(let link, let maximum, let peer):
            routes[link]?.transport.assumeIsolated { $0.linkUp(link, maximum: maximum, peer: peer) }
        case .linkDown(let link, let status, let detail):
            routes[link]?.transport.assumeIsolated { $0.linkDown(link, status, detail: detail) }
        case .writable(let link):
            routes[link]?.transport.assumeIsolated { $0.writable(link) }
        case .sendDone(let cookie, let status):
            let isExpected = routes[cookie >> 32]?.transport.assumeIsolated { $0.sendDone(cookie, status) } ?? false
            if !isExpected { brokenRules += 1 }
        case .linkEvent(let link, let kind, let value):
            let transport = routes[link]?.transport ?? (kind == MH_EVENT_ADAPTER ? ended[link]?.transport : nil)
            transport?.assumeIsolated { $0.linkEvent(kind, value) }
        case .found(let result):
            for scanner in scanners.values { scanner.yield(result) }
        case .scanFailed(let status, let detail):
            endScans(
                MeshError(status: status < 0 ? status : MH_EINTERNAL, detail: detail, module: module.descriptor.name))
        case .metric(let name, let kind, let value):
            guard metrics[name] != nil || metrics.count < 256 else { break }
            metrics[name] = kind == MH_METRIC_COUNTER ? metrics[name, default: 0] + value : value
        case .managed(let request, let status, let result):
            requests.answered(request, status, result)
        case .stopped:
            stopped()
        }
    }

    // MARK: Scanning

    /// Devices as they are seen, until the consumer stops, or the module's search fails. Those who scan at the same time share
    /// the first one's filter.
    func scan(_ filter: JSONValue) throws(MeshError) -> AsyncThrowingStream<ScanResult, any Error> {
        guard isRunning, let scan = module.ops.scan else {
            throw MeshError(.notSupported, "module \(module.descriptor.name) cannot look for devices")
        }
        if scanners.isEmpty {
            let status = filter.serialized().withABIString { filter in timed("scan") { scan(handle, 1, filter) } }
            if status != MH_OK { throw MeshError(status: status, module: module.descriptor.name) }
        }
        let (stream, continuation) = AsyncThrowingStream.makeStream(
            of: ScanResult.self, bufferingPolicy: .bufferingNewest(256))
        lastScanner += 1
        scanners[lastScanner] = continuation
        continuation.onTermination = { [loop, lastScanner] reason in
            if case .cancelled = reason { loop.perform { self.endScan(lastScanner) } }
        }
        return stream
    }

    private func endScan(_ scanner: Int) {
        guard scanners.removeValue(forKey: scanner) != nil, scanners.isEmpty, isRunning, let scan = module.ops.scan
        else {
            return
        }
        _ = "{}".withABIString { filter in timed("scan") { scan(handle, 0, filter) } }
    }

    /// The module's search is over: the next one is a new one.
    private func endScans(_ error: MeshError?) {
        let ended = scanners.values
        scanners = [:]
        for scanner in ended { scanner.finish(throwing: error) }
    }

    // MARK: The end

    /// Stops the module, waits for its answer, and destroys the instance. May be called again and at the same time.
    func shutDown() async {
        await withCheckedContinuation { continuation in
            switch phase {
            case .ended: continuation.resume()
            case .stopping(let timer, let waiters): phase = .stopping(timer, waiters + [continuation])
            case .running:
                let timer = LoopTimer(loop)
                timer.schedule(after: stopDeadline) { self.abandon() }
                phase = .stopping(timer, [continuation])
                if timed("stop", { module.ops.stop(handle) }) != MH_OK { abandon() }
            }
        }
    }

    private func stopped() {
        if case .running = phase {
            log(.error, "module stopped by itself", [("module", module.descriptor.name)])
        }
        end(destroying: true)
    }

    /// It never answered. Its threads may still run, so the instance cannot be destroyed; its calls are ignored.
    private func abandon() {
        log(.error, "module does not stop; abandoned", [("module", module.descriptor.name)])
        end(destroying: false)
    }

    private func end(destroying: Bool) {
        let before = phase
        if case .ended = before { return }
        phase = .ended
        inbox.close()
        if destroying { timed("destroy") { module.ops.destroy(handle) } }
        for (link, route) in routes {
            route.transport.assumeIsolated {
                $0.linkDown(link, MH_ECLOSED, detail: "module \(module.descriptor.name) has stopped")
            }
        }
        routes = [:]
        ended = [:]
        requests.endAll()
        endScans(nil)
        if case .stopping(_, let waiters) = before {
            for waiter in waiters { waiter.resume() }
        }
    }

    // MARK: Diagnostics

    /// What the module says of itself, and of one link, and what the host counted.
    func diagnostics(of link: mh_link?) -> JSONValue {
        var facts: [String: JSONValue] = [
            "slow_ops": .int(Int64(slowOps)), "late_calls": .int(Int64(inbox.lateCalls)),
            "broken_rules": .int(Int64(brokenRules)), "dropped_events": .int(Int64(inbox.droppedEvents)),
        ]
        if !metrics.isEmpty { facts["metrics"] = .object(metrics.mapValues { .double($0) }) }
        if isRunning, let diagnostics = module.ops.diagnostics {
            let buffer = SinkBuffer()
            _ = timed("diagnostics") {
                diagnostics(handle, sinkFunction, Unmanaged.passUnretained(buffer).toOpaque())
            }
            if case .object(var own)? = try? JSONValue(parsing: buffer.list.reduce(Data(), +)) {
                let links = own.removeValue(forKey: "links")
                if !own.isEmpty { facts["module"] = .object(own) }
                if let link, let mine = links?["\(link)"] { facts["link"] = mine }
            }
        }
        return .object(facts)
    }

    /// Runs an op and holds the module to its promise to return at once.
    func timed<Result>(_ op: StaticString, _ body: () -> Result) -> Result {
        let start = loop.now
        let result = body()
        let elapsed = loop.now - start
        if elapsed > Self.slowOp {
            slowOps += 1
            if elapsed > Self.wedgedOp {
                log(
                    .warning, "module blocks the host",
                    [("module", module.descriptor.name), ("op", "\(op)"), ("time", elapsed.optionText)])
            }
        }
        return result
    }
}

/// Limits of what runs behind the module boundary.
public struct ModuleSettings: Sendable {
    /// Frames one link may have waiting for its consumer before the module is told to wait.
    public var frameLimit = 1_024
    /// Bytes one link may have waiting.
    public var byteLimit = 1 << 20
    /// How long a module may take to answer `stop`.
    public var stopDeadline: Duration = .seconds(5)
    /// How long a module may take to answer `disconnect`, and to end a request that is not wanted any more.
    public var disconnectDeadline: Duration = .seconds(5)
    /// How long a pairing may take.
    public var pairDeadline: Duration = .seconds(90)
    /// How long any other request may take.
    public var manageDeadline: Duration = .seconds(15)

    public init() {}
}
