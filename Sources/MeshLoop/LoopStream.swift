// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV
internal import Glibc

/// One TCP or Unix-socket connection, or one open serial port. Dropping it closes it. Used on the loop's thread only.
///
/// Closures run in the isolation they were written in and on the loop's thread; none runs after ``close()``.
public final class LoopStream {
    enum Kind {
        case tcp
        case unix
        case serial
    }

    let loop: EventLoop
    let stream: UnsafeMutablePointer<uv_stream_t>
    private let kind: Kind
    var isTCP: Bool { kind == .tcp }
    private var onBytes: ((UnsafeRawBufferPointer) -> Void)?
    private var onEnd: ((LoopError?) -> Void)?
    private var isReading = false
    private(set) var isClosed = false
    /// Whether bytes could not be written. Telling of it may use up the connection's error: reading then ends in good order.
    public fileprivate(set) var hasFailedWrite = false
    /// Runs each time all written bytes have gone to the kernel.
    public var onDrained: (() -> Void)?

    /// A TCP connection to be made with ``connect(to:)``, or accepted by a listener.
    public convenience init(tcp loop: EventLoop) {
        let tcp = UnsafeMutablePointer<uv_tcp_t>.allocate(capacity: 1)
        uv_tcp_init(loop.uv, tcp)
        self.init(loop, UnsafeMutableRawPointer(tcp).assumingMemoryBound(to: uv_stream_t.self), kind: .tcp)
    }

    /// A Unix-socket connection to be made with ``connect(to:)``, or accepted by a listener.
    public convenience init(unix loop: EventLoop) {
        let pipe = UnsafeMutablePointer<uv_pipe_t>.allocate(capacity: 1)
        uv_pipe_init(loop.uv, pipe, 0)
        self.init(loop, UnsafeMutableRawPointer(pipe).assumingMemoryBound(to: uv_stream_t.self), kind: .unix)
    }

    init(_ loop: EventLoop, _ stream: UnsafeMutablePointer<uv_stream_t>, kind: Kind) {
        assert(loop.isOnLoop)
        self.loop = loop
        self.stream = stream
        self.kind = kind
        stream.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        close()
    }

    /// Closes the connection; unsent bytes are dropped and their completions fail with ``LoopError/Kind/cancelled``.
    public func close() {
        guard !isClosed else { return }
        // Closing a serial port waits for bytes that a device does not take, by default 30 s (tty_port_close_start).
        if kind == .serial, unacknowledgedBytes ?? 0 > 0 { tcflush(descriptor, TCOFLUSH) }
        isClosed = true
        isReading = false
        onBytes = nil
        onEnd = nil
        onDrained = nil
        stream.pointee.data = nil
        uv_close(handle(stream)) { $0?.deallocate() }
    }

    /// Closes a TCP connection with a reset, so that the peer sees the end at once even with bytes under way.
    public func closeWithReset() {
        guard !isClosed else { return }
        if isTCP {
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }
        close()
    }

    // MARK: Reading

    /// Hands on what arrives until the end. The bytes are valid during the call only. `onEnd` runs once: nil for an
    /// orderly end by the peer.
    public func startReading(
        _ onBytes: @escaping (UnsafeRawBufferPointer) -> Void, onEnd: @escaping (LoopError?) -> Void
    ) {
        self.onBytes = onBytes
        self.onEnd = onEnd
        resumeReading()
    }

    /// Leaves further bytes in the kernel until ``resumeReading()``. The peer's end is not noticed meanwhile.
    public func pauseReading() {
        guard isReading else { return }
        isReading = false
        uv_read_stop(stream)
    }

    /// Goes on after ``pauseReading()``.
    public func resumeReading() {
        guard !isReading, !isClosed, onBytes != nil else { return }
        isReading = true
        let status = uv_read_start(
            stream,
            { handle, _, buffer in
                guard let data = handle?.pointee.data, let buffer else { return }
                let stream = Unmanaged<LoopStream>.fromOpaque(data).takeUnretainedValue()
                let memory = stream.loop.readBuffer
                buffer.pointee = uv_buf_init(
                    memory.baseAddress!.assumingMemoryBound(to: CChar.self), UInt32(memory.count))
            },
            { LoopStream.received($0, $1, $2) })
        if status < 0 {
            isReading = false
            let error = LoopError(status: status, operation: "read")
            loop.performLater { self.end(error) }
        }
    }

