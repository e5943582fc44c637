// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV
internal import Glibc

extension EventLoop {
    /// The addresses of a host, in the order the resolver prefers (RFC 6724). A numeric host needs no resolver.
    ///
    /// Runs on libuv's thread pool; cancelling the task ends the wait at once. `localhost` does not: it is the loopback
    /// addresses (RFC 6761 6.3), so that what is on this machine never waits behind names that nobody answers for.
    public func resolve(
        host: String, port: UInt16, isolation: isolated (any Actor)? = #isolation
    ) async throws(LoopError) -> [SocketAddress] {
        if let address = SocketAddress(ip: host, port: port) { return [address] }
        if host.lowercased() == "localhost" { return SocketAddress.loopbacks(port: port) }
        let request = ResolveRequest()
        let result = await withTaskCancellationHandler {
            // A closure runs on the caller's actor only if it captures it; otherwise it would leave the loop.
            _ = isolation
            return await withCheckedContinuation { continuation in
                perform { request.start(on: self, host: host, port: port) { continuation.resume(returning: $0) } }
            }
        } onCancel: {
            perform { request.cancel() }
        }
        return try result.get()
    }
}

/// One `uv_getaddrinfo_t`. Sendable: touched on the loop's thread only.
private final class ResolveRequest: @unchecked Sendable {
    typealias Completion = @Sendable (Result<[SocketAddress], LoopError>) -> Void

    private let uv = UnsafeMutablePointer<uv_getaddrinfo_t>.allocate(capacity: 1)
    private var completion: Completion?
    private var isCancelled = false
    /// libuv has the request; before, its memory says nothing.
    private var isStarted = false
    private var host = ""
    private var time: VirtualTime?

    deinit {
        uv.deallocate()
    }

    func start(on loop: EventLoop, host: String, port: UInt16, completion: @escaping Completion) {
        self.host = host
        self.completion = completion
        if isCancelled { return cancel() }
        isStarted = true
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG
        uv.pointee.data = Unmanaged.passRetained(self).toOpaque()
        let status = uv_getaddrinfo(loop.uv, uv, { ResolveRequest.ended($0, $1, $2) }, host, "\(port)", &hints)
        if status < 0 {
            isStarted = false
            Unmanaged.passUnretained(self).release()
            return finish(.failure(LoopError(status: status, operation: "resolve \(host)")))
        }
        time = loop.virtualTime
        time?.outsideWork += 1
    }

    /// A look-up that a pool thread has begun cannot be stopped; its waiter is answered now all the same.
    func cancel() {
        isCancelled = true
        if isStarted, completion != nil {
            UnsafeMutableRawPointer(uv).withMemoryRebound(to: uv_req_t.self, capacity: 1) { _ = uv_cancel($0) }
        }
        finish(.failure(LoopError(kind: .cancelled, operation: "resolve \(host)", detail: "cancelled")))
    }

    private func finish(_ result: Result<[SocketAddress], LoopError>) {
        completion?(result)
        completion = nil
    }

    private static func ended(
        _ request: UnsafeMutablePointer<uv_getaddrinfo_t>?, _ status: Int32, _ list: UnsafeMutablePointer<addrinfo>?
    ) {
        defer { uv_freeaddrinfo(list) }
        guard let data = request?.pointee.data else { return }
        let me = Unmanaged<ResolveRequest>.fromOpaque(data).takeRetainedValue()
        me.time?.outsideWork -= 1
        if status < 0 {
            return me.finish(.failure(LoopError(status: status, operation: "resolve \(me.host)")))
        }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next {
            if let address = entry.pointee.ai_addr { addresses.append(SocketAddress(copying: address)) }
            next = entry.pointee.ai_next
        }
        me.finish(.success(addresses))
    }
}
