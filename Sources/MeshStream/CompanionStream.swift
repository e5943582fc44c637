// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshLoop
public import MeshTransportAPI
internal import MeshWire

/// A byte stream as companion frames: what a transport over a stream is, but for making and ending the connection.
///
/// It belongs to one actor on the loop and is used on its thread only. From ``begin(_:_:)`` to ``end(discarding:reset:beforeEnd:)`` it
/// holds the actor by the closure it was given; between connections it keeps its counters and nothing else.
public final class CompanionStream {
    public struct Configuration: Sendable, Hashable {
        /// The largest payload of a frame, in bytes, both ways.
        public var maximumFrame: Int
        public var partialFrameTimeout: Duration
        /// Whether frames that fit no layout of companion radios are searched for others.
        public var checksLayout: Bool

        public init(maximumFrame: Int, partialFrameTimeout: Duration, checksLayout: Bool) {
            self.maximumFrame = maximumFrame
            self.partialFrameTimeout = partialFrameTimeout
            self.checksLayout = checksLayout
        }
    }

    /// What the owner's machine has to know of a connection.
    public enum Happening {
        /// At least one whole frame came.
        case framesReceived
        /// Bytes that belong to no frame came, so many since the last time.
        case bytesSkipped(Int)
        /// A frame went to the kernel, at least in part.
        case frameSent
        /// The kernel has not taken all of a frame; the rest waits.
        case writeBegan
        /// A rest that waited is with the kernel, or lost with the connection.
        case writeEnded
        /// The connection's end, as ``LoopStream`` tells it. Not for ``CompanionStream/end(discarding:reset:beforeEnd:)``.
        case ended(LoopError?)
    }

    /// Totals over all connections.
    public struct Counters: Sendable {
        public var framesReceived: Int64 = 0
        public var framesSent: Int64 = 0
        public var bytesReceived: Int64 = 0
        public var bytesSent: Int64 = 0
        public var bytesSkipped: Int64 = 0
        public var badFrames: Int64 = 0
        public var readingPaused: Int64 = 0
    }

    /// One connection.
    final class Connection {
        let stream: LoopStream
        let inbox = FrameQueue()
        let tell: (Happening) -> Void
        var isPaused = false

        init(_ stream: LoopStream, _ tell: @escaping (Happening) -> Void) {
            self.stream = stream
            self.tell = tell
        }
    }

    /// How much is read ahead of the consumer: enough for the burst of a contacts dump (350 rows of 148 bytes), little
    /// enough to be forgotten. One read goes over it by at most what fits in the loop's read buffer.
    private static let inboxFrames = 1_024
    private static let inboxBytes = 262_144

    public let loop: EventLoop
    public internal(set) var counters = Counters()
    let encoder: CompanionFrameEncoder
    private var decoder: CompanionFrameDecoder
    var connection: Connection?
    private var partialFrameTimer: LoopTimer?
    private var skippedReported: UInt64 = 0
    /// Memory for the frames of one read.
    private var arrived: [Data] = []
    var outgoing: [UInt8] = []
    var sendsUnderWay = 0

    public init(loop: EventLoop, _ configuration: Configuration) {
        self.loop = loop
        encoder = CompanionFrameEncoder(marker: .fromClient, ceiling: configuration.maximumFrame)
        var decoding = CompanionFrameDecoder.Configuration(
            marker: .fromRadio, ceiling: configuration.maximumFrame,
            partialFrameTimeout: configuration.partialFrameTimeout)
        if configuration.checksLayout {
            decoding.isPlausible = { CompanionLayout.isPlausible($0) }
        }
        decoder = CompanionFrameDecoder(decoding)
    }

    // MARK: Connections

    /// Whether there is one.
    public var isOpen: Bool { connection != nil }

    /// The frames of the present connection.
    public var inbox: FrameQueue? { connection?.inbox }

    /// Takes over a stream that is connected, and reads it.
    public func begin(_ stream: LoopStream, _ tell: @escaping (Happening) -> Void) {
        connection = Connection(stream, tell)
        stream.startReading({ self.received($0) }, onEnd: { tell(.ended($0)) })
    }

