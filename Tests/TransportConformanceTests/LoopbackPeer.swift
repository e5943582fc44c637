// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshLoop
import MeshTransportTesting
import MeshWire

/// A radio's TCP server on 127.0.0.1 or ::1, led by a test.
actor LoopbackPeer: ConformancePeer {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let port: UInt16
    nonisolated let host: String
    nonisolated var abilities: ConformanceAbilities {
        [.sending, .receiving, .halfFrames, .closing, .resetting, .holding]
    }

    private var listener: LoopListener?
    private var connection: LoopStream?
    private var connectionWaiters: [CheckedContinuation<Void, Never>] = []
    private var decoder = CompanionFrameDecoder(.init(marker: .fromClient, ceiling: 512))
    private var frames: [[UInt8]] = []
    private var frameWaiters: [CheckedContinuation<[UInt8], any Error>] = []
    private var holders: [Int32] = []
    private(set) var accepted = 0

    struct Gone: Error {}

    private init(_ loop: EventLoop, host: String, port: UInt16) {
        self.loop = loop
        self.host = host
        self.port = port
    }

    static func start(_ loop: EventLoop, host: String = "127.0.0.1") async throws -> LoopbackPeer {
        while true {
            let port = try await LoopActor(loop).run { actor throws(LoopError) in
                // Found by binding; free again for the peer's own listener.
                try LoopListener(actor.loop, on: SocketAddress(ip: host, port: 0)!) { _ in }.address.port
            }
            let peer = LoopbackPeer(loop, host: host, port: port)
            do {
                try await peer.listen()
                return peer
            } catch let error as LoopError where error.kind == .addressInUse {
                // Some other test has taken it meanwhile; there are more.
            }
        }
    }

    func acceptConnections() async throws {
        for descriptor in holders { Glibc.close(descriptor) }
        holders = []
        while listener == nil {
            do {
                try listen()
            } catch let error as LoopError where error.kind == .addressInUse {
                // A process that some other test is starting has the closed socket, too, until its program begins.
                try await loop.sleep(for: .milliseconds(1))
            }
        }
    }

    private func listen() throws {
        listener = try LoopListener(loop, on: SocketAddress(ip: host, port: port)!) { self.accept($0) }
    }

    /// Linux drops the SYN of a connection for which the accept queue has no room: a queue of one, filled.
    func holdConnections() async throws {
        listener = nil
        let server = tcpSocket()
        var yes: Int32 = 1
        setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        holders.append(server)
        // As in acceptConnections().
        while withAddress({ bind(server, $0, $1) }) != 0 {
            guard errno == EADDRINUSE else { throw Gone() }
            try await loop.sleep(for: .milliseconds(1))
        }
        guard Glibc.listen(server, 0) == 0 else { throw Gone() }
        for _ in 0..<2 {
            let filler = tcpSocket()
            _ = fcntl(filler, F_SETFL, O_NONBLOCK)
            _ = withAddress { connect(filler, $0, $1) }
            holders.append(filler)
        }
    }

    private nonisolated func tcpSocket() -> Int32 {
        socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    }

    private nonisolated func withAddress(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    /// Closes everything.
    func stop() {
        listener = nil
        connection?.close()
        connection = nil
        for descriptor in holders { Glibc.close(descriptor) }
        holders = []
        for waiter in connectionWaiters { waiter.resume() }
        connectionWaiters = []
        for waiter in frameWaiters { waiter.resume(throwing: Gone()) }
        frameWaiters = []
    }

    private func accept(_ stream: LoopStream) {
        // As the firmware does: the newest client wins.
        connection?.close()
        connection = stream
        accepted += 1
        decoder.streamEnded()
        stream.startReading(
            { bytes in
                self.decoder.bytesReceived(bytes.bytes, now: .zero) { self.received($0.withUnsafeBytes { Array($0) }) }
            },
            onEnd: { _ in
                if self.connection === stream {
                    self.connection?.close()
                    self.connection = nil
                }
            })
        for waiter in connectionWaiters { waiter.resume() }
        connectionWaiters = []
    }

    private func received(_ frame: [UInt8]) {
        if frameWaiters.isEmpty { frames.append(frame) } else { frameWaiters.removeFirst().resume(returning: frame) }
    }

    private func current() async throws -> LoopStream {
        if connection == nil { await withCheckedContinuation { connectionWaiters.append($0) } }
        guard let connection else { throw Gone() }
        return connection
    }

    func waitForConnection() async throws {
        _ = try await current()
    }

    func sendFrame(_ payload: [UInt8]) async throws {
        let encoder = CompanionFrameEncoder(marker: .fromRadio, ceiling: 512)
        try await sendBytes(try encoder.encode(payload.span.bytes))
    }

    func sendBytes(_ bytes: [UInt8]) async throws {
        try await current().write(bytes)
    }

    func sendHalfFrame() async throws {
        try await sendBytes([0x3E, 100, 0, 1, 2, 3])
    }

    func receiveFrame() async throws -> [UInt8] {
        if !frames.isEmpty { return frames.removeFirst() }
        return try await withCheckedThrowingContinuation { frameWaiters.append($0) }
    }

    func close() async throws {
        try await current().close()
        connection = nil
    }

    func reset() async throws {
        try await current().closeWithReset()
        connection = nil
    }

    /// Leaves what the transport sends unread.
    func stopReading() async throws {
        try await current().pauseReading()
    }
}
