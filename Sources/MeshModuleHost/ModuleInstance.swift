// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import MeshLoop
internal import MeshTransportAPI

/// One instance of a module, from its start to its end, and the links that go through it.
///
/// Asks the ``ModuleBackend`` and hands what the module says to the links it concerns. Used on the loop's thread only: that
/// is what makes it Sendable.
final class ModuleInstance: @unchecked Sendable {
    /// `running ─stop─▶ stopping ─stopped─▶ ended`; a module that never answers `stop` is killed, where that can be done,
    /// else abandoned. One that fails ends at once.
    private enum Phase {
        case running
        case stopping(LoopTimer, [CheckedContinuation<Void, Never>])
        case ended(MeshError)
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

    /// One who looks for devices.
    private struct Scanner {
        var results: AsyncThrowingStream<ScanResult, any Error>.Continuation
        var isOver: () -> Void
    }

    let module: any HostedModule
    let loop: EventLoop
    private let log: LogSink
    let backend: any ModuleBackend
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
    private var scanners: [Int: Scanner] = [:]
    private var lastScanner = 0
    private var metrics: [String: Double] = [:]
    private var brokenRules = 0
    /// How many scan, or wait for an answer; counted by ``ModuleInstances``.
    var borrowers = 0

    /// Creates and starts an instance with this configuration.
    init(
        _ module: any HostedModule, loop: EventLoop, log: LogSink, options: [String: JSONValue],
        settings: ModuleSettings
    ) throws(MeshError) {
        let inbox = InstanceInbox(
            limits: InstanceInbox.Limits(frames: settings.frameLimit, bytes: settings.byteLimit),
            canResume: module.canResume, log: log)
        let entrance = Entrance()
        // Broken by close(): the inbox lives for ever, the instance must not.
        inbox.open { loop.perform { entrance.instance?.drain() } }
        do throws(MeshError) {
            backend = try module.start(options, inbox: inbox, loop: loop, log: log, settings: settings)
        } catch {
            inbox.close()
            throw error
        }
        self.module = module
        self.loop = loop
        self.log = log
        self.inbox = inbox
        stopDeadline = settings.stopDeadline
        requests = ManagedRequests(loop, grace: settings.disconnectDeadline)
        entrance.instance = self
    }

    /// Lets a module speak before its instance is complete. Used on the loop's thread only: that is what makes it Sendable.
    private final class Entrance: @unchecked Sendable {
        var instance: ModuleInstance?
    }

    var isRunning: Bool {
        if case .running = phase { true } else { false }
    }

    /// Why nothing can be asked of it; nil while it runs.
    var failure: MeshError? {
        switch phase {
        case .running: nil
        case .stopping: MeshError(.serviceUnavailable, "module \(module.descriptor.name) is being stopped")
        case .ended(let error): error
        }
    }

    // MARK: Links

    /// A link of this transport, and its frames. Nothing is connected yet.
    func openLink(for transport: ModuleTransport) -> (link: mh_link, frames: FrameQueue) {
        lastLink += 1
        let link = mh_link(lastLink)
        let credits = FrameCredits(inbox.limits)
        let frames = FrameQueue { [weak self] frame in
            guard let taken = credits.add(frame.count), let self, isRunning else { return }
            backend.framesTaken(link, frames: taken.frames, bytes: taken.bytes)
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
        if isRunning { backend.forget(link) }
    }

    func connect(_ link: mh_link, device: String, options: [String: JSONValue]) -> mh_status {
        guard isRunning else { return MH_ECLOSED }
        return backend.connect(link, device: device, options: JSONValue.object(options).serialized())
    }

    func disconnect(_ link: mh_link) -> mh_status {
        isRunning ? backend.disconnect(link) : MH_ECLOSED
    }

    /// The module's answer and, if the frame is done already, how that went.
    func send(
        _ link: mh_link, _ frame: Data, cookie: UInt64, withoutResponse: Bool
    ) -> (accepted: mh_status, done: mh_status?) {
        guard isRunning else { return (MH_ECLOSED, nil) }
        return backend.send(link, frame, cookie: cookie, withoutResponse: withoutResponse)
    }

    /// The cookie of the n-th frame of a link: it says which link a `tx_done` belongs to.
    static func cookie(_ link: mh_link, _ number: UInt32) -> UInt64 { link << 32 | UInt64(number) }

    /// The link of a frame's cookie.
    static func link(of cookie: UInt64) -> mh_link { cookie >> 32 }

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
            let isExpected =
                routes[Self.link(of: cookie)]?.transport.assumeIsolated { $0.sendDone(cookie, status) } ?? false
            if !isExpected { brokenRules += 1 }
        case .linkEvent(let link, let kind, let value):
            let transport = routes[link]?.transport ?? (kind == MH_EVENT_ADAPTER ? ended[link]?.transport : nil)
            transport?.assumeIsolated { $0.linkEvent(kind, value) }
        case .found(let result):
            for scanner in scanners.values { scanner.results.yield(result) }
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
        case .failed(let status, let detail):
            end(destroying: true, status, detail: detail)
        }
    }

