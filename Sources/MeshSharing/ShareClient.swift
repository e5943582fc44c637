// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshLoop
internal import MeshWire

/// One client on a share: its connection, its framing and its bounded queue. Belongs to the ``RadioSession`` that serves
/// it and is used on the loop only.
final class ShareClient {
    /// Bytes gathered for one client before they are written within a turn.
    private static let writeThreshold = 32_768

    let id: UInt64
    let share: Int
    let role: ClientRole
    let peer: String
    private let stream: LoopStream
    private let stuckTimeout: Duration
    private let stuckTimer: LoopTimer
    private let partialTimer: LoopTimer
    private var decoder = CompanionFrameDecoder(.init(marker: .fromClient))
    private var queue: OutgoingQueue
    private(set) var framesIn: UInt64 = 0
    private(set) var framesOut: UInt64 = 0
    /// Set while the session has it on its list of clients to flush.
    var isDirty = false
    /// Called once when the connection has to end; the session removes the client then.
    private var onLeave: ((LeaveReason) -> Void)?
    private var onFrame: ((Data) -> Void)?

    init(id: UInt64, share: Int, settings: ShareSettings, stream: LoopStream, loop: MeshLoop) {
        self.id = id
        self.share = share
        self.role = settings.role
        self.stream = stream
        stuckTimeout = settings.stuckTimeout
        queue = OutgoingQueue(frameLimit: settings.queueFrames, byteLimit: settings.queueBytes)
        stuckTimer = LoopTimer(loop)
        partialTimer = LoopTimer(loop)
        if let credentials = stream.peerCredentials {
            peer = "pid \(credentials.pid) uid \(credentials.uid)"
        } else {
            peer = stream.peerAddress?.description ?? "unknown"
        }
    }

    /// Starts reading. `onFrame` gets whole frames in order.
    func start(
        now: @escaping () -> Duration, onFrame: @escaping (Data) -> Void, onLeave: @escaping (LeaveReason) -> Void
    ) {
        self.onFrame = onFrame
        self.onLeave = onLeave
        stream.setNoDelay()
        // A half-open client is found within 90 s: 45 s of silence, then three probes 15 s apart. A client that is there
        // and does not read is a matter of `stuckTimeout`; the kernel's limit, which counts it too, must not be shorter.
        stream.setKeepAlive(
            idle: .seconds(45), interval: .seconds(15), count: 3, unacknowledged: max(.seconds(90), stuckTimeout * 2))
        stream.onDrained = { [unowned self] in drained() }
        stream.startReading { [unowned self] bytes in
            received(bytes, now: now)
        } onEnd: { [unowned self] error in
            leave(error == nil ? .closed : .failed)
        }
    }

    /// Ends the connection. No callback follows.
    func close() {
        onLeave = nil
        onFrame = nil
        stuckTimer.cancel()
        partialTimer.cancel()
        stream.close()
    }

    /// Lets the kernel take what is ready, then closes: a last answer on its way out.
    func closeAfterFlush() {
        flush()
        close()
    }

    /// Stops reading further commands until ``resume()``: the client has as many waiting as it may have.
    func pause() { stream.pauseReading() }

    /// Reads on.
    func resume() { stream.resumeReading() }

    // MARK: To the client

    /// Queues one frame in its framing. The session flushes at the end of the turn.
    func offer(_ framed: [UInt8], _ kind: OutgoingQueue.Kind) {
        let isBlocked = stream.pendingWriteBytes > 0
        switch queue.offer(framed, kind, isBlocked: isBlocked) {
        case .accepted:
            framesOut += 1
            if queue.ready.count >= Self.writeThreshold { flush() }
        case .dropped:
            break
        case .overflow:
            leave(.overflow)
        }
    }

    /// Writes what is ready.
    func flush() {
        guard !queue.ready.isEmpty, stream.pendingWriteBytes == 0 else { return }
        queue.takeReady { stream.write($0) }
        if stream.pendingWriteBytes > 0, !stuckTimer.isScheduled {
            stuckTimer.schedule(after: stuckTimeout) { [unowned self] in leave(.stuck) }
        }
    }

    private func drained() {
        stuckTimer.cancel()
        queue.drained()
        flush()
    }

    private func leave(_ reason: LeaveReason) {
        let onLeave = onLeave
        close()
        onLeave?(reason)
    }

    // MARK: From the client

    private func received(_ bytes: UnsafeRawBufferPointer, now: @escaping () -> Duration) {
        decoder.bytesReceived(RawSpan(_unsafeBytes: bytes), now: now()) { deliver($0) }
        armPartialTimer(now)
    }

    private func deliver(_ payload: RawSpan) {
        framesIn += 1
        onFrame?(payload.withUnsafeBytes { Data($0) })
    }

    private func armPartialTimer(_ now: @escaping () -> Duration) {
        guard onFrame != nil, let deadline = decoder.nextDeadline else { return partialTimer.cancel() }
        partialTimer.schedule(after: deadline - now()) { [unowned self] in
            decoder.deadlineReached(now: now()) { deliver($0) }
            armPartialTimer(now)
        }
    }

    // MARK: Facts

    /// Frames and bytes that wait for the client.
    var backlog: (frames: Int, bytes: Int) {
        (queue.readyFrames + queue.waitingFrames, queue.ready.count + queue.waitingBytes + stream.pendingWriteBytes)
    }

    var dropped: UInt64 { queue.dropped }
}
