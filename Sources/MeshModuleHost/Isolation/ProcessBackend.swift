// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
internal import FoundationEssentials
internal import Glibc
internal import MeshLoop
internal import MeshTransportAPI
internal import MeshWire

/// One instance of a module in a process of its own: the host's end of its socket, and its life. Used on the loop's thread
/// only.
///
/// Signals go through ``LoopProcess``: libuv leaves an ended child a zombie until it reaps it on this thread, and after
/// that no signal is sent, so its number cannot be anybody else's. A descriptor of the process would add nothing.
final class ProcessBackend: ModuleBackend {
    /// Frames of one link that may be on their way to the device; the rest waits for `writable`.
    private static let sendWindow = 64
    private static let diagnosticsDeadline: Duration = .seconds(2)
    /// So many records at the end of a process are written whatever it has said before: they tell why it ended.
    private static let lastWords = 20

    /// What a link has on its way.
    private struct Sends {
        var count = 0
        /// The host waits for `writable`.
        var isBlocked = false
    }

    private struct Inquiry {
        var continuation: CheckedContinuation<Data?, Never>
        var timer: LoopTimer
    }

    let loop: EventLoop
    private let name: String
    private let supervisor: ModuleSupervisor
    private let inbox: InstanceInbox
    private let log: LogSink
    private var machine: ModuleProcessStateMachine
    private var timer: LoopTimer?
    private var socket: ModuleSocket?
    private var errors: ErrorStream?
    private var process: LoopProcess?
    /// What was asked before the hello came.
    private var held: [(head: ModuleMessage, document: Data)] = []
    private var isGreeted = false
    private var sends: [mh_link: Sends] = [:]
    private var inquiries: [UInt64: Inquiry] = [:]
    private var lastInquiry: UInt64 = 0
    private var allowance: LogAllowance
    /// It closed its socket and did not end.
    private var hasHungUp = false
    /// The instance has been told the end, or does not want to know.
    private var isTold = false

    /// Starts the process.
    init(
        _ module: IsolatedModule, _ options: [String: JSONValue], inbox: InstanceInbox, loop: EventLoop, log: LogSink,
        settings: ModuleSettings
    ) throws(MeshError) {
        self.loop = loop
        name = module.descriptor.name
        supervisor = module.supervisor
        self.inbox = inbox
        self.log = log
        allowance = LogAllowance(now: loop.now)
        machine = ModuleProcessStateMachine(settings.process, now: loop.now)
        timer = LoopTimer(loop)
        do throws(LoopError) {
            try launch(module.launch)
        } catch {
            socket?.close()
            throw MeshError(.resourceExhausted, "no process can be started for module \(name)", cause: error)
        }
        socket?.send(ModuleMessage(.hello), document: ModuleHello.ofHost)
        let start: [String: JSONValue] = [
            "config": .object(options), "frames": .int(Int64(inbox.limits.frames)),
            "bytes": .int(Int64(inbox.limits.bytes)),
        ]
        held.append((ModuleMessage(.start), JSONValue.object(start).serialized()))
        armTimer()
    }

    private func launch(_ launch: ModuleLaunch) throws(LoopError) {
        let (ours, theirs) = try ModuleSocket.pair()
        defer { close(theirs) }
        socket = try ModuleSocket(loop, descriptor: ours, peer: .module) { [unowned self] in
            take($0, $1)
        } onEnd: { [unowned self] in
            socketEnded($0)
        }
        let (errors, theirErrors) = try ErrorStream.open(loop) { [unowned self] in note($0, $1) }
        defer { close(theirErrors) }
        self.errors = errors
        process = try LoopProcess(
            loop, arguments: launch.arguments, environment: ModuleLaunch.environment,
            descriptors: [nil, nil, theirErrors, theirs]
        ) { [unowned self] in exited($0) }
    }

    var pid: Int32? { process?.pid }

