// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshLoop
public import MeshTransportAPI
internal import MeshWire

/// A link to a companion radio over TCP, in the framing of ``CompanionFrameDecoder``.
///
/// The driver of ``TCPLinkStateMachine``: it owns the socket and carries out what the machine decides. While connected it
/// must not be dropped without ``disconnect()``.
public actor TCPTransport: DirectTransport, TransportDiagnosing {
    /// One connection that is up.
    final class Link {
        let generation: UInt64
        let stream: LoopStream
        let inbox = FrameQueue()
        let peer: String
        let since: Duration
        var isPaused = false

        init(generation: UInt64, stream: LoopStream, peer: String, since: Duration) {
            self.generation = generation
            self.stream = stream
            self.peer = peer
            self.since = since
        }
    }

    /// Totals over the transport's life.
    private struct Counters {
        var connections: Int64 = 0
        var framesReceived: Int64 = 0
        var framesSent: Int64 = 0
        var bytesReceived: Int64 = 0
        var bytesSent: Int64 = 0
        var readingPaused: Int64 = 0
    }

    /// How much is read ahead of the consumer: enough for the burst of a contacts dump (350 rows of 148 bytes), little
    /// enough to be forgotten. One read goes over it by at most what fits in the loop's read buffer.
    private static let inboxFrames = 1_024
    private static let inboxBytes = 262_144
    /// How many frames may be under way to the kernel; a caller waits for each, so only a runaway one gets there.
    private static let sendLimit = 1_024

    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let settings: TCPSettings
    private nonisolated let environment: TransportEnvironment
    private let encoder: CompanionFrameEncoder
    private var decoder: CompanionFrameDecoder
    private var machine: TCPLinkStateMachine
    private var link: Link?
    private var attempt: Task<Result<Void, MeshError>, Never>?
    /// Connections being made by the attempt, by their number in it.
    var candidates: [Int: LoopStream] = [:]
    private var partialFrameTimer: LoopTimer?
    private var writeTimer: LoopTimer?
    private var outgoing: [UInt8] = []
    private var sendsUnderWay = 0
    private var counters = Counters()
    private var skippedReported: UInt64 = 0
    private var lastError: MeshError?

    public init(loop: EventLoop, settings: TCPSettings, environment: TransportEnvironment) {
        self.loop = loop
        self.settings = settings
        self.environment = environment
        encoder = CompanionFrameEncoder(marker: .fromClient, ceiling: settings.maximumFrame)
        var configuration = CompanionFrameDecoder.Configuration(
            marker: .fromRadio, ceiling: settings.maximumFrame, partialFrameTimeout: settings.partialFrameTimeout)
        if settings.checksLayout {
            configuration.isPlausible = { CompanionLayout.isPlausible($0) }
        }
        decoder = CompanionFrameDecoder(configuration)
        machine = TCPLinkStateMachine(.init(writeTimeout: settings.writeTimeout))
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
            case .closeConnection:
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
        let link = Link(generation: generation, stream: stream, peer: peer, since: loop.now)
        self.link = link
        counters.connections += 1
        stream.startReading({ self.received($0) }, onEnd: { self.ended(generation, $0) })
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

    private func ended(_ generation: UInt64, _ error: LoopError?) {
        perform(machine.linkEnded(generation: generation, byPeer: error?.isByPeer ?? true, now: loop.now), error)
    }

    private func perform(_ action: TCPLinkStateMachine.LossAction, _ error: LoopError? = nil) {
        switch action {
        case .nothing: break
        case .closeLink(let loss):
            guard let link else { return }
            let age = Duration.milliseconds((loop.now - link.since) / .milliseconds(1))
            closeLink(reason: MeshError(loss, of: link.peer, upFor: age, error))
        }
    }

    /// Closes the socket, says so, then ends the stream of frames: at once when this side asked for it, else behind the
    /// frames that came before the loss.
    private func closeLink(reason: MeshError?) {
        guard let link else { return }
        self.link = nil
        // A reset drops frames in the kernel that a stalled peer would otherwise get much later.
        if reason?.code == .operationTimeout { link.stream.closeWithReset() } else { link.stream.close() }
        partialFrameTimer = nil
        writeTimer = nil
        decoder.streamEnded()
        reportSkippedBytes()
        lastError = reason
        report(.down(reason: reason))
        link.inbox.finish(discarding: reason == nil)
        report(.phase(.idle))
    }

    // MARK: Receiving

    public var receivedData: AsyncStream<Data> {
        guard let inbox = link?.inbox else { return AsyncStream { $0.finish() } }
        return AsyncStream(unfolding: { await self.nextFrame(from: inbox) })
    }

    private func nextFrame(from inbox: FrameQueue) async -> Data? {
        let frame = await inbox.next(isolation: self) { [loop] in loop.perform($0) }
        readOn()
        return frame
    }

    /// Reads the socket again once half of the limits is free, so that reading is not switched at each frame.
    private func readOn() {
        guard let link, link.isPaused, link.inbox.count <= Self.inboxFrames / 2,
            link.inbox.byteCount <= Self.inboxBytes / 2
        else { return }
        resumeReading(link)
    }

    public func deliverFrames(to handler: @escaping @Sendable (Data) -> Bool) {
        link?.inbox.deliver(to: handler)
        readOn()
    }

    public func resumeDelivery() {
        link?.inbox.resumeDelivery()
        readOn()
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        guard let link else { return }
        let inbox = link.inbox
        let before = decoder.counters
        decoder.bytesReceived(bytes.bytes, now: loop.now) { frame in
            inbox.put(frame.withUnsafeBytes { Data($0) })
        }
        counters.bytesReceived += Int64(bytes.count)
        counters.framesReceived += Int64(decoder.counters.frames - before.frames)
        if decoder.counters.skippedBytes != before.skippedBytes { reportSkippedBytes() }
        if inbox.count >= Self.inboxFrames || inbox.byteCount >= Self.inboxBytes, !link.isPaused {
            link.isPaused = true
            counters.readingPaused += 1
            link.stream.pauseReading()
        }
        watchPartialFrame(link)
    }

    private func resumeReading(_ link: Link) {
        link.isPaused = false
        link.stream.resumeReading()
        decoder.readingResumed(now: loop.now)
        watchPartialFrame(link)
    }

    /// Keeps the timer running exactly while a partial frame waits for bytes that are being read.
    private func watchPartialFrame(_ link: Link) {
        guard !link.isPaused, let deadline = decoder.nextDeadline else {
            partialFrameTimer?.cancel()
            return
        }
        let timer = partialFrameTimer ?? LoopTimer(loop)
        partialFrameTimer = timer
        // A timer set for an earlier partial frame finds out when it fires; setting it anew at each read costs more.
        if timer.isScheduled { return }
        timer.schedule(after: deadline - loop.now) { self.partialFrameDeadline() }
    }

    private func partialFrameDeadline() {
        guard let link else { return }
        let inbox = link.inbox
        let before = decoder.counters.frames
        decoder.deadlineReached(now: loop.now) { frame in
            inbox.put(frame.withUnsafeBytes { Data($0) })
        }
        counters.framesReceived += Int64(decoder.counters.frames - before)
        reportSkippedBytes()
        watchPartialFrame(link)
    }

    private func reportSkippedBytes() {
        let count = Int(decoder.counters.skippedBytes - skippedReported)
        guard count > 0 else { return }
        skippedReported = decoder.counters.skippedBytes
        report(.bytesSkipped(count: count))
    }

    // MARK: Sending

    public func send(_ data: Data) async throws {
        guard let link else { throw notConnected() }
        guard sendsUnderWay < Self.sendLimit else {
            throw MeshError(.queueFull, "\(sendsUnderWay) frames wait to be sent to \(link.peer)", context: sending)
        }
        outgoing.removeAll(keepingCapacity: true)
        do throws(CompanionFrameEncoder.Failure) {
            try encoder.encode(data.bytes, into: &outgoing)
        } catch {
            throw MeshError(error, context: sending)
        }
        do throws(LoopError) {
            // Nearly always the kernel takes the frame at once, and nothing has to wait.
            let sent = try outgoing.span.bytes.withUnsafeBytes { (bytes) throws(LoopError) in
                try link.stream.writeAtOnce(bytes)
            }
            if sent < outgoing.count {
                // The rest is with the stream before anything is awaited, so that no other frame comes in between.
                let outcome = LoopResult<LoopError?>()
                write(outgoing[sent...], to: link) { outcome.set($0) }
                if let error = await outcome.get() { throw error }
            }
        } catch {
            // Also when the reader has not noticed the end yet.
            ended(link.generation, error)
            throw lastError.map { $0.adding(operation: "send") } ?? linkClosed(cause: error)
        }
        counters.framesSent += 1
        counters.bytesSent += Int64(data.count + CompanionFraming.headerLength)
    }

    /// Writes the rest of a frame; `completion` is called when the kernel has it, within the write deadline.
    private func write(_ rest: ArraySlice<UInt8>, to link: Link, completion: @escaping (LoopError?) -> Void) {
        sendsUnderWay += 1
        machine.writeStarted(now: loop.now)
        rest.withUnsafeBytes { bytes in
            link.stream.write(bytes) { error in
                self.sendsUnderWay -= 1
                self.machine.writeFinished(generation: link.generation, now: self.loop.now)
                completion(error)
            }
        }
        watchWrites()
    }

    public nonisolated func sendAtOnce(_ frame: Data) -> Bool {
        assumeIsolated { $0.sendNow(frame) }
    }

    private func sendNow(_ frame: Data) -> Bool {
        guard let link, link.stream.pendingWriteBytes == 0 else { return false }
        outgoing.removeAll(keepingCapacity: true)
        guard (try? encoder.encode(frame.bytes, into: &outgoing)) != nil else { return false }
        do throws(LoopError) {
            let sent = try outgoing.span.bytes.withUnsafeBytes { (bytes) throws(LoopError) in
                try link.stream.writeAtOnce(bytes)
            }
            guard sent > 0 else { return false }
            if sent < outgoing.count {
                write(outgoing[sent...], to: link) { error in
                    if let error { self.ended(link.generation, error) }
                }
            }
        } catch {
            // The frame is lost with the link, which is told of as any other loss.
            ended(link.generation, error)
        }
        counters.framesSent += 1
        counters.bytesSent += Int64(frame.count + CompanionFraming.headerLength)
        return true
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
        var object: [String: JSONValue] = [
            "peer": .string(settings.endpoint.description), "connected": .bool(isConnected),
            "connections": .int(counters.connections), "frames_received": .int(counters.framesReceived),
            "frames_sent": .int(counters.framesSent), "bytes_received": .int(counters.bytesReceived),
            "bytes_sent": .int(counters.bytesSent), "bytes_skipped": .int(Int64(decoder.counters.skippedBytes)),
            "bad_frames": .int(Int64(decoder.counters.badFrames)), "reading_paused": .int(counters.readingPaused),
            "frames_queued": .int(Int64(link?.inbox.count ?? 0)),
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
