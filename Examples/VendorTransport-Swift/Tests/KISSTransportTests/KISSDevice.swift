// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshLoop
import MeshTransportTesting

@testable import KISSTransport

/// A device that speaks KISS behind a pseudo-terminal, led by the rules. The port's name stays the same when it is plugged in
/// again, as those in `/dev/serial/by-id` do.
actor KISSDevice: ConformancePeer {
    struct Gone: Error {}

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    /// A link to the terminal, as long as the device is plugged in.
    nonisolated let path = "/tmp/kiss-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    // A port cannot hang while it is opened, nor end in two ways.
    nonisolated var abilities: ConformanceAbilities { [.sending, .receiving, .halfFrames, .closing] }

    private var device: Int32 = -1
    /// The port's end, kept open: what is said while no host is there must not be an error.
    private var port: Int32 = -1
    private var poll: LoopPoll?
    private var outgoing: [UInt8] = []
    private var bytesSent: Int64 = 0
    private var decoder = KISSDecoder(limit: KISSTransport.maximumFrame)
    private var frames: [[UInt8]] = []
    private var waiters: [CheckedContinuation<[UInt8], any Error>] = []

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    func plugIn() throws {
        // Raw from the beginning: what is said before a host comes must not be echoed.
        var line = termios()
        cfmakeraw(&line)
        var name = [CChar](repeating: 0, count: 64)
        guard openpty(&device, &port, &name, &line, nil) == 0, fcntl(device, F_SETFL, O_NONBLOCK) == 0,
            symlink(name, path) == 0
        else { throw Gone() }
        poll = try LoopPoll(loop, descriptor: device) { _, _ in self.happened() }
        flush()
    }

    func unplug() {
        unlink(path)
        poll = nil
        Glibc.close(device)
        Glibc.close(port)
        outgoing = []
    }

    /// Unplugged for ever.
    func stop() {
        unplug()
        for waiter in waiters { waiter.resume(throwing: Gone()) }
        waiters = []
    }

    // MARK: Bytes

    private func happened() {
        flush()
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = read(device, &buffer, buffer.count)
        guard count > 0 else { return }
        buffer[..<count].withUnsafeBytes { bytes in
            decoder.bytesReceived(bytes) { frame in
                if waiters.isEmpty {
                    frames.append(Array(frame))
                } else {
                    waiters.removeFirst().resume(returning: Array(frame))
                }
            }
        }
    }

    private func say(_ bytes: [UInt8]) {
        outgoing += bytes
        bytesSent += Int64(bytes.count)
        flush()
    }

    /// The terminal takes some KiB; the rest waits for whoever reads it.
    private func flush() {
        let count = write(device, outgoing, outgoing.count)
        if count > 0 { outgoing.removeFirst(count) }
        poll?.wait(for: outgoing.isEmpty ? .readable : [.readable, .writable])
    }

    // MARK: What the rules ask for

    func sendFrame(_ payload: [UInt8]) { say(KISS.encode(payload)) }

    func sendHalfFrame() { say([KISS.frameEnd, KISS.data, 1, 2, 3]) }

    func receiveFrame() async throws -> [UInt8] {
        if !frames.isEmpty { return frames.removeFirst() }
        return try await withCheckedThrowingContinuation { waiters.append($0) }
    }

    /// How many bytes the transport has received.
    private var bytesReceived: @Sendable () async -> Int64 = { 0 }

    func observe(_ bytesReceived: @escaping @Sendable () async -> Int64) {
        self.bytesReceived = bytesReceived
    }

    /// What was said and not read is forgotten when a port hangs up, so a device that is to be heard to its last byte goes
    /// after that.
    func close() async throws {
        while await bytesReceived() < bytesSent { await Task.yield() }
        unplug()
        try plugIn()
    }

    func reset() throws { throw MissingAbility() }
    func holdConnections() throws { throw MissingAbility() }
    func acceptConnections() throws { throw MissingAbility() }
}
