// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV

extension LoopStream {
    /// Connects a new stream. Cancelling the task, or ``close()``, ends the attempt; the stream is then closed and the
    /// error is ``LoopError/Kind/cancelled``.
    public func connect(
        to address: SocketAddress, isolation: isolated (any Actor)? = #isolation
    ) async throws(LoopError) {
        let closer = Closer(self)
        let loop = loop
        let status: Int32 = await withTaskCancellationHandler {
            // A closure runs on the caller's actor only if it captures it; otherwise it would leave the loop.
            _ = isolation
            return await withCheckedContinuation { continuation in
                let request = ConnectRequest { continuation.resume(returning: $0) }
                request.start(self, address)
            }
        } onCancel: {
            loop.perform { closer.stream?.close() }
        }
        try LoopError.check(status, "connect to \(address)")
    }

    /// Lets a cancellation handler, which runs on any thread, name the stream. Sendable: it only stores the reference;
    /// it is used on the loop's thread alone.
    private final class Closer: @unchecked Sendable {
        weak var stream: LoopStream?

        init(_ stream: LoopStream) {
            self.stream = stream
        }
    }
}

/// One `uv_connect_t`; lives until libuv reports its end.
final class ConnectRequest {
    private let uv = UnsafeMutablePointer<uv_connect_t>.allocate(capacity: 1)
    private let completion: (Int32) -> Void

    init(completion: @escaping (Int32) -> Void) {
        self.completion = completion
    }

    deinit {
        uv.deallocate()
    }

    func start(_ stream: LoopStream, _ address: SocketAddress) {
        guard !stream.isClosed else { return completion(UV_ECANCELED.rawValue) }
        uv.pointee.data = Unmanaged.passRetained(self).toOpaque()
        let status: Int32
        if let path = address.unixPath {
            // libuv would cut it.
            guard path.utf8.count <= UnixSocket.maximumPathLength else {
                Unmanaged.passUnretained(self).release()
                return completion(UV_ENAMETOOLONG.rawValue)
            }
            // Reports every failure through the callback.
            stream.stream.withMemoryRebound(to: uv_pipe_t.self, capacity: 1) {
                uv_pipe_connect(uv, $0, path) { ConnectRequest.ended($0, $1) }
            }
            status = 0
        } else {
            status = address.withSockaddr { sockaddr in
                stream.stream.withMemoryRebound(to: uv_tcp_t.self, capacity: 1) {
                    uv_tcp_connect(uv, $0, sockaddr) { ConnectRequest.ended($0, $1) }
                }
            }
        }
        if status < 0 {
            Unmanaged.passUnretained(self).release()
            completion(status)
        }
    }

    private static func ended(_ request: UnsafeMutablePointer<uv_connect_t>?, _ status: Int32) {
        guard let data = request?.pointee.data else { return }
        Unmanaged<ConnectRequest>.fromOpaque(data).takeRetainedValue().completion(status)
    }
}
