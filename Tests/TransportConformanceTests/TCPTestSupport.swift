// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshStream
import MeshTCPTransport
import MeshTransportAPI

/// What a transport reports, in order, one after the other.
final class ReportedEvents: Sendable {
    private let stream: AsyncStream<LinkEvent>
    private let continuation: AsyncStream<LinkEvent>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream()
    }

    var environment: TransportEnvironment {
        TransportEnvironment(log: .none, linkEvents: { [continuation] in continuation.yield($0) })
    }

    /// Waits for the next event that `pick` accepts, and passes over the others.
    func next<Value>(_ pick: (LinkEvent) -> Value?) async -> Value? {
        for await event in stream {
            if let value = pick(event) { return value }
        }
        return nil
    }

    /// The reason of the next `down`.
    func nextDown() async -> MeshError? {
        await next { if case .down(let reason) = $0 { .some(reason) } else { nil } } ?? nil
    }
}

/// Runs a test with a TCP transport and its peer on a loop of their own; fails if a handle is left over.
func withTCP(
    host: String = "127.0.0.1", connectTo name: String? = nil, adjust: (inout TCPSettings) -> Void = { _ in },
    _ body: (TCPTransport, LoopbackPeer, ReportedEvents) async throws -> Void
) async throws {
    let thread = LoopThread()
    let peer = try await LoopbackPeer.start(thread.loop, host: host)
    let events = ReportedEvents()
    var settings = TCPSettings(endpoint: TCPEndpoint(host: name ?? host, port: peer.port))
    adjust(&settings)
    let transport = TCPTransport(loop: thread.loop, settings: settings, environment: events.environment)
    let result: Result<Void, any Error>
    do {
        try await body(transport, peer, events)
        result = .success(())
    } catch {
        result = .failure(error)
    }
    await transport.disconnect()
    await peer.stop()
    try await thread.shutDown()
    try result.get()
}

/// The error that `body` throws.
func meshError(_ body: () async throws -> Void) async -> MeshError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? MeshError
    }
}