    var facts: [String: JSONValue] { ["pid": .int(Int64(pid ?? 0))] }

    // MARK: ModuleBackend

    func connect(_ link: mh_link, device: String, options: Data) -> mh_status {
        sends[link] = Sends()
        let options = (try? JSONValue(parsing: options)) ?? .object([:])
        ask(
            ModuleMessage(.connect, link: link),
            JSONValue.object(["device": .string(device), "options": options]).serialized())
        return MH_OK
    }

    func disconnect(_ link: mh_link) -> mh_status {
        ask(ModuleMessage(.disconnect, link: link))
        return MH_OK
    }

    func send(
        _ link: mh_link, _ frame: Data, cookie: UInt64, withoutResponse: Bool
    ) -> (accepted: mh_status, done: mh_status?) {
        guard let count = sends[link]?.count else { return (MH_ECLOSED, nil) }
        guard count < Self.sendWindow else {
            sends[link]?.isBlocked = true
            return (MH_AGAIN, nil)
        }
        sends[link]?.count = count + 1
        socket?.send(
            ModuleMessage(.send, flags: withoutResponse ? .withoutResponse : [], link: link, cookie: cookie), frame)
        return (MH_OK, nil)
    }

    func framesTaken(_ link: mh_link, frames: Int, bytes: Int) {
        _ = inbox.release(link, frames: frames, bytes: bytes)
        socket?.send(ModuleMessage(.credit, code: Int32(clamping: frames), link: link, cookie: UInt64(clamping: bytes)))
    }

    func forget(_ link: mh_link) {
        sends[link] = nil
        ask(ModuleMessage(.forget, link: link))
    }

    func scan(isOn: Bool, filter: Data) -> mh_status {
        ask(ModuleMessage(.scan, code: isOn ? 1 : 0), filter)
        return MH_OK
    }

    func manage(_ request: UInt64, verb: String, params: Data) -> mh_status {
        let params = (try? JSONValue(parsing: params)) ?? .object([:])
        ask(
            ModuleMessage(.manage, cookie: request),
            JSONValue.object(["verb": .string(verb), "params": params]).serialized())
        return MH_OK
    }

    func cancelManage(_ request: UInt64) -> mh_status {
        ask(ModuleMessage(.cancel, cookie: request))
        return MH_OK
    }

    func diagnostics() async -> Data? {
        await withCheckedContinuation { continuation in
            // It may end before this runs: then nobody is left who would answer.
            guard isGreeted, machine.isUsable else { return continuation.resume(returning: nil) }
            lastInquiry += 1
            let number = lastInquiry
            let timer = LoopTimer(loop)
            timer.schedule(after: Self.diagnosticsDeadline) { self.answer(number, nil) }
            inquiries[number] = Inquiry(continuation: continuation, timer: timer)
            ask(ModuleMessage(.diagnose, cookie: number))
        }
    }

    private func answer(_ inquiry: UInt64, _ document: Data?) {
        inquiries.removeValue(forKey: inquiry)?.continuation.resume(returning: document)
    }

    func stop() -> mh_status {
        switch machine.stop(now: loop.now) {
        case .sendStop: ask(ModuleMessage(.stop))
        case .kill: process?.signal(SIGKILL)
        case .none: break
        }
        armTimer()
        return MH_OK
    }

    func kill() -> Bool {
        _ = machine.killed()
        process?.signal(SIGKILL)
        armTimer()
        return true
    }

    func destroy() {
        isTold = true
        machine.stopped(now: loop.now)
        socket?.close()
        for number in inquiries.keys { answer(number, nil) }
        armTimer()
    }

    private func ask(_ head: ModuleMessage, _ document: Data = Data()) {
        guard isGreeted else {
            held.append((head, document))
            return
        }
        if head.kind.isDocument {
            socket?.send(head, document: document)
        } else {
            socket?.send(head, document)
        }
    }

    // MARK: What it says

