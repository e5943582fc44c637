// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import Glibc
internal import MeshLoop
internal import MeshTransportAPI
internal import MeshWire

/// Hosts one module in this process for a host at the other end of the socket: messages become calls of its functions, and
/// what it says becomes messages. Used on the loop's thread only.
final class RunnerSession {
    /// How long the module may take to stop when the host has gone.
    private static let orphanDeadline: Duration = .seconds(1)

    /// Frames of one link that the module has no room for yet.
    private struct Sends {
        var isBlocked = false
        var waiting: [(cookie: UInt64, frame: Data, withoutResponse: Bool)] = []
    }

    /// How long the end of a send may be kept back, and how many of them: the host is woken up for one together with a frame
    /// that comes in this time, as the answer of a device does. It has 64 on the way at most.
    private static let sentDelay: Duration = .milliseconds(1)
    private static let sentLimit = 16

    private let loop: EventLoop
    private let module: LoadedModule
    private let log: LogSink
    private var socket: ModuleSocket?
    private var inbox: InstanceInbox?
    private var backend: InProcessBackend?
    private var isStopping = false
    private var sends: [mh_link: Sends] = [:]
    private var spare: [HostEvent] = []
    private var orphanTimer: LoopTimer?
    /// A frame that has not been sent, and, if there are more of its link, all of them.
    private var gathered: (link: mh_link, first: Data)?
    private var frames = ModuleFrames()
    /// Sends that have ended well and that the host has not been told of, in their order.
    private var keptBack: [UInt64] = []
    private var sentTimer: LoopTimer?

    /// Loads the module and hosts it until the host has had enough. Returns an exit status.
    static func run(_ name: String, _ path: String, pin: ModuleDigest?) -> Int32 {
        // A host that has gone is an error of one write.
        signal(SIGPIPE, SIG_IGN)
        let loop = EventLoop()
        let session: RunnerSession
        do {
            let module = try ModuleLoader(locator: ModuleLocator(only: [])).load(name, path: path, pin: pin)
            session = try RunnerSession(module, loop)
        } catch {
            post(error)
            _exit(78)
        }
        loop.run()
        // Nothing of the module may keep the process: no exit function, no thread.
        withExtendedLifetime(session) { _exit(0) }
    }

    private init(_ module: LoadedModule, _ loop: EventLoop) throws(LoopError) {
        self.module = module
        self.loop = loop
        log = LogSink(threshold: .debug) { level, message, fields in
            let text = message + fields.map { " \($0.0)=\($0.1)" }.joined()
            Self.post(ModuleMessage(.log, code: level.rawValue), Data(text.utf8.prefix(4_096)))
        }
        let socket = try ModuleSocket(loop, descriptor: ModuleLaunch.descriptor, peer: .host) { [unowned self] in
            take($0, $1)
        } onEnd: { [unowned self] _ in
            orphaned()
        }
        self.socket = socket
        socket.send(ModuleMessage(.hello), document: ModuleHello.document(of: module))
    }

    /// Says why there will be no hello.
    static func post(_ refusal: any Error) {
        let document = (refusal as? ModuleRefusal)?.document ?? Data("\(refusal)".utf8)
        post(ModuleMessage(.refused), document.prefix(4_096))
    }

    /// Sends a message past the socket's queue, from any thread; it is lost where there is no room.
    private static func post(_ head: ModuleMessage, _ payload: Data) {
        withUnsafeTemporaryAllocation(byteCount: ModuleMessage.headLength, alignment: 8) { bytes in
            head.write(into: bytes)
            payload.withUnsafeBytes {
                _ = ModuleSocket.transmit(ModuleLaunch.descriptor, UnsafeRawBufferPointer(bytes), $0)
            }
        }
    }

    // MARK: From the host

