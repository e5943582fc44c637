// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshLoop
public import MeshTransportAPI

/// A link to a device behind a Unix socket.
///
///     idle ── connect ──▶ connecting ── open ──▶ connected ── the device is gone, disconnect ──▶ idle
///                             └─ fails, disconnect ──▶ idle
///
/// The actor runs on the host's loop, so calls between the two are plain calls, and nothing here needs a lock.
public actor AcmeTransport: MeshTransport {
    private final class Link {
        let stream: LoopStream
        let inbox = FrameQueue()
        var framing = AcmeFraming()
        var isPaused = false

        init(_ stream: LoopStream) {
            self.stream = stream
        }
    }

    /// Frames that are read ahead of whoever takes them. Then the socket is not read, and the device is held back.
    private static let inboxFrames = 256
    /// Bytes under way to the device.
    private static let sendLimit = 65_536

    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private nonisolated let path: String
    private nonisolated let environment: TransportEnvironment
    private var attempt: Task<Void, any Error>?
    private var link: Link?

    public init(loop: EventLoop, path: String, environment: TransportEnvironment) {
        self.loop = loop
        self.path = path
        self.environment = environment
    }

    // MARK: Connecting

    public func connect() async throws {
        guard attempt == nil, link == nil else {
            throw MeshError(.invalidArgument, "\(path) is open already, or is being opened")
        }
        // A task of its own, so that `disconnect` can cancel it, too; it ends before this function does.
        let attempt = Task(executorPreference: loop.taskExecutor) { try await self.open() }
        self.attempt = attempt
        try await withTaskCancellationHandler {
            try await attempt.value
        } onCancel: {
            attempt.cancel()
        }
    }

    private func open() async throws {
        defer { attempt = nil }
        environment.linkEvents(.phase(.connecting))
        let stream = LoopStream(unix: loop)
        do {
            // YOURS: how the device is reached.
            do throws(LoopError) {
                try await stream.connect(to: SocketAddress(unixPath: path))
            } catch {
                throw Task.isCancelled ? cancelled() : MeshError(opening: path, error)
            }
            if Task.isCancelled { throw cancelled() }
        } catch {
            stream.close()
            environment.linkEvents(.phase(.idle))
            throw error
        }
        up(stream)
    }

    private func cancelled() -> MeshError {
        MeshError(.cancelled, "opening \(path) was cancelled")
    }

    private func up(_ stream: LoopStream) {
        let link = Link(stream)
        self.link = link
        stream.startReading({ self.received($0, link) }, onEnd: { self.lost(link, $0) })
        environment.linkEvents(.phase(.connected))
        environment.linkEvents(.up(LinkInfo(maximumFrameLength: AcmeFraming.maximumFrame, peer: path)))
    }

    // MARK: The end

    public func disconnect() async {
        if let attempt {
            attempt.cancel()
            _ = await attempt.result
        }
        if let link { close(link, reason: nil) }
    }

    private func lost(_ link: Link, _ error: LoopError?) {
        let said = error.map { " (\($0.detail))" } ?? ""
        close(link, reason: MeshError(.linkClosedByPeer, "\(path) was closed\(said); is the device's program running?"))
    }

    /// The loss is told first, then the stream of frames ends: at once when this side asked for it, else behind the frames
    /// that came before.
    private func close(_ link: Link, reason: MeshError?) {
        guard self.link === link else { return }
        self.link = nil
        link.stream.close()
        environment.linkEvents(.down(reason: reason))
        link.inbox.finish(discarding: reason == nil)
        environment.linkEvents(.phase(.idle))
    }

    // MARK: Frames

    public var isConnected: Bool { link != nil }

    public var receivedData: AsyncStream<Data> {
        guard let inbox = link?.inbox else { return AsyncStream { $0.finish() } }
        return AsyncStream(unfolding: { await self.nextFrame(from: inbox) })
    }

    private func nextFrame(from inbox: FrameQueue) async -> Data? {
        let frame = await inbox.next(isolation: self) { [loop] in loop.perform($0) }
        if let link, link.isPaused, link.inbox.count <= Self.inboxFrames / 2 {
            link.isPaused = false
            link.stream.resumeReading()
        }
        return frame
    }

    private func received(_ bytes: UnsafeRawBufferPointer, _ link: Link) {
        do throws(AcmeFraming.Nonsense) {
            try link.framing.bytesReceived(bytes) { link.inbox.put(Data($0)) }
        } catch {
            return close(link, reason: MeshError(.linkClosed, "\(path) sent a frame of no possible length"))
        }
        if link.inbox.count >= Self.inboxFrames, !link.isPaused {
            link.isPaused = true
            link.stream.pauseReading()
        }
    }

    public func send(_ data: Data) async throws {
        guard let link else { throw MeshError(.notConnected, "\(path) is not open; connect first") }
        guard !data.isEmpty else { throw MeshError(.invalidArgument, "a frame has at least one byte") }
        guard data.count <= AcmeFraming.maximumFrame else {
            throw MeshError(.frameTooLong, "a frame of \(data.count) bytes is longer than \(AcmeFraming.maximumFrame)")
        }
        guard link.stream.pendingWriteBytes < Self.sendLimit else {
            throw MeshError(.queueFull, "\(path) does not take what it is sent")
        }
        do throws(LoopError) {
            try await link.stream.write(AcmeFraming.encode(data))
        } catch {
            // A socket that is not read just now does not tell of its end.
            lost(link, error)
            throw MeshError(.linkClosed, "\(path) took no frame: \(error.detail)")
        }
    }
}

extension MeshError {
    /// YOURS: the one place where what the operating system says becomes what people read. The host waits for a person after
    /// a permanent error, and tries again after the others.
    fileprivate init(opening path: String, _ error: LoopError) {
        switch error.kind {
        case .permissionDenied: self.init(.permissionDenied, "\(path) may not be opened; look at its mode and owner")
        default: self.init(.connectionFailed, "\(path): \(error.detail); is the device's program running?")
        }
    }
}
