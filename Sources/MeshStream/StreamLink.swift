// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
public import MeshTransportAPI

/// What a ``StreamTransport`` keeps of its link, present or not: one for the life of the transport, used on its loop only.
public final class StreamLink {
    /// One link that is up.
    struct Present {
        var generation: UInt64
        var stream: LoopStream
        var peer: String
        var since: Duration
    }

    /// What errors call the device: an address, a port.
    let name: String
    let maximumFrame: Int
    let linkEvents: @Sendable (LinkEvent) -> Void
    let frames: CompanionStream
    var machine: StreamLinkStateMachine
    var present: Present?
    var attempt: Task<Result<Void, MeshError>, Never>?
    var writeTimer: LoopTimer?
    var connections: Int64 = 0
    var lastError: MeshError?

    var loop: EventLoop { frames.loop }

    /// `writeTimeout`: how long written frames may wait without any of them going to the kernel.
    public init(
        loop: EventLoop, name: String, writeTimeout: Duration, frames: CompanionStream.Configuration,
        environment: TransportEnvironment
    ) {
        self.name = name
        maximumFrame = frames.maximumFrame
        linkEvents = environment.linkEvents
        self.frames = CompanionStream(loop: loop, frames)
        machine = StreamLinkStateMachine(writeTimeout: writeTimeout)
    }

    /// The stream of the present link.
    public var stream: LoopStream? { present?.stream }

    /// What the present link's other end is called: the address that answered, the port's file.
    public var peer: String? { present?.peer }

    /// How long the present link has been up.
    public var age: Duration? { present.map { loop.now - $0.since } }

    /// For the diagnostics of the transport: the counters, and what is known of the link.
    public var facts: [String: JSONValue] {
        let counters = frames.counters
        var facts: [String: JSONValue] = [
            "connected": .bool(present != nil), "connections": .int(connections),
            "frames_received": .int(counters.framesReceived), "frames_sent": .int(counters.framesSent),
            "bytes_received": .int(counters.bytesReceived), "bytes_sent": .int(counters.bytesSent),
            "bytes_skipped": .int(counters.bytesSkipped), "bad_frames": .int(counters.badFrames),
            "reading_paused": .int(counters.readingPaused), "frames_queued": .int(Int64(frames.inbox?.count ?? 0)),
        ]
        if let age { facts["up_seconds"] = .int(age.components.seconds) }
        if let lastError { facts["last_error"] = .string(lastError.code.slug) }
        return facts
    }

    func report(_ event: LinkEvent) {
        linkEvents(event)
    }

    func error(_ code: MeshError.Code, _ message: String, _ operation: String, cause: LoopError? = nil) -> MeshError {
        MeshError(code, message, cause: cause, context: .init(operation: operation, peer: name))
    }
}
