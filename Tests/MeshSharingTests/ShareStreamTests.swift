// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshCrypto
import MeshLoop
import MeshTestSupport
import Testing

@testable import MeshSharing

/// One end of a connection: remembers what it got, and lets a test wait for it.
private final class StreamEnd {
    let stream: ShareStream
    private(set) var bytes: [UInt8] = []
    /// What happened, in its order: `open`, `bytes`, `end`, `drained`.
    private(set) var happened: [String] = []
    private(set) var failure: ShareStream.Failure?
    private var waiter: (condition: () -> Bool, continuation: CheckedContinuation<Void, Never>)?

    init(_ stream: ShareStream) {
        self.stream = stream
    }

    func start() {
        stream.onDrained = { [unowned self] in note("drained") }
        stream.startReading(
            onOpen: { [unowned self] in note("open") },
            { [unowned self] bytes in
                self.bytes += bytes
                note("bytes")
            },
            onEnd: { [unowned self] failure in
                self.failure = failure
                note("end")
            })
    }

    func write(_ bytes: [UInt8]) { bytes.withUnsafeBytes { stream.write($0) } }

    func until(_ condition: @escaping () -> Bool) async {
        guard !condition() else { return }
        await withCheckedContinuation { waiter = (condition, $0) }
    }

    func untilHappened(_ word: String) async { await until { [unowned self] in happened.contains(word) } }

    private func note(_ word: String) {
        if happened.last != word { happened.append(word) }
        guard let waiter, waiter.condition() else { return }
        self.waiter = nil
        waiter.continuation.resume()
    }
}

struct ShareStreamTests {
    /// As the program does it: a peer that goes away is an error of one write.
    init() { signal(SIGPIPE, SIG_IGN) }

