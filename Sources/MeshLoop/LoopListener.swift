// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV
internal import Glibc

/// A TCP or Unix-socket listener. Dropping it closes it and, for a Unix socket, removes the file.
/// Used on the loop's thread only.
public final class LoopListener {
    private let loop: EventLoop
    private let stream: UnsafeMutablePointer<uv_stream_t>
    private let isTCP: Bool
    private let unixPath: String?
    /// The socket file that ``init(_:on:mode:onConnection:)`` made; nil when it made none.
    private var file: FileIdentity?
    private let onConnection: (sending LoopStream) -> Void
    /// Where it listens; for a TCP port of 0, the port the kernel chose.
    public private(set) var address: SocketAddress

    /// Binds and listens.
    ///
    /// A Unix socket's file gets `mode`. A file left by a process that died is replaced; one that somebody listens on is
    /// ``LoopError/Kind/addressInUse``, and so is a file that is no socket.
    public init(
        _ loop: EventLoop, on address: SocketAddress, mode: UInt32 = 0o660,
        onConnection: @escaping (sending LoopStream) -> Void
    ) throws(LoopError) {
        assert(loop.isOnLoop)
        self.loop = loop
        self.address = address
        self.onConnection = onConnection
        unixPath = address.unixPath
        isTCP = address.unixPath == nil
        if let path = address.unixPath {
            let pipe = UnsafeMutablePointer<uv_pipe_t>.allocate(capacity: 1)
            uv_pipe_init(loop.uv, pipe, 0)
            stream = UnsafeMutableRawPointer(pipe).assumingMemoryBound(to: uv_stream_t.self)
            stream.pointee.data = nil
            // From here on a throw runs `deinit`, which closes the handle: every stored property has its value.
            let descriptor = try UnixSocket.bind(path, mode: mode)
            file = FileIdentity(path)
            // Opened, not bound, by libuv: at its end it would remove whatever file is at the path by then.
            let status = uv_pipe_open(pipe, descriptor)
            if status < 0 { close(descriptor) }
            try LoopError.check(status, "bind \(path)")
        } else {
            let tcp = UnsafeMutablePointer<uv_tcp_t>.allocate(capacity: 1)
            uv_tcp_init(loop.uv, tcp)
            stream = UnsafeMutableRawPointer(tcp).assumingMemoryBound(to: uv_stream_t.self)
            let flags = address.isIPv6 ? UV_TCP_IPV6ONLY.rawValue : 0
            try LoopError.check(address.withSockaddr { uv_tcp_bind(tcp, $0, flags) }, "bind \(address)")
        }
        stream.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        let status = uv_listen(stream, 128) { LoopListener.connected($0, $1) }
        try LoopError.check(status, "listen on \(address)")
        if isTCP { self.address = boundAddress ?? address }
    }

    deinit {
        stream.pointee.data = nil
        uv_close(handle(stream)) { $0?.deallocate() }
        // Another file at the path belongs to somebody else, who has taken it over meanwhile.
        if let unixPath, let file, FileIdentity(unixPath) == file { unlink(unixPath) }
    }

    private var boundAddress: SocketAddress? {
        var storage = sockaddr_storage()
        var length = Int32(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                stream.withMemoryRebound(to: uv_tcp_t.self, capacity: 1) { uv_tcp_getsockname($0, address, &length) }
                    == 0
                    ? SocketAddress(copying: address) : nil
            }
        }
    }

    private static func connected(_ handle: UnsafeMutablePointer<uv_stream_t>?, _ status: Int32) {
        guard status >= 0, let data = handle?.pointee.data else { return }
        let listener = Unmanaged<LoopListener>.fromOpaque(data).takeUnretainedValue()
        let stream = listener.isTCP ? LoopStream(tcp: listener.loop) : LoopStream(unix: listener.loop)
        // Out of descriptors, uv_accept fails and the new stream closes itself: the client sees an end, nothing wedges.
        if uv_accept(listener.stream, stream.stream) == 0 {
            // Nothing else refers to the new stream: `uv_accept` only moved a descriptor into it.
            nonisolated(unsafe) let accepted = stream
            listener.onConnection(accepted)
        }
    }
}
