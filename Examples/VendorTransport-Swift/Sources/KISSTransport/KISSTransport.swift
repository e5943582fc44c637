// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshLoop
public import MeshTransportAPI

/// A link to a device that speaks KISS on a serial port.
///
///     idle ── connect ──▶ connecting ── open ──▶ connected ── unplugged, disconnect ──▶ idle
///                             └─ fails, disconnect ──▶ idle
///
/// The actor runs on the host's loop, so calls between the two are plain calls, and nothing here needs a lock.
public actor KISSTransport: MeshTransport, TransportDiagnosing {
    private final class Link {
        let stream: LoopStream
        let inbox = FrameQueue()
        var decoder: KISSDecoder
        var isPaused = false

        init(_ stream: LoopStream) {
            self.stream = stream
            decoder = KISSDecoder(limit: KISSTransport.maximumFrame)
        }
    }

    /// The most that a frame may have, in bytes: what the host takes.
    static let maximumFrame = 4_096
    /// Frames that are read ahead of whoever takes them. Then the port is not read, and its driver holds the device back.
    private static let inboxFrames = 256
    /// Bytes under way to the device: a second of 115,200 baud is 11,520.
    private static let sendLimit = 65_536

    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private nonisolated let line: SerialLine
    private nonisolated let environment: TransportEnvironment
    private var attempt: Task<Void, any Error>?
    private var link: Link?
    private var bytesReceived: Int64 = 0
    private var framesReceived: Int64 = 0
    private var framesSent: Int64 = 0

    public init(loop: EventLoop, line: SerialLine, environment: TransportEnvironment) {
        self.loop = loop
        self.line = line
        self.environment = environment
    }

    // MARK: Connecting

    public func connect() async throws {
        guard attempt == nil, link == nil else {
            throw MeshError(.invalidArgument, "\(line.path) is open already, or is being opened")
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
        do {
            let stream: LoopStream
            do throws(LoopError) {
                stream = try await LoopStream.open(line, on: loop)
            } catch {
                throw Task.isCancelled ? cancelled() : MeshError(opening: line.path, error)
            }
            // What is opened cannot be interrupted, but need not be kept.
            if Task.isCancelled {
                stream.close()
                throw cancelled()
            }
            up(stream)
        } catch {
            environment.linkEvents(.phase(.idle))
            throw error
        }
    }

    private func cancelled() -> MeshError {
        MeshError(.cancelled, "opening \(line.path) was cancelled")
    }

    private func up(_ stream: LoopStream) {
        let link = Link(stream)
        self.link = link
        stream.startReading({ self.received($0, link) }, onEnd: { self.lost(link, $0) })
        environment.linkEvents(.phase(.connected))
        environment.linkEvents(.up(LinkInfo(maximumFrameLength: Self.maximumFrame, peer: line.path)))
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
        close(
            link,
            reason: MeshError(.linkClosed, "\(line.path) is gone\(said); is the device plugged in?"))
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
        let skipped = link.decoder.skippedBytes
        bytesReceived += Int64(bytes.count)
        link.decoder.bytesReceived(bytes) {
            framesReceived += 1
            link.inbox.put(Data($0))
        }
        if link.decoder.skippedBytes > skipped {
            environment.linkEvents(.bytesSkipped(count: link.decoder.skippedBytes - skipped))
        }
        if link.inbox.count >= Self.inboxFrames, !link.isPaused {
            link.isPaused = true
            link.stream.pauseReading()
        }
    }

    public func send(_ data: Data) async throws {
        guard let link else { throw MeshError(.notConnected, "\(line.path) is not open; connect first") }
        guard !data.isEmpty else { throw MeshError(.invalidArgument, "a frame has at least one byte") }
        guard data.count <= Self.maximumFrame else {
            throw MeshError(.frameTooLong, "a frame of \(data.count) bytes is longer than \(Self.maximumFrame)")
        }
        guard link.stream.pendingWriteBytes < Self.sendLimit else {
            throw MeshError(.queueFull, "\(line.path) does not take what it is sent; is its flow control right?")
        }
        do throws(LoopError) {
            try await link.stream.write(KISS.encode(data))
            framesSent += 1
        } catch {
            // A port that is not read just now does not tell of its end.
            lost(link, error)
            throw MeshError(.linkClosed, "\(line.path) took no frame: \(error.detail)")
        }
    }

    // MARK: Facts

    /// For `meshhost device NAME --json`; nothing that was sent, nothing secret.
    public func diagnostics() -> JSONValue {
        [
            "path": .string(line.path), "connected": .bool(isConnected), "bytes_received": .int(bytesReceived),
            "frames_received": .int(framesReceived), "frames_sent": .int(framesSent),
            "bytes_skipped": .int(Int64(link?.decoder.skippedBytes ?? 0)),
        ]
    }
}

extension MeshError {
    /// The one place where what the operating system says becomes what people read.
    fileprivate init(opening path: String, _ error: LoopError) {
        switch error.kind {
        case .notFound, .deviceGone:
            self.init(
                .connectionFailed, "there is no \(path); is the device plugged in? `ls /dev/serial/by-id` shows what is"
            )
        // The host waits for a person after these two, and tries again after the others.
        case .invalidArgument:
            self.init(.configurationInvalid, "\(path) cannot be used: \(error.detail)")
        case .permissionDenied:
            self.init(.permissionDenied, "\(path) may not be opened; add the user to the group dialout")
        default: self.init(.connectionFailed, "\(path) cannot be opened: \(error.detail)")
        }
    }
}
