// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshLoop
internal import MeshStream
public import MeshTransportAPI

/// A link to a companion radio over TCP, in the framing of companion radios.
///
/// The driver of a `StreamLinkStateMachine`: it owns the socket and carries out what the machine decides. While connected it
/// must not be dropped without ``disconnect()``.
public actor TCPTransport: DirectTransport, TransportDiagnosing {
    /// One connection that is up.
    private struct Link {
        var generation: UInt64
        var peer: String
        var since: Duration
    }

    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let settings: TCPSettings
    private nonisolated let environment: TransportEnvironment
    private let frames: CompanionStream
    private var machine: StreamLinkStateMachine
    private var link: Link?
    private var attempt: Task<Result<Void, MeshError>, Never>?
    /// Connections being made by the attempt, by their number in it.
    var candidates: [Int: LoopStream] = [:]
    private var writeTimer: LoopTimer?
    private var connections: Int64 = 0
    private var lastError: MeshError?

    public init(loop: EventLoop, settings: TCPSettings, environment: TransportEnvironment) {
        self.loop = loop
        self.settings = settings
        self.environment = environment
        frames = CompanionStream(
            loop: loop,
            CompanionStream.Configuration(
                maximumFrame: settings.maximumFrame, partialFrameTimeout: settings.partialFrameTimeout,
                checksLayout: settings.checksLayout))
        machine = StreamLinkStateMachine(writeTimeout: settings.writeTimeout)
    }

    // MARK: Connecting

    public func connect() async throws {
        switch machine.connectRequested() {
        case .refuse:
            throw MeshError(
                .invalidArgument, "\(settings.endpoint) is connected already, or a connection is being made or ended",
                context: .init(operation: "connect", peer: settings.endpoint.description))
        case .startAttempt(let generation):
            // A task of its own, so that `disconnect` can cancel it too; it ends before this function does.
            let attempt = Task(executorPreference: loop.taskExecutor) { await self.runAttempt(generation) }
            self.attempt = attempt
            let result = await withTaskCancellationHandler {
                await attempt.value
            } onCancel: {
                attempt.cancel()
            }
            try result.get()
        }
    }

    private func runAttempt(_ generation: UInt64) async -> Result<Void, MeshError> {
        defer { attempt = nil }
        report(.phase(.connecting))
        let error: MeshError
        do {
            let stream = try await openStream()
            switch machine.attemptSucceeded(
                generation: generation, isCancelled: Task.isCancelled, now: loop.now)
            {
            case .bringLinkUp:
                bringUp(stream, generation)
                return .success(())
            case .closeStream:
                stream.close()
                error = MeshError(
                    .cancelled, "the attempt to connect to \(settings.endpoint) was cancelled",
                    context: .init(operation: "connect", peer: settings.endpoint.description))
            }
        } catch let failure {
            machine.attemptFailed(generation: generation)
            error = failure
        }
        lastError = error
        report(.phase(.idle))
        return .failure(error)
    }

    private func bringUp(_ stream: LoopStream, _ generation: UInt64) {
        stream.setNoDelay()
        // Three probes (tcp(7): TCP_KEEPCNT) 10 s apart; a peer that answers none of them is gone.
        stream.setKeepAlive(
            idle: settings.keepaliveIdle, interval: .seconds(10), count: 3, unacknowledged: settings.userTimeout)
        let peer = stream.peerAddress?.description ?? settings.endpoint.description
        let link = Link(generation: generation, peer: peer, since: loop.now)
        self.link = link
        connections += 1
        frames.begin(stream) { self.happened($0, generation) }
        report(.phase(.connected))
        report(.up(LinkInfo(maximumFrameLength: settings.maximumFrame, peer: peer)))
    }

    // MARK: Ending

    public func disconnect() async {
        switch machine.disconnectRequested() {
        case .nothing: break
        case .cancelAttempt:
            attempt?.cancel()
            _ = await attempt?.value
        case .closeLink:
            report(.phase(.disconnecting))
            closeLink(reason: nil)
        }
    }

    private func happened(_ happening: CompanionStream.Happening, _ generation: UInt64) {
        switch happening {
        case .framesReceived, .frameSent: break
        case .bytesSkipped(let count): report(.bytesSkipped(count: count))
        case .writeBegan:
            machine.writeStarted(generation: generation, now: loop.now)
            watchWrites()
        case .writeEnded: machine.writeFinished(generation: generation, now: loop.now)
        case .ended(let error): perform(machine.linkEnded(generation: generation, now: loop.now), error)
        }
    }

    private func perform(_ action: StreamLinkStateMachine.LossAction, _ error: LoopError? = nil) {
        switch action {
        case .nothing: break
        case .closeLink(let loss):
            guard let link else { return }
            let age = Duration.milliseconds((loop.now - link.since) / .milliseconds(1))
            closeLink(reason: MeshError(TCPLoss(loss, error), of: link.peer, upFor: age, error))
        }
    }

    /// Closes the socket, says so, then ends the stream of frames: at once when this side asked for it, else behind the
    /// frames that came before the loss.
    private func closeLink(reason: MeshError?) {
        guard link != nil else { return }
        link = nil
        writeTimer = nil
        lastError = reason
        frames.end(discarding: reason == nil, reset: reason?.code == .operationTimeout) {
            report(.down(reason: reason))
        }
        report(.phase(.idle))
    }

    // MARK: Frames

    public var receivedData: AsyncStream<Data> {
        guard let inbox = frames.inbox else { return AsyncStream { $0.finish() } }
        return AsyncStream(unfolding: { await self.nextFrame(from: inbox) })
    }

    private func nextFrame(from inbox: FrameQueue) async -> Data? {
        let frame = await inbox.next(isolation: self) { [loop] in loop.perform($0) }
        frames.readOn()
        return frame
    }

    public func deliverFrames(to handler: @escaping @Sendable (Data) -> Bool) {
        frames.deliver(to: handler)
    }

    public func resumeDelivery() {
        frames.resumeDelivery()
    }

    public func send(_ data: Data) async throws {
        guard let link else { throw notConnected() }
        do throws(CompanionStream.SendFailure) {
            try await frames.send(data, sending)
        } catch {
            switch error {
            case .refused(let refusal): throw refusal
            case .lost(let loss):
                // Also when the reader has not noticed the end yet.
                happened(.ended(loss), link.generation)
                throw lastError.map { $0.adding(operation: "send") } ?? linkClosed(cause: loss)
            }
        }
    }

    public nonisolated func sendAtOnce(_ frame: Data) -> Bool {
        assumeIsolated { $0.frames.sendAtOnce(frame) }
    }

    private func watchWrites() {
        guard let deadline = machine.nextDeadline else { return }
        let timer = writeTimer ?? LoopTimer(loop)
        writeTimer = timer
        if timer.isScheduled { return }
        timer.schedule(after: deadline - loop.now) {
            self.perform(self.machine.deadlineReached(now: self.loop.now))
            self.watchWrites()
        }
    }

    private var sending: MeshError.Context {
        MeshError.Context(operation: "send", peer: settings.endpoint.description)
    }

    private func notConnected() -> MeshError {
        MeshError(.notConnected, "there is no link to \(settings.endpoint); connect first", context: sending)
    }

    private func linkClosed(cause: LoopError) -> MeshError {
        MeshError(
            .linkClosed, "the link to \(settings.endpoint) was closed before the frame was sent", cause: cause,
            context: sending)
    }

    // MARK: Facts

    public var isConnected: Bool { link != nil }

    /// TCP keeps order and nothing coalesces, so several commands may be under way (companion-protocol §1.1).
    public var supportsPipelinedReads: Bool { true }

    public func diagnostics() -> JSONValue {
        let counters = frames.counters
        var object: [String: JSONValue] = [
            "peer": .string(settings.endpoint.description), "connected": .bool(isConnected),
            "connections": .int(connections), "frames_received": .int(counters.framesReceived),
            "frames_sent": .int(counters.framesSent), "bytes_received": .int(counters.bytesReceived),
            "bytes_sent": .int(counters.bytesSent), "bytes_skipped": .int(counters.bytesSkipped),
            "bad_frames": .int(counters.badFrames), "reading_paused": .int(counters.readingPaused),
            "frames_queued": .int(Int64(frames.inbox?.count ?? 0)),
        ]
        if let link {
            object["address"] = .string(link.peer)
            object["up_seconds"] = .int((loop.now - link.since).components.seconds)
        }
        if let lastError { object["last_error"] = .string(lastError.code.slug) }
        return .object(object)
    }

    private nonisolated func report(_ event: LinkEvent) {
        environment.linkEvents(event)
    }
}