    private func take(_ head: ModuleMessage, _ payload: UnsafeRawBufferPointer) {
        switch head.kind {
        case .hello: break  // The host judges what both speak.
        case .ping: socket?.send(ModuleMessage(.pong))
        case .validate:
            let issues = module.validate(object(payload))
            answer(.validated, cookie: head.cookie, JSONValue.array(issues.map(\.ofModule)).serialized())
        case .identify:
            // A text that is too long would be cut, and then be another device's, too.
            let identity = module.identity(object(payload)).flatMap { $0.utf8.count <= 4_096 ? $0 : nil } ?? ""
            socket?.send(ModuleMessage(.identified, cookie: head.cookie), Data(identity.utf8))
        case .start: start(object(payload))
        case .stop: stop()
        case .connect: connect(head.link, object(payload))
        case .disconnect: _ = backend?.disconnect(head.link)
        case .send:
            let entry = (head.cookie, Data(payload), head.flags.contains(.withoutResponse))
            sends[head.link, default: Sends()].waiting.append(entry)
            offer(head.link)
        case .credit:
            backend?.framesTaken(head.link, frames: Int(head.code), bytes: Int(clamping: head.cookie))
        case .forget: inbox?.forgetLink(head.link)
        case .scan:
            let status = backend?.scan(isOn: head.code != 0, filter: Data(payload)) ?? MH_ECLOSED
            socket?.send(ModuleMessage(.scanned, code: status, cookie: head.cookie))
        case .manage: manage(head.cookie, object(payload))
        case .cancel: _ = backend?.cancelManage(head.cookie)
        case .diagnose: answer(.diagnostics, cookie: head.cookie, backend?.diagnostics() ?? Data("{}".utf8))
        case .pong, .refused, .started, .stopped, .linkUp, .linkDown, .sent, .frame, .found, .metric, .linkEvent,
            .scanned, .managed, .diagnostics, .validated, .log, .frames, .identified:
            assertionFailure("the decoder lets only what a host may say pass")
        }
    }

    private func object(_ payload: UnsafeRawBufferPointer) -> [String: JSONValue] {
        (try? JSONValue(parsing: Data(payload)))?.objectValue ?? [:]
    }

    private func answer(_ kind: ModuleMessage.Kind, code: mh_status = MH_OK, cookie: UInt64, _ document: Data) {
        socket?.send(ModuleMessage(kind, code: code, cookie: cookie), document: document)
    }

    private func start(_ request: [String: JSONValue]) {
        guard backend == nil else { return }
        var limits = InstanceInbox.Limits()
        if let frames = request["frames"]?.intValue { limits.frames = Int(frames) }
        if let bytes = request["bytes"]?.intValue { limits.bytes = Int(bytes) }
        let inbox = InstanceInbox(limits: limits, canResume: module.canResume, log: log)
        self.inbox = inbox
        // The session lives as long as the process.
        let relay = Relay(self)
        inbox.open { [loop] in loop.perform { relay.session.drain() } }
        do throws(ModuleStartFailure) {
            backend = try InProcessBackend(
                module, request["config"]?.objectValue ?? [:], inbox: inbox, loop: loop, log: log)
            socket?.send(ModuleMessage(.started))
        } catch {
            inbox.close()
            socket?.send(ModuleMessage(.started, code: error.status), Data(error.detail.utf8))
        }
    }

    /// Used on the loop's thread only: that is what makes it Sendable.
    private final class Relay: @unchecked Sendable {
        let session: RunnerSession

        init(_ session: RunnerSession) {
            self.session = session
        }
    }

    private func connect(_ link: mh_link, _ request: [String: JSONValue]) {
        guard let backend, let inbox, !isStopping else {
            socket?.send(ModuleMessage(.linkDown, code: MH_ECLOSED, link: link))
            return
        }
        sends[link] = Sends()
        inbox.openLink(link)
        let status = backend.connect(
            link, device: request["device"]?.stringValue ?? "",
            options: (request["options"] ?? .object([:])).serialized())
        // An op that fails is not followed by link_down.
        if status != MH_OK { linkDown(link, status, detail: "") }
    }

    private func manage(_ number: UInt64, _ request: [String: JSONValue]) {
        inbox?.openRequest(number)
        let status =
            backend?.manage(
                number, verb: request["verb"]?.stringValue ?? "",
                params: (request["params"] ?? .object([:])).serialized()) ?? MH_ECLOSED
        guard status != MH_OK else { return }
        inbox?.closeRequest(number)
        answer(.managed, code: status, cookie: number, Data("{}".utf8))
    }

    /// Gives the module the frames that wait, until it has no room.
    private func offer(_ link: mh_link) {
        guard let backend else { return }
        while let state = sends[link], !state.isBlocked, let next = state.waiting.first {
            let (accepted, done) = backend.send(
                link, next.frame, cookie: next.cookie, withoutResponse: next.withoutResponse)
            if accepted == MH_AGAIN {
                sends[link]?.isBlocked = true
                return
            }
            sends[link]?.waiting.removeFirst()
            if let status = accepted == MH_OK ? done : accepted { sent(next.cookie, status) }
        }
    }

    private func sent(_ cookie: UInt64, _ status: mh_status) {
        guard status == MH_OK else {
            tellSent()
            return tellSent(cookie, status)
        }
        keptBack.append(cookie)
        if keptBack.count >= Self.sentLimit { return tellSent() }
        let timer = sentTimer ?? LoopTimer(loop)
        sentTimer = timer
        if !timer.isScheduled { timer.schedule(after: Self.sentDelay) { self.tellSent() } }
    }

