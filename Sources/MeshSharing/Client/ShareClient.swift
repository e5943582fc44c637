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
    /// Bytes that may be held unparsed before reading stops. The peer's end is noticed only while reading goes on.
    private static let restLimit = 65_536

    let id: UInt64
    let share: Int
    private(set) var role: ClientRole
    /// The token that it has proved to have, as it was then; nil on a share without tokens.
    private(set) var admission: ShareToken?
    /// The name of that token.
    var token: String? { admission?.name }
    let peer: String
    /// Whether it gets received-packet logs: asked for each of them.
    let receivesPacketLogs: Bool
    /// What is the same for a program each time it connects: its machine, or its user; nothing for one with a token, which
    /// may come from anywhere.
    var identityAddress: String { token == nil ? address : "" }
    private let address: String
    /// Where it comes from, for ``FailedProofs``.
    let origin: FailedProofs.Origin
    private let stream: ShareStream
    private let stuckTimeout: Duration
    private let stuckTimer: LoopTimer
    private let partialTimer: LoopTimer
    private var decoder = CompanionFrameDecoder(.init(marker: .fromClient))
    private var queue: OutgoingQueue
    /// Bytes that came while the session had no room for more commands; those before `parsed` are done with.
    private var rest: [UInt8] = []
    private var parsed = 0
    private var isParsing = false
    /// The client has closed its side: it wants no more than the answers to what it has sent.
    private(set) var isInputEnded = false
    /// The client closed the connection in good order after it had got everything that was written.
    private(set) var wasAcknowledged = false
    /// When the last frame came.
    private(set) var lastHeard = Duration.zero
    /// Its connection ended because what came was not TLS, or no good one.
    private(set) var hasFailedTLS = false
    private(set) var framesIn: UInt64 = 0
    private(set) var framesOut: UInt64 = 0
    /// Set while the session has it on its list of clients to flush.
    var isDirty = false
    private var callbacks: Callbacks?

    /// What the session is told, and asked.
    final class Callbacks {
        let now: () -> Duration
        /// How many more frames may be handed over now.
        let room: () -> Int
        /// Gets whole frames in order.
        let onFrame: (Data) -> Void
        /// Bytes came that belong to no frame. Nil: it does not matter.
        let onNoise: (() -> Void)?
        /// The client has closed its side, or everything for it has gone to the kernel since: see
        /// ``ShareClient/hasSaidAll``.
        let onInputEnd: () -> Void
        /// All that waited has gone to the kernel: there is room for more.
        let onDrained: () -> Void
        /// Called once when the connection has ended; the session removes the client then.
        let onLeave: (LeaveReason) -> Void

        init(
            now: @escaping () -> Duration, room: @escaping () -> Int, onFrame: @escaping (Data) -> Void,
            onNoise: (() -> Void)? = nil, onInputEnd: @escaping () -> Void, onDrained: @escaping () -> Void,
            onLeave: @escaping (LeaveReason) -> Void
        ) {
            self.now = now
            self.room = room
            self.onFrame = onFrame
            self.onNoise = onNoise
            self.onInputEnd = onInputEnd
            self.onDrained = onDrained
            self.onLeave = onLeave
        }
    }

    init(id: UInt64, share: Int, settings: ShareSettings, stream: ShareStream, loop: EventLoop) {
        self.id = id
        self.share = share
        self.role = settings.role
        self.stream = stream
        stuckTimeout = settings.stuckTimeout
        receivesPacketLogs = settings.receivedPacketLogs
        queue = OutgoingQueue(frameLimit: settings.queueFrames, byteLimit: settings.queueBytes)
        stuckTimer = LoopTimer(loop)
        partialTimer = LoopTimer(loop)
        if let credentials = stream.peerCredentials {
            peer = "pid \(credentials.pid) uid \(credentials.uid)"
            address = "uid \(credentials.uid)"
            origin = FailedProofs.Origin(network: address, isLocal: true)
        } else {
            let peerAddress = stream.peerAddress
            peer = peerAddress?.description ?? "unknown"
            address = peerAddress?.host ?? ""
            origin = FailedProofs.Origin(
                network: peerAddress?.network ?? "", isLocal: peerAddress?.isLoopback ?? false)
        }
    }

    /// Starts reading. `onOpen` runs when frames can be sent: with TLS after its handshake, else before this returns.
    func start(_ callbacks: Callbacks, onOpen: (() -> Void)? = nil) {
        self.callbacks = callbacks
        stream.setNoDelay()
        // A half-open client is found within 90 s: 45 s of silence, then three probes 15 s apart. A client that is there
        // and does not read is a matter of `stuckTimeout`; the kernel's limit, which counts it too, must not be shorter.
        stream.setKeepAlive(
            idle: .seconds(45), interval: .seconds(15), count: 3, unacknowledged: max(.seconds(90), stuckTimeout * 2))
        stream.onDrained = { [unowned self] in drained() }
        stream.startReading(onOpen: onOpen) { [unowned self] bytes in
            received(bytes)
        } onEnd: { [unowned self] failure in
            if case .tls? = failure { hasFailedTLS = true }
            failure == nil ? inputEnded() : leave(.failed)
        }
    }

    /// It has proved to have a token, or there is none to prove.
    func admit(_ token: ShareToken?) {
        admission = token
        if let token { role = token.role }
    }

    /// From the next frame on somebody else is told and asked.
    func become(_ callbacks: Callbacks) { self.callbacks = callbacks }

    /// Ends the connection. No callback follows.
    func close() {
        callbacks = nil
        stuckTimer.cancel()
        partialTimer.cancel()
        stream.close()
    }

    /// Lets the kernel take what is ready, then closes: a last answer on its way out.
    func closeAfterFlush() {
        flush()
        close()
    }

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
        // Nothing is read any more after the client has closed its side: only a write tells that it has gone for good.
        let onWritten: ((LoopError?) -> Void)? =
            isInputEnded ? { [weak self] error in if error != nil { self?.leave(.closed) } } : nil
        queue.takeReady { stream.write($0, completion: onWritten) }
        if stream.pendingWriteBytes > 0, !stuckTimer.isScheduled { watchProgress() }
    }

    /// Cuts the client when a whole `stuckTimeout` passes in which the kernel could pass nothing on.
    private func watchProgress() {
        let pending = stream.pendingWriteBytes
        stuckTimer.schedule(after: stuckTimeout) { [unowned self] in
            stream.pendingWriteBytes < pending ? watchProgress() : leave(.stuck)
        }
    }

    private func drained() {
        stuckTimer.cancel()
        queue.drained()
        callbacks?.onDrained()
        flush()
        if isInputEnded { callbacks?.onInputEnd() }
    }

    private func leave(_ reason: LeaveReason) {
        let callbacks = callbacks
        wasAcknowledged = reason == .closed && isFlushed && isAcknowledged == true && !stream.isReset
        close()
        callbacks?.onLeave(reason)
    }

    // MARK: From the client

    private func received(_ bytes: UnsafeRawBufferPointer) {
        var taken = 0
        if !hasRest { taken = parse(bytes) }
        if let onNoise = callbacks?.onNoise, decoder.counters.skippedBytes > 0 { onNoise() }
        if taken < bytes.count, callbacks != nil {
            rest.removeFirst(parsed)
            parsed = 0
            rest.append(contentsOf: bytes[taken...])
            if rest.count >= Self.restLimit { stream.pauseReading() }
        }
        armPartialTimer()
    }

    /// Hands over frames while the session has room for them; how many bytes that took.
    private func parse(_ bytes: UnsafeRawBufferPointer) -> Int {
        isParsing = true
        defer { isParsing = false }
        var taken = 0
        while taken < bytes.count, let callbacks {
            let room = callbacks.room()
            guard room > 0 else { break }
            // So many bytes hold no more frames: a frame has at least four, and the first one may end an earlier one.
            let end = min(bytes.count, taken + 4 * room - 3)
            let part = UnsafeRawBufferPointer(rebasing: bytes[taken..<end])
            decoder.bytesReceived(RawSpan(_unsafeBytes: part), now: callbacks.now()) { deliver($0) }
            taken = end
        }
        return taken
    }

    /// Hands over more of what was held back: the session has room again.
    func parseOn() {
        guard hasRest, !isParsing, let callbacks else { return }
        // The rest of a partial frame may have been here all the time.
        decoder.readingResumed(now: callbacks.now())
        let held = rest
        parsed += held.withUnsafeBytes { parse(UnsafeRawBufferPointer(rebasing: $0[parsed...])) }
        if !hasRest {
            rest = []
            parsed = 0
        }
        if rest.count - parsed < Self.restLimit { stream.resumeReading() }
        armPartialTimer()
    }

    private func deliver(_ payload: RawSpan) {
        framesIn += 1
        lastHeard = callbacks?.now() ?? lastHeard
        callbacks?.onFrame(payload.withUnsafeBytes { Data($0) })
    }

    private func armPartialTimer() {
        guard !hasRest, !isInputEnded, let callbacks, let deadline = decoder.nextDeadline else {
            return partialTimer.cancel()
        }
        partialTimer.schedule(after: deadline - callbacks.now()) { [unowned self] in
            isParsing = true
            decoder.deadlineReached(now: callbacks.now()) { deliver($0) }
            isParsing = false
            armPartialTimer()
        }
    }

    private func inputEnded() {
        isInputEnded = true
        partialTimer.cancel()
        callbacks?.onInputEnd()
    }

    /// The client has closed its side and has got everything.
    func finish() { leave(.closed) }

    // MARK: Facts

    /// No more commands than so many are in the bytes that wait for room.
    var unparsedCommands: Int { (rest.count - parsed + 3) / 4 }

    /// Ends the connection if it was reset, which reading would have told were it not paused.
    func noticeReset() {
        if hasRest, stream.isReset { leave(isInputEnded ? .closed : .failed) }
    }

    /// Whether bytes of the client wait for room.
    var hasRest: Bool { parsed < rest.count }

    /// Whether the client has closed its side and all it sent has been handed over.
    var hasSaidAll: Bool { isInputEnded && !hasRest }

    /// Whether the kernel has everything there is for the client.
    var isFlushed: Bool { queue.ready.isEmpty && queue.waitingFrames == 0 && stream.pendingWriteBytes == 0 }

    /// Whether the peer has closed or reset the connection, though that may not have been read yet.
    var isPeerGone: Bool { stream.isPeerGone }

    /// Whether the kernel takes no more at the moment.
    var isBlocked: Bool { stream.pendingWriteBytes > 0 }

    /// Whether all that was written has reached the peer's machine, or for a Unix socket the peer; nil after the end.
    var isAcknowledged: Bool? { stream.unacknowledgedBytes.map { $0 == 0 } }

    /// Frames and bytes that wait for the client.
    var backlog: (frames: Int, bytes: Int) {
        (queue.readyFrames + queue.waitingFrames, queue.ready.count + queue.waitingBytes + stream.pendingWriteBytes)
    }

    var dropped: UInt64 { queue.dropped }

    /// Such as `TLSv1.3`; nil without TLS.
    var tlsVersion: String? { stream.tlsVersion }
}