    // MARK: Scanning

    /// Devices as they are seen, until the consumer stops, or the module's search fails; `isOver` is called then. Those who
    /// scan at the same time share the first one's filter.
    func scan(
        _ filter: JSONValue, isOver: @escaping () -> Void
    ) throws(MeshError) -> AsyncThrowingStream<ScanResult, any Error> {
        guard module.canScan else {
            throw MeshError(.notSupported, "module \(module.descriptor.name) cannot look for devices")
        }
        if let failure { throw failure }
        if scanners.isEmpty {
            let status = backend.scan(isOn: true, filter: filter.serialized())
            if status != MH_OK { throw MeshError(status: status, module: module.descriptor.name) }
        }
        let (stream, continuation) = AsyncThrowingStream.makeStream(
            of: ScanResult.self, bufferingPolicy: .bufferingNewest(256))
        lastScanner += 1
        scanners[lastScanner] = Scanner(results: continuation, isOver: isOver)
        continuation.onTermination = { [loop, lastScanner] reason in
            if case .cancelled = reason { loop.perform { self.endScan(lastScanner) } }
        }
        return stream
    }

    private func endScan(_ scanner: Int) {
        guard let ended = scanners.removeValue(forKey: scanner) else { return }
        if scanners.isEmpty, isRunning { _ = backend.scan(isOn: false, filter: Data("{}".utf8)) }
        ended.isOver()
    }

    /// The module's search is over: the next one is a new one.
    private func endScans(_ error: MeshError?) {
        let ended = scanners.values
        scanners = [:]
        for scanner in ended {
            scanner.results.finish(throwing: error)
            scanner.isOver()
        }
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
                if backend.stop() != MH_OK { abandon() }
            }
        }
    }

    private func stopped() {
        if case .running = phase {
            log(.error, "module stopped by itself", [("module", module.descriptor.name)])
        }
        end(destroying: true)
    }

    /// It never answered. What cannot be killed may still have threads that run, so the instance cannot be destroyed; its
    /// calls are ignored.
    private func abandon() {
        guard case .stopping(let timer, _) = phase else { return }
        if backend.kill() {
            log(.error, "module does not stop; killed", [("module", module.descriptor.name)])
            // The system ends it at once, but for a process that waits for a device's driver.
            timer.schedule(after: .seconds(1)) { self.end(destroying: false) }
        } else {
            log(.error, "module does not stop; abandoned", [("module", module.descriptor.name)])
            end(destroying: false)
        }
    }

    private func end(destroying: Bool, _ status: mh_status = MH_ECLOSED, detail: String? = nil) {
        let before = phase
        if case .ended = before { return }
        let detail = detail ?? "module \(module.descriptor.name) has stopped"
        phase = .ended(
            status == MH_ECLOSED
                ? MeshError(.serviceUnavailable, detail)
                : MeshError(status: status, detail: detail, module: module.descriptor.name))
        inbox.close()
        if destroying { backend.destroy() }
        for (link, route) in routes {
            route.transport.assumeIsolated { $0.linkDown(link, status, detail: detail) }
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
    func diagnostics(of link: mh_link?) async -> JSONValue {
        var facts: [String: JSONValue] = [
            "late_calls": .int(Int64(inbox.lateCalls)), "broken_rules": .int(Int64(brokenRules)),
            "dropped_events": .int(Int64(inbox.droppedEvents)),
        ]
        facts.merge(backend.facts) { _, new in new }
        if !metrics.isEmpty { facts["metrics"] = .object(metrics.mapValues { .double($0) }) }
        if isRunning, let said = await backend.diagnostics(), case .object(var own)? = try? JSONValue(parsing: said) {
            let links = own.removeValue(forKey: "links")
            if !own.isEmpty { facts["module"] = .object(own) }
            if let link, let mine = links?["\(link)"] { facts["link"] = mine }
        }
        return .object(facts)
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
    /// Deadlines of a module's process.
    var process = ModuleProcessStateMachine.Configuration()

    public init() {}
}
