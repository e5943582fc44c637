// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshLoop
import MeshTransportTesting

@testable import Acme

/// YOURS: a device of this kind, led by the rules. It takes one connection at a time, and the next after each end.
actor AcmeDevice: ConformancePeer {
    struct Gone: Error {}

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let path = "/tmp/acme-\(getpid())-\(UInt64.random(in: 0 ... .max)).sock"
    // A Unix socket does not hang while it is connected, and ends in one way.
    nonisolated var abilities: ConformanceAbilities { [.sending, .receiving, .halfFrames, .closing] }

    private var listener: LoopListener?
    private var connection: LoopStream?
    private var connectionWaiters: [CheckedContinuation<Void, Never>] = []
    private var framing = AcmeFraming()
    private var frames: [[UInt8]] = []
    private var frameWaiters: [CheckedContinuation<[UInt8], any Error>] = []

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    func start() throws {
        listener = try LoopListener(loop, on: SocketAddress(unixPath: path)) { self.accept($0) }
    }

    /// Ends everything.
    func stop() {
        listener = nil
        connection?.close()
        connection = nil
        for waiter in connectionWaiters { waiter.resume() }
        connectionWaiters = []
        for waiter in frameWaiters { waiter.resume(throwing: Gone()) }
        frameWaiters = []
    }

    private func accept(_ stream: LoopStream) {
        connection?.close()
        connection = stream
        framing = AcmeFraming()
        stream.startReading(
            { bytes in try? self.framing.bytesReceived(bytes) { self.received(Array($0)) } },
            onEnd: { _ in self.ended(stream) })
        for waiter in connectionWaiters { waiter.resume() }
        connectionWaiters = []
    }

    private func ended(_ stream: LoopStream) {
        guard connection === stream else { return }
        stream.close()
        connection = nil
    }

    private func received(_ frame: [UInt8]) {
        if frameWaiters.isEmpty { frames.append(frame) } else { frameWaiters.removeFirst().resume(returning: frame) }
    }

    private func current() async throws -> LoopStream {
        if connection == nil { await withCheckedContinuation { connectionWaiters.append($0) } }
        guard let connection else { throw Gone() }
        return connection
    }

    // MARK: What the rules ask for

    func sendFrame(_ payload: [UInt8]) async throws { try await current().write(AcmeFraming.encode(payload)) }

    func sendHalfFrame() async throws { try await current().write([100, 0, 1, 2, 3]) }

    func receiveFrame() async throws -> [UInt8] {
        if !frames.isEmpty { return frames.removeFirst() }
        return try await withCheckedThrowingContinuation { frameWaiters.append($0) }
    }

    func close() async throws {
        try await current().close()
        connection = nil
    }

    func reset() throws { throw MissingAbility() }
    func holdConnections() throws { throw MissingAbility() }
    func acceptConnections() throws { throw MissingAbility() }
}