    static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 / 251) } }

    /// A connected pair of streams of the kernel.
    private static func connection(
        _ loop: EventLoop, isolation: isolated (any Actor)? = #isolation
    ) async throws -> (client: LoopStream, server: LoopStream) {
        final class Accepted { var stream: LoopStream? }
        let accepted = Accepted()
        let address = try #require(SocketAddress(ip: "127.0.0.1", port: 0))
        let listener = try LoopListener(loop, on: address) { accepted.stream = $0 }
        let client = LoopStream(tcp: loop)
        try await client.connect(to: listener.address)
        // The kernel has the connection; the listener hears of it in one of the next turns.
        while accepted.stream == nil { await Task.yield() }
        withExtendedLifetime(listener) {}
        return (client, try #require(accepted.stream))
    }

    private static func engines() throws -> (client: TLSEngine, server: TLSEngine) {
        let chain = Certificates.server + "\n" + Certificates.intermediate
        let server = try TLSContext(serverCertificates: Array(chain.utf8), key: Array(Certificates.serverKey.utf8))
        let client = try TLSContext(trusting: .authorities(Array(Certificates.authority.utf8)))
        return (try client.makeEngine(serverName: "radio.example"), try server.makeEngine())
    }

    private static func pair(
        _ loop: EventLoop, tls: Bool, isolation: isolated (any Actor)? = #isolation
    ) async throws -> (client: StreamEnd, server: StreamEnd) {
        let streams = try await connection(loop)
        let engines = tls ? try engines() : nil
        let client = StreamEnd(ShareStream(streams.client, engine: engines?.client, loop: loop))
        let server = StreamEnd(ShareStream(streams.server, engine: engines?.server, loop: loop))
        server.start()
        client.start()
        await client.untilHappened("open")
        await server.untilHappened("open")
        return (client, server)
    }

    @Test(arguments: [false, true])
    func `a megabyte goes each way`(tls: Bool) async throws {
        try await onLoop { actor in
            let (client, server) = try await Self.pair(actor.loop, tls: tls)
            #expect(client.stream.tlsVersion == (tls ? "TLSv1.3" : nil))
            client.write(Self.bytes(1_000_000))
            server.write(Self.bytes(1_000_000).reversed())
            await server.until { server.bytes.count == 1_000_000 }
            await client.until { client.bytes.count == 1_000_000 }
            #expect(server.bytes == Self.bytes(1_000_000))
            #expect(client.bytes == Self.bytes(1_000_000).reversed())
            #expect(client.happened.first == "open" && server.happened.first == "open")
        }
    }

    @Test(arguments: [false, true])
    func `an end in good order is told apart from bytes that are missing`(tls: Bool) async throws {
        try await onLoop { actor in
            let (client, server) = try await Self.pair(actor.loop, tls: tls)
            client.write([1, 2, 3])
            client.stream.close()
            await server.untilHappened("end")
            #expect(server.bytes == [1, 2, 3])
            #expect(server.failure == nil)
            #expect(!client.happened.contains("end"))
        }
    }

    @Test(arguments: [false, true])
    func `who has finished writing still gets the answer`(tls: Bool) async throws {
        try await onLoop { actor in
            let (client, server) = try await Self.pair(actor.loop, tls: tls)
            client.write(Self.bytes(100_000))
            client.stream.finishWriting()
            await server.untilHappened("end")
            #expect(server.bytes == Self.bytes(100_000) && server.failure == nil)
            // There is nothing more to be read, and asking for more does no harm.
            server.stream.resumeReading()
            server.write([4])
            server.stream.finishWriting()
            await client.untilHappened("end")
            #expect(client.bytes == [4] && client.failure == nil)
        }
    }

    @Test(arguments: [false, true])
    func `a peer that does not read blocks the writer until it does`(tls: Bool) async throws {
        try await onLoop { actor in
            let (client, server) = try await Self.pair(actor.loop, tls: tls)
            server.stream.pauseReading()
            // More than the kernel's buffers hold on loopback, 6 MiB for receiving and 4 MiB for sending (tcp(7)).
            let count = 12_000_000
            client.write(Self.bytes(count))
            #expect(client.stream.pendingWriteBytes > 0)
            server.stream.resumeReading()
            await client.untilHappened("drained")
            #expect(client.stream.pendingWriteBytes == 0)
            await server.until { server.bytes.count == count }
            #expect(server.failure == nil)
        }
    }

    @Test func `a TLS connection that is cut off is a failure`() async throws {
        try await onLoop { actor in
            let streams = try await Self.connection(actor.loop)
            let engines = try Self.engines()
            let server = StreamEnd(ShareStream(streams.server, engine: engines.server, loop: actor.loop))
            server.start()
            let client = StreamEnd(ShareStream(streams.client, engine: engines.client, loop: actor.loop))
            client.start()
            await client.untilHappened("open")
            client.write([1])
            // Below TLS.
            streams.client.close()
            await server.untilHappened("end")
            #expect(server.bytes == [1])
            #expect(server.failure == .tls(.truncated))
        }
    }

    @Test func `a client that speaks no TLS never opens`() async throws {
        try await onLoop { actor in
            let streams = try await Self.connection(actor.loop)
            let server = StreamEnd(
                ShareStream(streams.server, engine: try Self.engines().server, loop: actor.loop))
            let client = StreamEnd(ShareStream(streams.client, engine: nil, loop: actor.loop))
            server.start()
            client.start()
            #expect(!server.stream.isOpen)
            client.write([0x3C, 2, 0, 0x16, 3])
            await server.untilHappened("end")
            guard case .tls(.handshakeFailed)? = server.failure else {
                Issue.record("\(String(describing: server.failure))")
                return
            }
            #expect(server.happened == ["end"])
            server.stream.close()
            await client.untilHappened("end")
            #expect(client.bytes.isEmpty)
        }
    }

    @Test func `a stream may be closed while it opens, and while it gets bytes`() async throws {
        for moment in ["open", "bytes"] {
            try await onLoop { actor in
                let streams = try await Self.connection(actor.loop)
                let engines = try Self.engines()
                let server = ShareStream(streams.server, engine: engines.server, loop: actor.loop)
                let client = StreamEnd(ShareStream(streams.client, engine: engines.client, loop: actor.loop))
                final class Calls { var count = 0 }
                let calls = Calls()
                server.startReading(
                    onOpen: { if moment == "open" { server.close() } },
                    { _ in
                        calls.count += 1
                        server.close()
                    }, onEnd: { _ in calls.count += 100 })
                client.start()
                await client.untilHappened("open")
                client.write([1])
                client.write([2])
                await client.untilHappened("end")
                #expect(calls.count == (moment == "open" ? 0 : 1))
            }
        }
    }
}