    private static func received(
        _ handle: UnsafeMutablePointer<uv_stream_t>?, _ count: Int, _ buffer: UnsafePointer<uv_buf_t>?
    ) {
        guard let data = handle?.pointee.data else { return }
        let stream = Unmanaged<LoopStream>.fromOpaque(data).takeUnretainedValue()
        if count > 0 {
            stream.onBytes?(UnsafeRawBufferPointer(start: buffer?.pointee.base, count: count))
        } else if count < 0 {
            stream.pauseReading()
            let error = LoopError(status: stream.endStatus(Int32(count)), operation: "read")
            stream.end(error.kind == .endOfFile ? nil : error)
        }
    }

    /// libuv tells a reset as an orderly end when it comes together with the last bytes (uv__stream_io); the socket knows.
    private func endStatus(_ status: Int32) -> Int32 {
        var error: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard status == UV_EOF.rawValue, getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) == 0, error != 0
        else { return status }
        return -error
    }

    private func end(_ error: LoopError?) {
        let onEnd = onEnd
        self.onBytes = nil
        self.onEnd = nil
        onEnd?(error)
    }

    // MARK: Writing

    /// Bytes that were written and have not gone to the kernel yet.
    public var pendingWriteBytes: Int { isClosed ? 0 : stream.pointee.write_queue_size }

    /// Bytes that the kernel has and the peer's has not acknowledged; for a Unix socket those that the peer has not read;
    /// for a serial port those that it has not sent. Nil when the connection is closed (Linux, `SIOCOUTQ`, `TIOCOUTQ`).
    public var unacknowledgedBytes: Int? {
        guard !isClosed else { return nil }
        var count: Int32 = 0
        return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : nil
    }

    /// Whether the kernel knows that the peer has closed or reset the connection, though its end may not have been read yet.
    public var isPeerGone: Bool { isClosed || signs != 0 }

    /// Whether the connection was reset, which reading does not always tell: after an orderly end by the peer the kernel
    /// reports that end only, though what was sent since, or was not read by then, is lost.
    public var isReset: Bool { hasFailedWrite || isTCP && signs & Int16(POLLHUP | POLLERR) != 0 }

    /// What the kernel knows of the peer's end.
    private var signs: Int16 {
        // POLLRDHUP, which Glibc's module does not show (bits/poll.h).
        var entry = pollfd(fd: descriptor, events: 0x2000, revents: 0)
        return poll(&entry, 1, 0) > 0 ? entry.revents : 0
    }

    /// Gives the kernel what it takes now and returns how many bytes that was: none while earlier ones wait. What is left
    /// over is the caller's to write.
    public func writeAtOnce(_ bytes: UnsafeRawBufferPointer) throws(LoopError) -> Int {
        guard !isClosed else {
            throw LoopError(kind: .notConnected, operation: "write", detail: "the connection is closed")
        }
        guard stream.pointee.write_queue_size == 0, !bytes.isEmpty else { return 0 }
        var buffer = uv_buf_init(
            UnsafeMutableRawPointer(mutating: bytes.baseAddress)?.assumingMemoryBound(to: CChar.self),
            UInt32(bytes.count))
        let status = uv_try_write(stream, &buffer, 1)
        if status >= 0 { return Int(status) }
        if status == UV_EAGAIN.rawValue { return 0 }
        throw LoopError(status: status, operation: "write")
    }

    /// Writes all bytes: at once what the kernel takes, the rest when it can. The bytes are copied if they must wait.
    /// `completion` runs in a later callback, exactly once, also after ``close()``.
    public func write(_ bytes: UnsafeRawBufferPointer, completion: ((LoopError?) -> Void)? = nil) {
        let sent: Int
        do throws(LoopError) {
            sent = try writeAtOnce(bytes)
        } catch {
            hasFailedWrite = true
            if let completion { loop.performLater { completion(error) } }
            return
        }
        if sent == bytes.count {
            if let completion { loop.performLater { completion(nil) } }
            return
        }
        let request = WriteRequest(copying: bytes.suffix(from: bytes.startIndex + sent), completion: completion)
        request.start(on: self)
    }

    /// Writes all bytes and returns when the kernel has them. Cancelling does not take them back.
    public func write(_ bytes: some Sequence<UInt8>) async throws(LoopError) {
        let bytes = ContiguousArray(bytes)
        let error: LoopError? = await withCheckedContinuation { continuation in
            bytes.withUnsafeBytes { buffer in
                write(buffer) { continuation.resume(returning: $0) }
            }
        }
        if let error { throw error }
    }

    fileprivate func drained() {
        if stream.pointee.write_queue_size == 0, !isClosed { onDrained?() }
    }

    // MARK: Facts and options

    /// The file descriptor, -1 once closed.
    public var descriptor: Int32 {
        var fd: Int32 = -1
        if !isClosed { uv_fileno(handle(stream), &fd) }
        return fd
    }

    /// The other end of a TCP connection.
    public var peerAddress: SocketAddress? { name(uv_tcp_getpeername) }

    /// This end of a TCP connection.
    public var localAddress: SocketAddress? { name(uv_tcp_getsockname) }

    private typealias NameCall = (
        UnsafePointer<uv_tcp_t>?, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<Int32>?
    ) -> Int32

    private func name(_ call: NameCall) -> SocketAddress? {
        guard isTCP, !isClosed else { return nil }
        var storage = sockaddr_storage()
        var length = Int32(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                stream.withMemoryRebound(to: uv_tcp_t.self, capacity: 1) { call($0, address, &length) } == 0
                    ? SocketAddress(copying: address) : nil
            }
        }
    }

    /// The process at the other end of a Unix socket (SO_PEERCRED, unix(7)).
    public var peerCredentials: (pid: Int32, uid: UInt32, gid: UInt32)? {
        // `struct ucred` is three 32-bit numbers; glibc only declares it under _GNU_SOURCE.
        var credentials: (pid: Int32, uid: UInt32, gid: UInt32) = (0, 0, 0)
        var length = socklen_t(MemoryLayout.size(ofValue: credentials))
        guard !isTCP, getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 else { return nil }
        return credentials
    }

    /// Sends small writes at once (TCP_NODELAY).
    public func setNoDelay() {
        guard isTCP, !isClosed else { return }
        _ = stream.withMemoryRebound(to: uv_tcp_t.self, capacity: 1) { uv_tcp_nodelay($0, 1) }
    }

    /// Lets the kernel find out that the peer is gone: probes after `idle` without traffic (SO_KEEPALIVE, tcp(7)), and
    /// an error when sent bytes stay unacknowledged for `unacknowledged` (TCP_USER_TIMEOUT, tcp(7)).
    public func setKeepAlive(idle: Duration, interval: Duration, count: Int32, unacknowledged: Duration) {
        guard isTCP else { return }
        set(SOL_SOCKET, SO_KEEPALIVE, 1)
        set(Int32(IPPROTO_TCP), TCP_KEEPIDLE, Int32(clamping: idle.wholeMilliseconds / 1_000))
        set(Int32(IPPROTO_TCP), TCP_KEEPINTVL, Int32(clamping: interval.wholeMilliseconds / 1_000))
        set(Int32(IPPROTO_TCP), TCP_KEEPCNT, count)
        set(Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, Int32(clamping: unacknowledged.wholeMilliseconds))
    }

    private func set(_ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}

