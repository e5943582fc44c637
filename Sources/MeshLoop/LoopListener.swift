// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV
internal import Glibc

/// A TCP or Unix-socket listener. Dropping it closes it and, for a Unix socket, removes the file.
/// Used on the loop's thread only.
///
/// A socket file that is removed, or replaced, is made again; see `LoopListener+File.swift`. Connections that cannot be
/// accepted for want of a descriptor are closed, or served from the ``DescriptorReserve``. Not libuv's listener, which closes
/// them and tells nobody.
public final class LoopListener {
    /// How many connections are accepted before other descriptors have their turn.
    private static let acceptsPerTurn = 64
    /// How long nothing is accepted when the system has no room for a connection, and there is no reserve to accept it with.
    private static let pause = Duration.seconds(1)

    let loop: EventLoop
    let mode: UInt32
    private let isTCP: Bool
    private let usesReserve: Bool
    private let onConnection: (sending LoopStream) -> Void
    let onFileChange: ((LoopError?) -> Void)?
    private let reserve: DescriptorReserve
    /// The poll ends before its descriptor does.
    private(set) var socket: ListeningSocket
    private var poll: LoopPoll?
    private var pauseTimer: LoopTimer?
    // The socket's file.
    var fileWatch: InotifyWatch?
    var fileTimer: LoopTimer?
    var fileDelay = Duration.zero
    /// Another's file that nobody listened on when it was last looked at.
    var deserted: FileIdentity?
    var isFileLost = false

    /// Where it listens; for a TCP port of 0, the port the kernel chose.
    public var address: SocketAddress { socket.address }

    /// Binds and listens.
    ///
    /// A Unix socket's file gets `mode`. A file left by a process that died is replaced; one that somebody listens on is
    /// ``LoopError/Kind/addressInUse``, and so is a file that is no socket. `onFileChange` is told why the file has gone, and
    /// nil when it is back. `usesReserve`: connections are served even when there are no descriptors for others any more.
    public init(
        _ loop: EventLoop, on address: SocketAddress, mode: UInt32 = 0o660, usesReserve: Bool = false,
        onFileChange: ((LoopError?) -> Void)? = nil, onConnection: @escaping (sending LoopStream) -> Void
    ) throws(LoopError) {
        assert(loop.isOnLoop)
        self.loop = loop
        self.mode = mode
        self.usesReserve = usesReserve
        self.onFileChange = onFileChange
        self.onConnection = onConnection
        isTCP = address.unixPath == nil
        socket =
            if let path = address.unixPath { try .unix(path, mode: mode) } else { try .tcp(address) }
        reserve = loop.descriptorReserve
        try listen()
        if !isTCP { startWatchingFile() }
    }

    deinit {
        poll = nil
    }

    /// Goes over to another socket. Who waits at the one before is let in first.
    func replaceSocket(with new: ListeningSocket) throws(LoopError) {
        let next = try makePoll(new)
        accept(.max)
        pauseTimer = nil
        socket = new
        poll = next
        next.wait(for: .readable)
    }

    private func listen() throws(LoopError) {
        poll = try makePoll(socket)
        poll?.wait(for: .readable)
    }

    private func makePoll(_ socket: ListeningSocket) throws(LoopError) -> LoopPoll {
        try LoopPoll(loop, descriptor: socket.descriptor) { [unowned self] _, _ in accept(Self.acceptsPerTurn) }
    }

    private func accept(_ limit: Int) {
        // What is free again belongs to the reserve first: it would go to whoever knocks next.
        if reserve.isExhausted { reserve.refill() }
        // Whoever is told of a connection may drop the listener.
        let listening = socket
        var left = limit
        while left > 0, poll != nil, socket === listening {
            left -= 1
            let descriptor = Self.accept(listening)
            if descriptor >= 0 {
                take(descriptor)
                continue
            }
            switch -descriptor {
            case EAGAIN:
                return
            case EMFILE, ENFILE:
                switch acceptForWant(-descriptor, listening) {
                case .accepted: continue
                case .nobodyWaits: return
                case .noReserve: return rest()
                }
            // What befell the connection before it was accepted (accept(2)).
            case EINTR, ECONNABORTED, EPROTO, ENETDOWN, EHOSTDOWN, ENETUNREACH, EHOSTUNREACH, EPERM:
                continue
            default:
                return rest()
            }
        }
    }

    private enum WantOutcome {
        case accepted
        case nobodyWaits
        case noReserve
    }

    /// There is no descriptor for the next connection.
    private func acceptForWant(_ error: Int32, _ listening: ListeningSocket) -> WantOutcome {
        reserve.wanted(error, "accept a connection on \(address)")
        // One is left to turn others away with.
        let serves = usesReserve && reserve.count > 1
        guard let descriptor = reserve.withOneMore({ Self.accept(listening) }) else { return .noReserve }
        // The system looks for a descriptor before it looks for somebody who waits.
        if descriptor < 0 { return descriptor == -EAGAIN ? .nobodyWaits : .noReserve }
        if serves {
            take(descriptor)
        } else {
            close(descriptor)
            reserve.hasTurnedAway()
        }
        return .accepted
    }

    /// A descriptor, or an `errno` below zero.
    ///
    /// In two steps (accept4(2) is not declared for Swift): programs are started by this thread alone, so none inherits it
    /// in between. libuv sets it non-blocking.
    private static func accept(_ listening: ListeningSocket) -> Int32 {
        let descriptor = Glibc.accept(listening.descriptor, nil, nil)
        if descriptor < 0 { return -errno }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return descriptor
    }

    private func take(_ descriptor: Int32) {
        let stream = isTCP ? LoopStream(tcp: loop) : LoopStream(unix: loop)
        let status =
            isTCP
            ? stream.stream.withMemoryRebound(to: uv_tcp_t.self, capacity: 1) { uv_tcp_open($0, descriptor) }
            : stream.stream.withMemoryRebound(to: uv_pipe_t.self, capacity: 1) { uv_pipe_open($0, descriptor) }
        guard status == 0 else {
            close(descriptor)
            return stream.close()
        }
        // Nothing else refers to the new stream: it has only been given a descriptor.
        nonisolated(unsafe) let accepted = stream
        onConnection(accepted)
    }

    /// The event stays until the connection is accepted: without a pause the loop would turn for ever.
    private func rest() {
        poll?.wait(for: [])
        let timer = pauseTimer ?? LoopTimer(loop)
        pauseTimer = timer
        timer.schedule(after: Self.pause) { [unowned self] in poll?.wait(for: .readable) }
    }
}