    /// Closes the connection. The consumer still gets the frames that came before, unless they are discarded. `beforeEnd`
    /// runs when the connection is closed and the consumer does not know yet.
    public func end(discarding: Bool, reset: Bool, beforeEnd: () -> Void) {
        guard let connection else { return }
        self.connection = nil
        // A reset drops frames in the kernel that a stalled peer would otherwise get much later.
        if reset { connection.stream.closeWithReset() } else { connection.stream.close() }
        partialFrameTimer = nil
        decoder.streamEnded()
        noteSkippedBytes(connection)
        beforeEnd()
        connection.inbox.finish(discarding: discarding)
    }

    // MARK: The consumer's side

    /// Reads on once half of the limits is free, so that reading is not switched at each frame. Called when frames have been
    /// taken.
    public func readOn() {
        guard let connection, connection.isPaused, connection.inbox.count <= Self.inboxFrames / 2,
            connection.inbox.byteCount <= Self.inboxBytes / 2
        else { return }
        connection.isPaused = false
        connection.stream.resumeReading()
        decoder.readingResumed(now: loop.now)
        watchPartialFrame(connection)
    }

    /// Hands the frames of the present connection over by plain calls (``DirectTransport``).
    public func deliver(to handler: @escaping (Data) -> Bool) {
        connection?.inbox.deliver(to: handler)
        readOn()
    }

    /// Goes on after a frame that was not taken.
    public func resumeDelivery() {
        connection?.inbox.resumeDelivery()
        readOn()
    }

    // MARK: Receiving

    private func received(_ bytes: UnsafeRawBufferPointer) {
        guard let connection else { return }
        counters.bytesReceived += Int64(bytes.count)
        decode(connection) { decoder, take in decoder.bytesReceived(bytes.bytes, now: loop.now, onFrame: take) }
        // What a frame has led to may have ended the connection.
        guard self.connection === connection else { return }
        let inbox = connection.inbox
        if inbox.count >= Self.inboxFrames || inbox.byteCount >= Self.inboxBytes, !connection.isPaused {
            connection.isPaused = true
            counters.readingPaused += 1
            connection.stream.pauseReading()
        }
        watchPartialFrame(connection)
    }

    private func partialFrameDeadline() {
        guard let connection else { return }
        decode(connection) { decoder, take in decoder.deadlineReached(now: loop.now, onFrame: take) }
        if self.connection === connection { watchPartialFrame(connection) }
    }

    private func decode(
        _ connection: Connection, _ step: (inout CompanionFrameDecoder, (RawSpan) -> Void) -> Void
    ) {
        // Put into the inbox when the decoder is done: a consumer that is called at once may send, and by that find that the
        // connection has ended, which the decoder is told.
        var frames = arrived
        arrived = []
        step(&decoder) { frame in frames.append(frame.withUnsafeBytes { Data($0) }) }
        counters.framesReceived += Int64(frames.count)
        if !frames.isEmpty { connection.tell(.framesReceived) }
        for frame in frames { connection.inbox.put(frame) }
        frames.removeAll(keepingCapacity: true)
        arrived = frames
        noteSkippedBytes(connection)
    }

    private func noteSkippedBytes(_ connection: Connection) {
        let count = decoder.counters.skippedBytes - skippedReported
        counters.badFrames = Int64(decoder.counters.badFrames)
        guard count > 0 else { return }
        skippedReported = decoder.counters.skippedBytes
        counters.bytesSkipped += Int64(count)
        connection.tell(.bytesSkipped(Int(count)))
    }

    /// Keeps the timer running exactly while a partial frame waits for bytes that are being read.
    private func watchPartialFrame(_ connection: Connection) {
        guard !connection.isPaused, let deadline = decoder.nextDeadline else {
            partialFrameTimer?.cancel()
            return
        }
        let timer = partialFrameTimer ?? LoopTimer(loop)
        partialFrameTimer = timer
        // A timer set for an earlier partial frame finds out when it fires; setting it anew at each read costs more.
        if timer.isScheduled { return }
        timer.schedule(after: deadline - loop.now) { self.partialFrameDeadline() }
    }
}