/// One `uv_write_t` with its bytes; lives until libuv reports its end.
private final class WriteRequest {
    private let uv = UnsafeMutablePointer<uv_write_t>.allocate(capacity: 1)
    private let bytes: UnsafeMutableRawBufferPointer
    private let completion: ((LoopError?) -> Void)?

    init(copying source: Slice<UnsafeRawBufferPointer>, completion: ((LoopError?) -> Void)?) {
        bytes = .allocate(byteCount: source.count, alignment: 1)
        bytes.copyBytes(from: source)
        self.completion = completion
    }

    deinit {
        bytes.deallocate()
        uv.deallocate()
    }

    func start(on owner: LoopStream) {
        uv.pointee.data = Unmanaged.passRetained(self).toOpaque()
        var buffer = uv_buf_init(bytes.baseAddress?.assumingMemoryBound(to: CChar.self), UInt32(bytes.count))
        let status = uv_write(uv, owner.stream, &buffer, 1) { WriteRequest.ended($0, $1) }
        if status < 0 {
            Unmanaged.passUnretained(self).release()
            owner.hasFailedWrite = true
            let completion = completion
            owner.loop.performLater { completion?(LoopError(status: status, operation: "write")) }
        }
    }

    private static func ended(_ request: UnsafeMutablePointer<uv_write_t>?, _ status: Int32) {
        guard let request, let data = request.pointee.data else { return }
        // The request goes with its object, after whose last use here it must not be read.
        let stream = request.pointee.handle
        let me = Unmanaged<WriteRequest>.fromOpaque(data).takeRetainedValue()
        me.completion?(status < 0 ? LoopError(status: status, operation: "write") : nil)
        if let data = stream?.pointee.data {
            let owner = Unmanaged<LoopStream>.fromOpaque(data).takeUnretainedValue()
            if status < 0 { owner.hasFailedWrite = true }
            owner.drained()
        }
    }
}
