// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
internal import Glibc
public import MeshLoop
public import MeshTransportAPI
internal import MeshWire

/// A link to a ``SimulatedRadio``: what a newcomer without hardware connects to.
///
/// The radio lives on between links, as hardware does: as long as this transport, or as long as the
/// ``MockTransportFactory`` that made it, for all transports of one device.
///
/// While connected it must not be dropped without ``disconnect()``.
public actor SimulatedRadioTransport: TransportDiagnosing {
    /// Frames kept for a slow consumer; a radio's own send queue is far smaller, and it drops as well.
    private static let inboxLimit = 1_024

    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let unit: SimulatedRadioUnit
    private let environment: TransportEnvironment
    private var inbox: MockInbox?
    private var timer: LoopTimer?
    private var framesReceived: Int64 = 0
    private var framesSent: Int64 = 0
    private var framesDropped: Int64 = 0

    public init(loop: EventLoop, settings: SimulatedRadioSettings, environment: TransportEnvironment) {
        self.init(loop: loop, unit: SimulatedRadioUnit(settings), environment: environment)
    }

    init(loop: EventLoop, unit: SimulatedRadioUnit, environment: TransportEnvironment) {
        self.loop = loop
        self.unit = unit
        self.environment = environment
    }

    private var settings: SimulatedRadioSettings { unit.settings }

    public func connect() async throws {
        guard inbox == nil else {
            throw MeshError(.invalidArgument, "the simulated radio \(settings.name) is connected already")
        }
        report(.phase(.connecting))
        if Task.isCancelled {
            report(.phase(.idle))
            throw MeshError(.cancelled, "the attempt to connect to \(settings.name) was cancelled")
        }
        if unit.radio == nil {
            unit.radio = SimulatedRadio(settings, now: loop.now, clock: UInt32(clamping: time(nil)))
        }
        if let radio = unit.radio, radio.awayUntil > loop.now {
            report(.phase(.idle))
            throw MeshError(.connectionFailed, "\(settings.name) is out of reach; that is what it was told")
        }
        unit.take { self.assumeIsolated { $0.end(reason: MeshError(.linkClosedByPeer, "another client came")) } }
        inbox = MockInbox(limit: Self.inboxLimit)
        timer = LoopTimer(loop)
        report(.phase(.connected))
        report(.up(LinkInfo(maximumFrameLength: CompanionFraming.maximumPayload, peer: peer)))
    }

    public func disconnect() async {
        guard inbox != nil else { return }
        report(.phase(.disconnecting))
        end(reason: nil)
    }

    private func end(reason: MeshError?) {
        guard let inbox else { return }
        self.inbox = nil
        timer = nil
        unit.leave()
        report(.down(reason: reason))
        inbox.finish(discarding: reason == nil)
        report(.phase(.idle))
    }

    public func send(_ data: Data) async throws {
        guard inbox != nil else {
            throw MeshError(.notConnected, "there is no link to \(settings.name); connect first")
        }
        if data.isEmpty { throw MeshError(.invalidArgument, "an empty frame cannot be sent: radios do not answer it") }
        if data.count > CompanionFraming.maximumPayload {
            throw MeshError(
                .frameTooLong,
                "a frame of \(data.count) bytes exceeds the \(CompanionFraming.maximumPayload) that the link carries")
        }
        framesSent += 1
        perform(unit.radio?.commandReceived(Array(data), now: loop.now) ?? [])
    }

    private func deadlineReached() {
        perform(unit.radio?.deadlineReached(now: loop.now) ?? [])
    }

    private func perform(_ outputs: [SimulatedRadio.Output]) {
        for output in outputs {
            switch output {
            case .sendFrame(let frame): deliver(frame)
            case .dropLink: end(reason: MeshError(.linkClosedByPeer, "\(settings.name) closed the link"))
            }
        }
        if let timer, let deadline = unit.radio?.nextDeadline {
            timer.schedule(after: deadline - loop.now) { self.deadlineReached() }
        }
    }

    private func deliver(_ frame: [UInt8]) {
        guard let inbox else { return }
        if inbox.put(Data(frame)) {
            framesReceived += 1
        } else {
            framesDropped += 1
            report(.framesDropped(count: 1))
        }
    }

    public var receivedData: AsyncStream<Data> { inbox?.stream ?? AsyncStream { $0.finish() } }
    public var isConnected: Bool { inbox != nil }
    public var supportsPipelinedReads: Bool { true }

    public func diagnostics() -> JSONValue {
        [
            "peer": .string(peer), "connected": .bool(isConnected), "frames_received": .int(framesReceived),
            "frames_sent": .int(framesSent), "frames_dropped": .int(framesDropped),
        ]
    }

    private nonisolated var peer: String { "simulated radio \(unit.settings.name)" }

    private nonisolated func report(_ event: LinkEvent) {
        environment.linkEvents(event)
    }
}