    private func take(_ head: ModuleMessage, _ payload: UnsafeRawBufferPointer) {
        switch head.kind {
        case .hello: greeted(Data(payload))
        case .refused:
            fail(ModuleRefusal(document: Data(payload), path: name).description, isCrash: true)
        case .pong: machine.pongReceived(now: loop.now)
        case _ where !isGreeted: breach("says something before its hello")
        case .started: started(head.code, text(payload))
        case .stopped:
            machine.stopped(now: loop.now)
            socket?.close()
            armTimer()
        case .linkUp:
            let maximum = Int(min(max(head.code, 1), Int32(MH_MAX_FRAME)))
            inbox.post(.linkUp(head.link, maximum: maximum, peer: text(payload)), for: head.link)
        case .linkDown:
            sends[head.link] = nil
            inbox.linkDown(head.link, head.code, detail: text(payload))
        case .sent: sent(head)
        case .frame: received(head.link, payload)
        case .frames:
            do throws(DecodeError) {
                try ModuleFrames.forEach(in: payload) { received(head.link, $0) }
            } catch {
                breach("sent frames that are none: \(error)")
            }
        case .found: found(head.code, payload)
        case .metric:
            inbox.post(
                .metric(text(payload), kind: head.code, Double(bitPattern: head.cookie)), isDroppable: true)
        case .linkEvent where head.code == MH_EVENT_ADAPTER: inbox.adapterChanged(head.link, head.cookie)
        case .linkEvent:
            inbox.post(.linkEvent(head.link, kind: head.code, head.cookie), for: head.link, isDroppable: true)
        case .scanned: if head.code != MH_OK { inbox.post(.scanFailed(head.code, detail: text(payload))) }
        case .managed: inbox.managed(head.cookie, head.code, Data(payload))
        case .diagnostics: answer(head.cookie, Data(payload))
        case .log: note(LogLevel(abiValue: head.code), text(payload))
        case .validated, .identified: break
        case .ping, .start, .stop, .connect, .disconnect, .send, .credit, .scan, .manage, .cancel, .diagnose, .validate,
            .forget, .identify:
            assertionFailure("the decoder lets only what a module may say pass")
        }
    }

    private func greeted(_ document: Data) {
        guard machine.helloReceived(now: loop.now) else { return breach("says hello twice") }
        guard ModuleHello.isUnderstood(document) else {
            return breach("speaks no version of the protocol that the host does")
        }
        isGreeted = true
        let held = held
        self.held = []
        for (head, document) in held { ask(head, document) }
        armTimer()
    }

    private func started(_ code: mh_status, _ detail: String) {
        if code == MH_OK {
            guard machine.started(now: loop.now) else { return breach("has started twice") }
        } else {
            // No crash: it was asked, and says why not.
            machine.stopped(now: loop.now)
            tell(.failed(code < 0 ? code : MH_EINTERNAL, detail: detail))
        }
        armTimer()
    }

    private func received(_ link: mh_link, _ frame: UnsafeRawBufferPointer) {
        let bytes = mh_bytes(ptr: frame.baseAddress?.assumingMemoryBound(to: UInt8.self), len: frame.count)
        if inbox.receive(link, bytes) == MH_AGAIN { breach("sends frames beyond its credit") }
    }

    private func sent(_ head: ModuleMessage) {
        inbox.sendDone(head.cookie, head.code)
        guard var link = sends[head.link], link.count > 0 else { return }
        link.count -= 1
        let goesOn = link.isBlocked && link.count <= Self.sendWindow / 2
        if goesOn { link.isBlocked = false }
        sends[head.link] = link
        if goesOn { inbox.post(.writable(head.link), for: head.link) }
    }

