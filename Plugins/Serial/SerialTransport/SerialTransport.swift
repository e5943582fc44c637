// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshLoop
internal import MeshStream
public import MeshTransportAPI

/// A link to a companion radio at a serial port, in the framing of companion radios.
///
/// The driver of a `StreamLinkStateMachine` and a ``ControlLineStateMachine``: it owns the port and carries out what they
/// decide. While connected it must not be dropped without ``disconnect()``. When the port is not there, or goes, the transport waits for it between links
/// and reports `LinkEvent.adapter`, until the next `connect` or the end of its ``SerialPortWatcher``.
public actor SerialTransport: DirectTransport, TransportDiagnosing {
    /// One link that is up.
    private struct Link {
        var generation: UInt64
        var port: LoopStream
        var path: String
        var since: Duration
    }

    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let settings: SerialSettings
    private nonisolated let environment: TransportEnvironment
    nonisolated let watcher: SerialPortWatcher
    private let frames: CompanionStream
    private var machine: StreamLinkStateMachine
    var lines: ControlLineStateMachine
    private var link: Link?
    private var attempt: Task<Result<Void, MeshError>, Never>?
    private var deadlineTimer: LoopTimer?
    private var deadlineTimerDue = Duration.zero
    /// Under way to the device: lines that are set.
    private var lineSetting: Task<Void, Never>?
    private var portWait: SerialPortWatcher.Wait?
    private var connections: Int64 = 0
    var board = SerialBoard.behind(nil)
    private var lastError: MeshError?

    public init(
        loop: EventLoop, settings: SerialSettings, watcher: SerialPortWatcher, environment: TransportEnvironment
    ) {
        self.loop = loop
        self.settings = settings
        self.watcher = watcher
        self.environment = environment
        frames = CompanionStream(
            loop: loop,
            CompanionStream.Configuration(
                maximumFrame: settings.maximumFrame, partialFrameTimeout: settings.partialFrameTimeout,
                checksLayout: settings.checksLayout))
        machine = StreamLinkStateMachine(writeTimeout: settings.writeTimeout)
        lines = ControlLineStateMachine(.init(answerTimeout: settings.answerTimeout))
    }

    // MARK: Connecting

    public func connect() async throws {
        switch machine.connectRequested() {
        case .refuse:
            throw MeshError(
                .invalidArgument, "\(settings.choice) is open already, or is being opened or closed",
                context: .init(operation: "connect", peer: settings.choice.description))
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
        portWait = nil
        report(.phase(.connecting))
        let error: MeshError
        do {
            let (port, path) = try await openPort()
            switch machine.attemptSucceeded(generation: generation, isCancelled: Task.isCancelled, now: loop.now) {
            case .bringLinkUp:
                bringUp(Link(generation: generation, port: port, path: path, since: loop.now))
                return .success(())
            case .closeStream:
                port.close()
                error = cancelled()
            }
        } catch let failure {
            machine.attemptFailed(generation: generation)
            error = failure
        }
        lastError = error
        report(.phase(.idle))
        if error.code == .adapterUnavailable { waitForPort() }
        return .failure(error)
    }

    private func bringUp(_ link: Link) {
        self.link = link
        connections += 1
        lines.linkOpened()
        frames.begin(link.port) { self.happened($0, link.generation) }
        report(.phase(.connected))
        report(.up(LinkInfo(maximumFrameLength: settings.maximumFrame, peer: link.path)))
    }

    func cancelled() -> MeshError {
        MeshError(
            .cancelled, "the attempt to open \(settings.choice) was cancelled",
            context: .init(operation: "connect", peer: settings.choice.description))
    }

    // MARK: Ending

    /// Frames that the port has not sent by then are lost: closing would otherwise wait for a device that takes nothing.
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
        await lineSetting?.value
    }

    private func perform(_ action: StreamLinkStateMachine.LossAction, _ error: LoopError? = nil) {
        switch action {
        case .nothing: break
        case .closeLink(let loss):
            guard let link else { return }
            let isPresent = watcher.catalogue.path(of: .path(link.path)) != nil
            closeLink(reason: MeshError(SerialLoss(loss, isPresent: isPresent), of: link.path, error))
        }
    }

    /// Closes the port, says so, then ends the stream of frames: at once when this side asked for it, else behind the frames
    /// that came before the loss.
    private func closeLink(reason: MeshError?) {
        guard link != nil else { return }
        link = nil
        lines.linkClosed()
        deadlineTimer = nil
        lastError = reason
        frames.end(discarding: reason == nil, reset: false) { report(.down(reason: reason)) }
        report(.phase(.idle))
        if reason?.code == .adapterUnavailable { waitForPort() }
    }

    private func waitForPort() {
        portWait = watcher.whenUsable(settings.choice) { [environment] in
            environment.linkEvents(.adapter(available: true))
        }
    }

    // MARK: On the link

    private func happened(_ happening: CompanionStream.Happening, _ generation: UInt64) {
        guard link?.generation == generation else { return }
        switch happening {
        case .framesReceived: lines.frameReceived()
        case .bytesSkipped(let count): report(.bytesSkipped(count: count))
        case .frameSent: lines.frameSent(now: loop.now)
        case .writeBegan: machine.writeStarted(generation: generation, now: loop.now)
        case .writeEnded: machine.writeFinished(generation: generation, now: loop.now)
        case .ended(let error): perform(machine.linkEnded(generation: generation, now: loop.now), error)
        }
        watchDeadline()
    }

    private func watchDeadline() {
        guard link != nil, let deadline = [machine.nextDeadline, lines.nextDeadline].compactMap(\.self).min() else {
            return
        }
        let timer = deadlineTimer ?? LoopTimer(loop)
        deadlineTimer = timer
        // A timer that is early finds out when it fires; setting it anew at each frame costs more.
        if timer.isScheduled, deadlineTimerDue <= deadline { return }
        deadlineTimerDue = deadline
        timer.schedule(after: deadline - loop.now) {
            self.perform(self.machine.deadlineReached(now: self.loop.now))
            if case .setControl(let control) = self.lines.deadlineReached(now: self.loop.now) {
                self.setControl(control)
            }
            self.watchDeadline()
        }
    }

    private func setControl(_ control: SerialControl) {
        guard let link else { return }
        environment.log(
            .info, "no answer: DTR and RTS are tried the other way",
            [("port", link.path), ("dtr", "\(control.dtr)"), ("rts", "\(control.rts)")])
        lineSetting = Task(executorPreference: loop.taskExecutor) { await self.apply(control) }
    }

    private func apply(_ control: SerialControl) async {
        // A port that does not take it is about to end.
        try? await link?.port.setControl(control)
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
        let context = MeshError.Context(operation: "send", peer: settings.choice.description)
        guard let link else {
            throw MeshError(.notConnected, "\(settings.choice) is not open; connect first", context: context)
        }
        do throws(CompanionStream.SendFailure) {
            try await frames.send(data, context)
        } catch {
            switch error {
            case .refused(let refusal): throw refusal
            case .lost(let loss):
                // Also when the reader has not noticed the end yet.
                happened(.ended(loss), link.generation)
                throw lastError?.adding(operation: "send")
                    ?? MeshError(
                        .linkClosed, "\(link.path) was closed before the frame was sent", cause: loss,
                        context: context)
            }
        }
    }

    public nonisolated func sendAtOnce(_ frame: Data) -> Bool {
        assumeIsolated { $0.frames.sendAtOnce(frame) }
    }

    // MARK: Facts

    public var isConnected: Bool { link != nil }

    /// A serial line keeps order and nothing coalesces, as with TCP.
    public var supportsPipelinedReads: Bool { true }

    public func diagnostics() -> JSONValue {
        let counters = frames.counters
        var object: [String: JSONValue] = [
            "port": .string(settings.choice.description), "connected": .bool(isConnected),
            "board": .string(board.name), "connections": .int(connections),
            "unanswered_links": .int(Int64(lines.unansweredLinks)),
            "frames_received": .int(counters.framesReceived), "frames_sent": .int(counters.framesSent),
            "bytes_received": .int(counters.bytesReceived), "bytes_sent": .int(counters.bytesSent),
            "bytes_skipped": .int(counters.bytesSkipped), "bad_frames": .int(counters.badFrames),
            "reading_paused": .int(counters.readingPaused), "frames_queued": .int(Int64(frames.inbox?.count ?? 0)),
        ]
        if let control = lines.control {
            object["dtr"] = .bool(control.dtr)
            object["rts"] = .bool(control.rts)
        }
        if let link {
            object["path"] = .string(link.path)
            object["up_seconds"] = .int((loop.now - link.since).components.seconds)
        }
        if let lastError { object["last_error"] = .string(lastError.code.slug) }
        return .object(object)
    }

    private nonisolated func report(_ event: LinkEvent) {
        environment.linkEvents(event)
    }
}
