// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
public import MeshStream
public import MeshTransportAPI

/// A link to a companion radio over TCP, in the framing of companion radios. While connected it must not be dropped without
/// `disconnect()`.
public actor TCPTransport: StreamTransport, TransportDiagnosing {
    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let settings: TCPSettings
    public let link: StreamLink
    /// Connections being made by the attempt, by their number in it.
    var candidates: [Int: LoopStream] = [:]

    public init(loop: EventLoop, settings: TCPSettings, environment: TransportEnvironment) {
        self.loop = loop
        self.settings = settings
        link = StreamLink(
            loop: loop, name: settings.endpoint.description, writeTimeout: settings.writeTimeout,
            frames: CompanionStream.Configuration(
                maximumFrame: settings.maximumFrame, partialFrameTimeout: settings.partialFrameTimeout,
                checksLayout: settings.checksLayout),
            environment: environment)
    }

    public func openStream() async throws(MeshError) -> OpenedStream {
        let stream = try await openConnection()
        return OpenedStream(stream, peer: stream.peerAddress?.description ?? settings.endpoint.description)
    }

    public func linkOpened(_ stream: LoopStream) {
        stream.setNoDelay()
        // Three probes (tcp(7): TCP_KEEPCNT) 10 s apart; a peer that answers none of them is gone.
        stream.setKeepAlive(
            idle: settings.keepaliveIdle, interval: .seconds(10), count: 3, unacknowledged: settings.userTimeout)
    }

    public func reason(for loss: StreamLinkStateMachine.Loss, _ error: LoopError?) -> MeshError {
        let age = Duration.milliseconds((link.age ?? .zero) / .milliseconds(1))
        return MeshError(TCPLoss(loss, error), of: link.peer ?? settings.endpoint.description, upFor: age, error)
    }

    public func diagnostics() -> JSONValue {
        var facts = link.facts
        facts["peer"] = .string(settings.endpoint.description)
        if let peer = link.peer { facts["address"] = .string(peer) }
        return .object(facts)
    }
}