    /// Tells what was kept back. Before anything but frames, so that nothing of a link comes behind its end.
    private func tellSent() {
        for cookie in keptBack { tellSent(cookie, MH_OK) }
        keptBack.removeAll(keepingCapacity: true)
    }

    private func tellSent(_ cookie: UInt64, _ status: mh_status) {
        socket?.send(ModuleMessage(.sent, code: status, link: ModuleInstance.link(of: cookie), cookie: cookie))
    }

    // MARK: From the module

    private func drain() {
        guard let inbox else { return }
        var events = inbox.take(spare: &spare)
        for event in events {
            switch event {
            case .frame(let link, let frame): gather(link, frame)
            case .sendDone(let cookie, let status): sent(cookie, status)
            default:
                sendGathered()
                tellSent()
                tell(event)
            }
        }
        sendGathered()
        events.removeAll(keepingCapacity: events.capacity <= 16_384)
        spare = events
    }

    /// Frames of one link that came together go in one message: the host wakes up once for them.
    private func gather(_ link: mh_link, _ frame: Data) {
        if let gathered, gathered.link == link {
            if frames.count == 0 { _ = frames.append(gathered.first) }
            if frames.append(frame) { return }
        }
        sendGathered()
        gathered = (link, frame)
    }

    private func sendGathered() {
        guard let gathered else { return }
        if frames.count > 0 {
            socket?.send(ModuleMessage(.frames, link: gathered.link), Data(frames.bytes))
        } else {
            socket?.send(ModuleMessage(.frame, link: gathered.link), gathered.first)
        }
        self.gathered = nil
        frames = ModuleFrames()
        // The host is awake now.
        tellSent()
    }

    private func tell(_ event: HostEvent) {
        switch event {
        case .frame, .sendDone: break  // Gathered, kept back.
        case .framesRefused(let link):
            let count = inbox?.takeRefused(link) ?? 0
            if count > 0 { linkEvent(link, MH_EVENT_FRAMES_DROPPED, UInt64(count)) }
        case .linkUp(let link, let maximum, let peer):
            socket?.send(ModuleMessage(.linkUp, code: Int32(clamping: maximum), link: link), text(peer))
        case .linkDown(let link, let status, let detail): linkDown(link, status, detail: detail)
        case .writable(let link):
            sends[link]?.isBlocked = false
            offer(link)
        case .linkEvent(let link, let kind, let value): linkEvent(link, kind, value)
        case .found(let result):
            let sighting = ModuleSighting(
                address: Array(result.address.utf8), name: Array(result.name.utf8), advertisement: result.advertisement)
            let code = result.rssi.map { Int32(clamping: $0) } ?? .min
            socket?.send(ModuleMessage(.found, code: code), Data(sighting.encoded))
        case .metric(let name, let kind, let value):
            socket?.send(ModuleMessage(.metric, code: kind, cookie: value.bitPattern), text(name))
        case .managed(let request, let status, let result): answer(.managed, code: status, cookie: request, result)
        case .stopped: stopped()
        case .scanFailed(let status, let detail): socket?.send(ModuleMessage(.scanned, code: status), text(detail))
        case .failed: break  // Only a process says so.
        }
    }

    private func text(_ text: String) -> Data { Data(text.utf8.prefix(4_096)) }

    private func linkEvent(_ link: mh_link, _ kind: Int32, _ value: UInt64) {
        socket?.send(ModuleMessage(.linkEvent, code: kind, link: link, cookie: value))
    }

    private func linkDown(_ link: mh_link, _ status: mh_status, detail: String) {
        sends[link] = nil
        inbox?.closeLink(link)
        socket?.send(ModuleMessage(.linkDown, code: status, link: link), text(detail))
    }

    // MARK: The end

    private func stop() {
        guard !isStopping else { return }
        isStopping = true
        guard let backend else { return stopped() }
        // Without an answer the host ends the process.
        _ = backend.stop()
    }

    private func stopped() {
        inbox?.close()
        backend?.destroy()
        backend = nil
        socket?.send(ModuleMessage(.stopped))
        if socket?.isOpen != true { loop.stop() }
    }

    /// The host has closed its end, or has ended.
    private func orphaned() {
        guard backend != nil else { return loop.stop() }
        let timer = LoopTimer(loop)
        orphanTimer = timer
        timer.schedule(after: Self.orphanDeadline) { [loop] in loop.stop() }
        stop()
    }
}
