// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc
internal import MeshLoop
internal import MeshWire

/// One end of the socket between the host and a module in a process of its own: whole messages both ways, documents in
/// parts put together. Owns the descriptor. Used on the loop's thread only.
final class ModuleSocket {
    /// Why no more messages come.
    enum End {
        /// The other side has closed its end, or has ended.
        case closed
        /// The other side does not keep to the protocol; how.
        case breach(String)
    }

    /// So many messages are taken in one go, then others have their turn.
    private static let messagesPerTurn = 64
    /// So many are taken at most when the other side has ended.
    private static let lastMessages = 4_096
    /// What may wait for a module to read; what waits for the host is bounded by its credits.
    private static let backlogLimit = 64 << 20

    private let descriptor: Int32
    private let peer: ModuleMessage.Sender
    private var poll: LoopPoll?
    private let buffer: UnsafeMutableRawBufferPointer
    private var backlog: [[UInt8]] = []
    private var backlogHead = 0
    private var backlogBytes = 0
    private var parts = ModuleDocumentAssembler()
    private var onMessage: ((ModuleMessage, UnsafeRawBufferPointer) -> Void)?
    private var onEnd: ((End) -> Void)?

    /// Takes the descriptor over. `onMessage` gets the payload for the time of the call; after `onEnd` nothing is called.
    init(
        _ loop: EventLoop, descriptor: Int32, peer: ModuleMessage.Sender,
        onMessage: @escaping (ModuleMessage, UnsafeRawBufferPointer) -> Void, onEnd: @escaping (End) -> Void
    ) throws(LoopError) {
        self.descriptor = descriptor
        self.peer = peer
        // One more than the longest message, so that a longer one is noticed.
        buffer = .allocate(byteCount: ModuleMessage.maximumLength + 1, alignment: 16)
        self.onMessage = onMessage
        self.onEnd = onEnd
        let poll = try LoopPoll(loop, descriptor: descriptor) { [unowned self] events, error in
            if error != nil { return self.end(.closed) }
            if events.contains(.writable) { self.flush() }
            if events.contains(.readable) { self.read(Self.messagesPerTurn) }
        }
        self.poll = poll
        poll.wait(for: .readable)
    }

    deinit {
        poll = nil
        Glibc.close(descriptor)
        buffer.deallocate()
    }

    /// Whether messages still go both ways.
    var isOpen: Bool { onEnd != nil }

    /// No more messages either way; the other side sees the end. `onEnd` is not called.
    func close() {
        guard isOpen else { return }
        onEnd = nil
        onMessage = nil
        poll?.wait(for: [])
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    private func end(_ end: End) {
        let onEnd = onEnd
        close()
        onEnd?(end)
    }

    // MARK: To the other side

    /// Sends a message of one piece.
    func send(_ head: ModuleMessage, _ payload: Data = Data()) {
        payload.withUnsafeBytes { transmit(head, $0) }
    }

    /// Sends a document, in parts if it is long.
    func send(_ head: ModuleMessage, document: Data) {
        let portion = ModuleMessage.maximumLength - ModuleMessage.headLength
        document.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while rest.count > portion {
                var part = head
                part.flags.insert(.more)
                transmit(part, UnsafeRawBufferPointer(rebasing: rest.prefix(portion)))
                rest = rest.dropFirst(portion)
            }
            transmit(head, UnsafeRawBufferPointer(rebasing: rest))
        }
    }

    private func transmit(_ head: ModuleMessage, _ payload: UnsafeRawBufferPointer) {
        guard isOpen else { return }
        let isSent = withUnsafeTemporaryAllocation(byteCount: ModuleMessage.headLength, alignment: 8) { bytes in
            head.write(into: bytes)
            if backlogHead == backlog.count {
                switch Self.transmit(descriptor, UnsafeRawBufferPointer(bytes), payload) {
                case EAGAIN, ENOBUFS: break
                // Of a failure the reading end tells, when what has come has been read.
                default: return true
                }
            }
            backlog.append(Array(UnsafeRawBufferPointer(bytes)) + Array(payload))
            backlogBytes += bytes.count + payload.count
            return false
        }
        if isSent { return }
        if peer == .module, backlogBytes > Self.backlogLimit { return end(.breach("does not read")) }
        poll?.wait(for: [.readable, .writable])
    }

    private func flush() {
        while isOpen, backlogHead < backlog.count {
            let message = backlog[backlogHead]
            let status = message.withUnsafeBytes {
                Self.transmit(descriptor, $0, UnsafeRawBufferPointer(start: nil, count: 0))
            }
            if status == EAGAIN || status == ENOBUFS { return }
            backlogHead += 1
            backlogBytes -= message.count
        }
        backlog.removeAll()
        backlogHead = 0
        if isOpen { poll?.wait(for: .readable) }
    }

    /// One message in two pieces. 0, or an errno. From any thread.
    static func transmit(
        _ descriptor: Int32, _ head: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer
    ) -> Int32 {
        var pieces = (
            iovec(iov_base: UnsafeMutableRawPointer(mutating: head.baseAddress), iov_len: head.count),
            iovec(iov_base: UnsafeMutableRawPointer(mutating: payload.baseAddress), iov_len: payload.count)
        )
        return withUnsafeMutableBytes(of: &pieces) { pieces in
            var message = msghdr()
            message.msg_iov = pieces.baseAddress?.assumingMemoryBound(to: iovec.self)
            message.msg_iovlen = payload.isEmpty ? 1 : 2
            while true {
                let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
                if sendmsg(descriptor, &message, flags) >= 0 { return 0 }
                if errno != EINTR { return errno }
            }
        }
    }

    // MARK: From the other side

    /// Reads what has come and not been read, when the other side has ended.
    func readRest() {
        read(Self.lastMessages)
    }

    private func read(_ limit: Int) {
        var left = limit
        while left > 0, isOpen {
            left -= 1
            let count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            if count < 0 {
                // A reset is told before what the other side said last: it ended without having read all.
                if errno == EINTR || errno == ECONNRESET { continue }
                return errno == EAGAIN ? () : end(.closed)
            }
            if count == 0 { return end(.closed) }
            take(UnsafeRawBufferPointer(rebasing: buffer.prefix(count)))
        }
    }

    private func take(_ bytes: UnsafeRawBufferPointer) {
        let head: ModuleMessage
        do throws(DecodeError) {
            head = try ModuleMessage(decoding: bytes, from: peer)
        } catch {
            return end(.breach("sent a message that is none: \(error)"))
        }
        let payload = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(ModuleMessage.headLength))
        switch parts.take(head, payload) {
        case .whole: onMessage?(head, payload)
        case .document(let document): document.withUnsafeBytes { onMessage?(head, $0) }
        case .partial: break
        case .breach: end(.breach("sent parts of a document that do not belong together, or too many"))
        }
    }
}

extension ModuleSocket {
    /// Two ends that belong together, closed when a program is started. Throws an errno's words.
    static func pair() throws(LoopError) -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
            throw LoopError(kind: .noResources, operation: "socketpair", detail: String(cString: strerror(errno)))
        }
        return (ends[0], ends[1])
    }
}