    private func found(_ rssi: Int32, _ payload: UnsafeRawBufferPointer) {
        guard let sighting = try? ModuleSighting(decoding: payload) else { return breach("saw what cannot be read") }
        let result = ScanResult(
            address: String(decoding: sighting.address.prefix(4_096), as: UTF8.self),
            name: String(decoding: sighting.name.prefix(4_096), as: UTF8.self), rssi: rssi == .min ? nil : Int(rssi),
            advertisement: Array(sighting.advertisement.prefix(2_048)))
        inbox.post(.found(result), isDroppable: true)
    }

    private func text(_ payload: UnsafeRawBufferPointer) -> String {
        String(decoding: payload, as: UTF8.self).singleLine
    }

    /// One record of the module's, through its callback or its standard error.
    private func note(_ level: LogLevel, _ text: String) {
        let (isAllowed, lost) = allowance.take(now: loop.now)
        tellLost(lost)
        if isAllowed { log(level, text) }
    }

    private func noteRest(_ records: [(level: LogLevel, text: String)]) {
        for record in records.dropLast(Self.lastWords) { note(record.level, record.text) }
        tellLost(allowance.takeLost())
        for record in records.suffix(Self.lastWords) { log(record.level, record.text) }
    }

    private func tellLost(_ count: Int) {
        if count > 0 { log(.warning, "log records of a module were lost", [("count", "\(count)")]) }
    }

    // MARK: The end

    /// Tells the instance its end, once.
    private func tell(_ event: HostEvent) {
        guard !isTold else { return }
        isTold = true
        inbox.post(event)
    }

    /// It does not keep to the protocol.
    private func breach(_ what: String) {
        fail(what, isCrash: true)
    }

    private func fail(_ reason: String, isCrash: Bool) {
        let counts = machine.killed() && isCrash
        socket?.close()
        process?.signal(SIGKILL)
        if counts { crashed(reason) }
        armTimer()
    }

    private func crashed(_ reason: String) {
        supervisor.crashed(name, pid: pid ?? 0, reason: reason, now: loop.now, log: log)
        tell(.failed(MeshError.moduleFailedStatus, detail: "module \(name) crashed: its process \(reason)"))
    }

    private func socketEnded(_ end: ModuleSocket.End) {
        switch end {
        case .breach(let what): breach(what)
        case .closed:
            // It has ended, and its status is known by now, or it cannot be reached any more.
            hasHungUp = true
            process?.signal(SIGKILL)
        }
    }

    private func exited(_ exit: LoopProcess.Exit) {
        // What it said before it ended, such as why.
        socket?.readRest()
        noteRest(errors?.finish() ?? [])
        let isCrash = machine.exited()
        if isCrash {
            crashed(reason(exit))
        } else {
            tell(.stopped)
        }
        socket?.close()
        for number in inquiries.keys { answer(number, nil) }
        // The instance may be kept for what is said of its last links. Dropped after this callback, which one of them calls.
        let rest = (socket, errors, process, timer)
        (socket, errors, process, timer) = (nil, nil, nil, nil)
        loop.performLater { withExtendedLifetime(rest) {} }
        supervisor.ended(self)
    }

    private func reason(_ exit: LoopProcess.Exit) -> String {
        if exit.signal == SIGKILL, hasHungUp { return "closed its socket" }
        if exit.signal == 0 { return "ended by itself with status \(exit.status)" }
        let words = strsignal(exit.signal).map { " (\(String(cString: $0)))" } ?? ""
        return "was ended by signal \(exit.signal)\(words)"
    }

    // MARK: Deadlines

    private func armTimer() {
        guard let deadline = machine.nextDeadline else {
            timer?.cancel()
            return
        }
        timer?.schedule(after: deadline - loop.now) { [unowned self] in deadlineReached() }
    }

    private func deadlineReached() {
        switch machine.deadlineReached(now: loop.now) {
        case .none: break
        case .ping: socket?.send(ModuleMessage(.ping))
        case .terminate: process?.signal(SIGTERM)
        case .kill(let reason): fail(reason, isCrash: true)
        }
        armTimer()
    }
}
