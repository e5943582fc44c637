// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CTransportABI
public import FoundationEssentials
internal import MeshLoop
public import MeshTransportAPI

/// A transport whose link is made by a module.
///
/// Pinned to the host's loop. `receivedData` gives back-pressure: what the consumer does not take fills a bounded queue,
/// then the module is told to stop reading. Frames are lost, and counted, only when a module does not heed that.
public actor ModuleTransport: DirectTransport, TransportDiagnosing {
    typealias Waiter = LoopResult<mh_status>

    /// One connection attempt and the link it becomes. Belongs to the transport's isolation.
    private final class Link {
        let id: mh_link
        /// The call of `connect` that it is for.
        let call: UInt64
        let instance: ModuleInstance
        let frames: FrameQueue
        var info = LinkInfo(maximumFrameLength: 0, peer: "")
        var sends = SendLedger<Waiter>()
        var lastNumber: UInt32 = 0
        var framesSent = 0

        init(id: mh_link, call: UInt64, instance: ModuleInstance, frames: FrameQueue) {
            self.id = id
            self.call = call
            self.instance = instance
            self.frames = frames
        }
    }

    /// `idle ─connect─▶ connecting ─link_up─▶ up ─disconnect─▶ closing ─link_down─▶ idle`; `link_down` leads to idle from
    /// everywhere, a cancelled attempt goes from connecting to closing.
    private enum State {
        case idle
        /// Waits for `link_up` or `link_down`.
        case connecting(Link, CheckedContinuation<MeshError?, Never>)
        case up(Link)
        /// Waits for `link_down`, at most until the deadline; the attempt, if it was one, is told only then.
        case closing(Link, attempt: CheckedContinuation<MeshError?, Never>?, deadline: LoopTimer)
    }

    private let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let module: any HostedModule
    private let settings: TransportSettings
    private let limits: ModuleSettings
    private let instances: ModuleInstances
    private var state = State.idle
    private var lastCall: UInt64 = 0
    private var closingWaiters: [CheckedContinuation<Void, Never>] = []
    private var frames: FrameQueue?
    /// The link before this one, whose adapter the module may still report.
    private var last: (instance: ModuleInstance, link: mh_link)?
    private var framesDropped = 0
    private var lastError: MeshError?

    init(module: any HostedModule, settings: TransportSettings, limits: ModuleSettings, instances: ModuleInstances) {
        loop = instances.loop
        self.module = module
        self.settings = settings
        self.limits = limits
        self.instances = instances
    }

    // MARK: MeshTransport

    public func connect() async throws {
        // One that was asked something may hold the port until it has ended.
        await instances.retired()
        while case .closing = state { await closed() }
        lastCall += 1
        let call = lastCall
        let error = await withTaskCancellationHandler {
            await withCheckedContinuation { begin(call, $0) }
        } onCancel: {
            loop.perform { self.assumeIsolated { $0.cancelAttempt(call) } }
        }
        if let error { throw fault(error) }
    }

    /// Begins an attempt where its waiting begins, so that nothing comes between a look at the state and its change. Runs in
    /// the task that waits: a cancellation is either seen here or comes later.
    private func begin(_ call: UInt64, _ attempt: CheckedContinuation<MeshError?, Never>) {
        switch state {
        case .idle: break
        case .up: return attempt.resume(returning: nil)
        case .connecting, .closing:
            let error = MeshError(.invalidArgument, "the link is being connected already")
            return attempt.resume(returning: error)
        }
        if Task.isCancelled {
            return attempt.resume(returning: MeshError(.cancelled, "the attempt was cancelled"))
        }
        let instance: ModuleInstance
        do throws(MeshError) {
            instance = try instances.instance(for: settings)
        } catch {
            return attempt.resume(returning: error)
        }
        if let last { last.instance.forgetLink(last.link) }
        let (id, frames) = instance.openLink(for: self)
        last = (instance, id)
        let link = Link(id: id, call: call, instance: instance, frames: frames)
        self.frames = frames
        state = .connecting(link, attempt)
        let status = instance.connect(id, device: settings.device, options: settings.written)
        // An op that fails is not followed by link_down.
        if status != MH_OK { over(link, status, detail: "") }
    }

    public func disconnect() async {
        switch state {
        case .connecting(let link, let attempt): close(link, attempt: attempt)
        case .up(let link): close(link, attempt: nil)
        case .idle, .closing: break
        }
        await closed()
        // An instance of this device's own would outlive a device that is taken out of the config.
        await instances.retire(settings.device)
    }

    public func send(_ data: Data) async throws {
        try await transmit(data, withoutResponse: false)
    }

    public func sendWithoutResponse(_ data: Data) async throws {
        try await transmit(data, withoutResponse: true)
    }

    public var supportsWriteWithoutResponse: Bool { module.canSendWithoutResponse }

    public var supportsPipelinedReads: Bool { module.descriptor.capabilities.contains(.pipelinedReads) }

    public var receivedData: AsyncStream<Data> {
        guard let frames else { return AsyncStream { $0.finish() } }
        // Unfolding, so that it is known what the consumer has taken. A consumer whose task does not prefer the loop as
        // its executor pays for two thread hops with each frame; `deliverFrames` costs none.
        return AsyncStream(unfolding: { await self.nextFrame(from: frames) })
    }

    private func nextFrame(from frames: FrameQueue) async -> Data? {
        await frames.next(isolation: self) { [loop] in loop.perform($0) }
    }

    public func deliverFrames(to handler: @escaping @Sendable (Data) -> Bool) {
        frames?.deliver(to: handler)
    }

    public func resumeDelivery() {
        frames?.resumeDelivery()
    }

    public var isConnected: Bool {
        if case .up = state { true } else { false }
    }

    public func diagnostics() async -> JSONValue {
        var facts: [String: JSONValue] = ["frames_dropped": .int(Int64(framesDropped))]
        if let lastError { facts["last_error"] = .string(lastError.description) }
        if case .up(let link) = state {
            facts["peer"] = .string(link.info.peer)
            facts["maximum_frame_length"] = .int(Int64(link.info.maximumFrameLength))
            facts["frames_sent"] = .int(Int64(link.framesSent))
            facts["sends_under_way"] = .int(Int64(link.sends.acceptedCount))
            facts["sends_waiting"] = .int(Int64(link.sends.waitingCount))
            facts["host"] = await link.instance.diagnostics(of: link.id)
        }
        return .object(facts)
    }

    // MARK: Ending

    private func cancelAttempt(_ call: UInt64) {
        if case .connecting(let link, let attempt) = state, link.call == call { close(link, attempt: attempt) }
    }

    private func close(_ link: Link, attempt: CheckedContinuation<MeshError?, Never>?) {
        let deadline = LoopTimer(loop)
        deadline.schedule(after: limits.disconnectDeadline) { self.disconnectUnanswered(link.id) }
        state = .closing(link, attempt: attempt, deadline: deadline)
        // The stream ends with the link, which may take the module a while.
        link.frames.discard()
        // Not MH_OK: the link has ended by itself and its link_down is in the inbox.
        _ = link.instance.disconnect(link.id)
    }

    private func disconnectUnanswered(_ id: mh_link) {
        guard case .closing(let link, _, _) = state, link.id == id else { return }
        settings.environment.log(.error, "module does not end the link", [("module", module.descriptor.name)])
        over(link, MH_ECLOSED, detail: "module \(module.descriptor.name) did not end the link")
    }

    private func closed() async {
        await withCheckedContinuation {
            if case .closing = state { closingWaiters.append($0) } else { $0.resume() }
        }
    }

    /// The link, or the attempt, has ended.
    private func over(_ link: Link, _ status: mh_status, detail: String) {
        let before = state
        state = .idle
        link.instance.closeLink(link.id)
        let error = MeshError(
            status: status >= 0 ? MH_ECLOSED : status, detail: detail, module: module.descriptor.name
        ).adding(device: settings.device, peer: link.info.peer.isEmpty ? nil : link.info.peer)
        switch before {
        case .idle:
            assertionFailure("a link that ended twice")
        case .connecting(_, let attempt):
            lastError = error
            link.frames.finish(discarding: true)
            attempt.resume(returning: error)
        case .up:
            lastError = error
            settings.environment.linkEvents(.down(reason: error))
            link.frames.finish(discarding: false)
        case .closing(_, .some(let attempt), _):
            link.frames.finish(discarding: true)
            // Who is told that the adapter is away gives the attempt up; why it is away comes with the link's own end.
            let isOwn = error.code == .adapterUnavailable
            attempt.resume(returning: isOwn ? error : MeshError(.cancelled, "the attempt was cancelled"))
        case .closing(_, .none, _):
            settings.environment.linkEvents(.down(reason: nil))
            link.frames.finish(discarding: true)
        }
        let ended = if case .closing = before { MH_ECLOSED } else { status >= 0 ? MH_ECLOSED : status }
        for waiter in link.sends.removeAll() { waiter.set(ended) }
        let waiters = closingWaiters
        closingWaiters = []
        for waiter in waiters { waiter.resume() }
    }

    // MARK: From the module

    func linkUp(_ id: mh_link, maximum: Int, peer: String) {
        guard case .connecting(let link, let attempt) = state, link.id == id else { return }
        link.info = LinkInfo(maximumFrameLength: maximum, peer: peer)
        state = .up(link)
        settings.environment.linkEvents(.up(link.info))
        attempt.resume(returning: nil)
    }

    func linkDown(_ id: mh_link, _ status: mh_status, detail: String) {
        switch state {
        case .connecting(let link, _) where link.id == id, .up(let link) where link.id == id,
            .closing(let link, _, _) where link.id == id:
            over(link, status, detail: detail)
        case .idle, .connecting, .up, .closing:
            return
        }
    }

    func linkEvent(_ kind: Int32, _ value: UInt64) {
        let report = settings.environment.linkEvents
        let count = Int(clamping: value)
        switch kind {
        case MH_EVENT_PHASE: if let phase = LinkPhase(abiValue: value) { report(.phase(phase)) }
        case MH_EVENT_FRAMES_DROPPED: framesLost(count)
        case MH_EVENT_BYTES_SKIPPED: report(.bytesSkipped(count: count))
        case MH_EVENT_ADAPTER: report(.adapter(available: value != 0))
        default: break  // of a later minor
        }
    }

    func framesLost(_ count: Int) {
        framesDropped += count
        settings.environment.linkEvents(.framesDropped(count: count))
    }

    /// Whether this `tx_done` was due.
    func sendDone(_ cookie: UInt64, _ status: mh_status) -> Bool {
        guard case .up(let link) = state else { return true }
        switch link.sends.done(cookie) {
        case .resume(let waiter): waiter.set(status)
        case .nobodyWaits: break
        case .unexpected: return false
        }
        return true
    }

    func writable(_ id: mh_link) {
        guard case .up(let link) = state, link.id == id else { return }
        link.sends.writable()
        while let next = link.sends.next {
            let (accepted, done) = link.instance.send(
                id, next.frame, cookie: next.cookie, withoutResponse: next.withoutResponse)
            if accepted == MH_AGAIN { return link.sends.frameRefused() }
            link.sends.removeNext()
            if accepted == MH_OK, done == nil {
                link.sends.frameAccepted(next.cookie, next.waiter)
            } else {
                next.waiter.set(accepted == MH_OK ? done ?? MH_OK : accepted)
            }
        }
    }

    // MARK: Sending

    private func transmit(_ frame: Data, withoutResponse: Bool) async throws(MeshError) {
        guard case .up(let link) = state else {
            throw fault(MeshError(.notConnected, "there is no link to send on"), "send")
        }
        guard frame.count <= link.info.maximumFrameLength else {
            throw fault(
                MeshError(
                    .frameTooLong,
                    "the frame has \(frame.count) bytes and the link carries \(link.info.maximumFrameLength)"), "send")
        }
        guard !frame.isEmpty else { throw fault(MeshError(.invalidArgument, "an empty frame cannot be sent"), "send") }
        if Task.isCancelled { throw fault(MeshError(.cancelled, "the send was cancelled"), "send") }
        link.lastNumber &+= 1
        let cookie = ModuleInstance.cookie(link.id, link.lastNumber)
        var answer: (accepted: mh_status, done: mh_status?) = (MH_AGAIN, nil)
        if !link.sends.mustWait {
            answer = link.instance.send(link.id, frame, cookie: cookie, withoutResponse: withoutResponse)
            if answer.accepted == MH_AGAIN { link.sends.frameRefused() }
        }
        let status: mh_status
        if answer.accepted == MH_OK, let done = answer.done {
            status = done  // The way of a module that writes at once: no suspension.
        } else if answer.accepted == MH_OK || answer.accepted == MH_AGAIN {
            if answer.accepted == MH_AGAIN, link.sends.isFull {
                throw fault(MeshError(.queueFull, "too many frames wait to be sent"), "send")
            }
            // In the ledger before anything is awaited: the module may tell of the frame at any time from now on.
            let outcome = Waiter()
            if answer.accepted == MH_OK {
                link.sends.frameAccepted(cookie, outcome)
            } else {
                link.sends.frameWaits(
                    .init(cookie: cookie, frame: frame, withoutResponse: withoutResponse, waiter: outcome))
            }
            status = await withTaskCancellationHandler {
                await outcome.get(isolation: self)
            } onCancel: {
                loop.perform { self.assumeIsolated { $0.cancelSend(cookie) } }
            }
        } else {
            status = answer.accepted
        }
        guard status == MH_OK else {
            throw fault(MeshError(status: status, module: module.descriptor.name), "send")
        }
        link.framesSent += 1
    }

    public nonisolated func sendAtOnce(_ frame: Data) -> Bool {
        assumeIsolated { $0.transmitNow(frame) }
    }

    private func transmitNow(_ frame: Data) -> Bool {
        guard case .up(let link) = state, !link.sends.mustWait, !frame.isEmpty,
            frame.count <= link.info.maximumFrameLength
        else { return false }
        link.lastNumber &+= 1
        let cookie = ModuleInstance.cookie(link.id, link.lastNumber)
        let answer = link.instance.send(link.id, frame, cookie: cookie, withoutResponse: false)
        guard answer.accepted == MH_OK else {
            if answer.accepted == MH_AGAIN { link.sends.frameRefused() }
            return false
        }
        // A frame that fails later is lost with its link; a session that needs to know uses `send`.
        if answer.done == nil { link.sends.frameAccepted(cookie) }
        link.framesSent += 1
        return true
    }

    private func cancelSend(_ cookie: UInt64) {
        if case .up(let link) = state { link.sends.cancel(cookie)?.set(MH_ECANCELED) }
    }

    private func fault(_ error: MeshError, _ operation: String = "connect") -> MeshError {
        error.adding(device: settings.device, operation: operation)
    }
}
