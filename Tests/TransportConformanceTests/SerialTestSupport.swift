// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshLoop
import MeshStream
import MeshTestSupport
import MeshTransportAPI
import MeshTransportTesting
import MeshWire

@testable import MeshSerialTransport

/// A radio at a serial port that a test leads, and can unplug and plug in again. The port's name stays the same, as those in
/// `/dev/serial/by-id` do.
actor SerialPeer: ConformancePeer {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let folder: String
    nonisolated var path: String { folder + "/by-id/radio" }
    // A port has no attempt that could hang: opening it succeeds or fails at once.
    nonisolated var abilities: ConformanceAbilities { [.sending, .receiving, .halfFrames, .closing] }

    private var terminal: PseudoTerminal?
    private var decoder = CompanionFrameDecoder(.init(marker: .fromClient, ceiling: 512))
    private var frames: [[UInt8]] = []
    private var waiters: [CheckedContinuation<[UInt8], any Error>] = []
    private var bytesSent: Int64 = 0
    /// How many bytes the transport says to have received.
    private var bytesReceived: (@Sendable () async -> Int64)?

    struct Gone: Error {}

    private init(_ loop: EventLoop, _ folder: String) {
        self.loop = loop
        self.folder = folder
    }

    /// Plugged in.
    static func start(_ loop: EventLoop) async throws -> SerialPeer {
        let folder = "/tmp/meshhost-port-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        guard mkdir(folder, 0o700) == 0 else { throw Gone() }
        let peer = SerialPeer(loop, folder)
        try await peer.plugIn()
        return peer
    }

    func observe(_ bytesReceived: @escaping @Sendable () async -> Int64) {
        self.bytesReceived = bytesReceived
    }

    func plugIn() throws {
        let terminal = try PseudoTerminal(loop)
        terminal.onReceived = { self.received() }
        self.terminal = terminal
        decoder.streamEnded()
        mkdir(folder + "/by-id", 0o700)
        guard symlink(terminal.path, path) == 0 else { throw Gone() }
    }

    /// As udev does it, which removes the folder with the last link in it.
    func unplug() {
        unlink(path)
        rmdir(folder + "/by-id")
        terminal?.unplug()
        terminal = nil
    }

    func stop() {
        unplug()
        rmdir(folder)
        for waiter in waiters { waiter.resume(throwing: Gone()) }
        waiters = []
    }

    private func received() {
        guard let bytes = terminal?.take() else { return }
        decoder.bytesReceived(bytes.span.bytes, now: .zero) { frame in
            let frame = frame.withUnsafeBytes { Array($0) }
            if waiters.isEmpty { frames.append(frame) } else { waiters.removeFirst().resume(returning: frame) }
        }
    }

    func stall() {
        terminal?.isStalled = true
    }

    func sendBytes(_ bytes: [UInt8]) throws {
        guard let terminal else { throw Gone() }
        terminal.send(bytes)
        bytesSent += Int64(bytes.count)
    }

    func sendFrame(_ payload: [UInt8]) throws {
        try sendBytes(try CompanionFrameEncoder(marker: .fromRadio, ceiling: 512).encode(payload.span.bytes))
    }

    func sendHalfFrame() throws {
        try sendBytes([0x3E, 100, 0, 1, 2, 3])
    }

    func receiveFrame() async throws -> [UInt8] {
        if !frames.isEmpty { return frames.removeFirst() }
        return try await withCheckedThrowingContinuation { waiters.append($0) }
    }

    /// The kernel forgets what was received and not read when a port hangs up, so a device that is to be heard to its last
    /// byte goes after that. Plugged in again at once.
    func close() async throws {
        if let bytesReceived {
            while await bytesReceived() < bytesSent { await Task.yield() }
        }
        unplug()
        try plugIn()
    }

    func reset() async throws { throw MissingAbility() }
    func holdConnections() async throws { throw MissingAbility() }
    func acceptConnections() async throws { throw MissingAbility() }
}

/// Runs a test with a serial transport and its radio on a loop of their own; fails if a handle is left over.
func withSerial(
    adjust: (inout SerialSettings) -> Void = { _ in },
    _ body: (SerialTransport, SerialPeer, ReportedEvents) async throws -> Void
) async throws {
    let thread = LoopThread()
    let peer = try await SerialPeer.start(thread.loop)
    let events = ReportedEvents()
    var settings = SerialSettings(choice: .path(peer.path))
    adjust(&settings)
    let watcher = SerialPortWatcher(loop: thread.loop)
    let transport = SerialTransport(
        loop: thread.loop, settings: settings, watcher: watcher, environment: events.environment)
    let result: Result<Void, any Error>
    do {
        try await body(transport, peer, events)
        result = .success(())
    } catch {
        result = .failure(error)
    }
    await transport.disconnect()
    await peer.stop()
    await LoopActor(thread.loop).run { _ in watcher.close() }
    try await thread.shutDown()
    try result.get()
}
