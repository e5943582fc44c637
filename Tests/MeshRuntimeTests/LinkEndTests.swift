// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshTransportAPI
import Testing

@testable import MeshRuntime

/// The last moments of a link, with a transport that hands frames over by plain calls.
@Suite(.timeLimit(.minutes(20)))
struct LinkEndTests {
    @Test func `no frame reaches a session that was told of the end`() async throws {
        try await Host.run { host in
            let session = ScriptedSession(host.loop, isWilling: true)
            let events = await host.listen(EventFilter(types: ["link.ready"]))
            try await Self.add(host, session)
            await events.next("link.ready")
            #expect(await session.told.take() == .established(1))
            try await host.coordinator.removeDevice("roof")
            #expect(await session.told.take() == .lost(nil))
            #expect(await session.told.count == 0)
        }
    }

    @Test func `a send that ends only with its link does not hold the end up`() async throws {
        try await Host.run { host in
            let session = SendingSession(host.loop)
            let events = await host.listen()
            try await Self.add(host, session)
            await events.next("link.ready")
            try await host.coordinator.removeDevice("roof")
            #expect(await session.failure == MeshError(.linkClosed, ""))
        }
    }

    private static func add(_ host: Host, _ session: any LinkSession) async throws {
        try await host.coordinator.addDevice(
            DeviceSettings(
                name: "roof", link: DeviceLinkSettings(policy: Host.hasty), session: session, initialIntent: .connect
            ) { [loop = host.loop] environment in LingeringTransport(loop, environment) })
    }
}

/// Hands a frame over while it ends its link, and is done with no frame before that.
private actor LingeringTransport: DirectTransport {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let environment: TransportEnvironment
    private var frames: FrameQueue?
    private var senders: [CheckedContinuation<Void, Never>] = []

    init(_ loop: EventLoop, _ environment: TransportEnvironment) {
        self.loop = loop
        self.environment = environment
    }

    func connect() async throws {
        frames = FrameQueue()
        environment.linkEvents(.up(LinkInfo(maximumFrameLength: 172, peer: "script")))
    }

    func disconnect() async {
        guard let frames else { return }
        self.frames = nil
        frames.put(Data("late".utf8))
        environment.linkEvents(.down(reason: nil))
        frames.finish(discarding: true)
        for sender in senders { sender.resume() }
        senders = []
    }

    func send(_ data: Data) async throws {
        await withCheckedContinuation { if frames == nil { $0.resume() } else { senders.append($0) } }
        throw MeshError(.linkClosed, "the link was ended before the frame was done")
    }

    nonisolated func sendAtOnce(_ frame: Data) -> Bool { false }

    func deliverFrames(to handler: @escaping @Sendable (Data) -> Bool) {
        frames?.deliver(to: handler)
    }

    func resumeDelivery() {
        frames?.resumeDelivery()
    }

    var receivedData: AsyncStream<Data> {
        guard let frames else { return AsyncStream { $0.finish() } }
        return AsyncStream(unfolding: { await self.next(frames) })
    }

    private func next(_ frames: FrameQueue) async -> Data? {
        await frames.next(isolation: self) { [loop] in loop.perform($0) }
    }

    var isConnected: Bool { frames != nil }
}

/// Has a send under way from the first moment of its link.
private actor SendingSession: LinkSession {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private var sending: Task<MeshError?, Never>?
    private(set) var failure: MeshError?

    init(_ loop: EventLoop) { self.loop = loop }

    nonisolated func linkOpened(_ link: EstablishedLink) {
        assumeIsolated { $0.begin(link) }
    }

    private func begin(_ link: EstablishedLink) {
        sending = Task(executorPreference: loop.taskExecutor) {
            do {
                try await link.send(Data("out".utf8))
                return nil
            } catch {
                return MeshError(wrapping: error)
            }
        }
    }

    func linkEstablished(_ link: EstablishedLink) async throws(MeshError) {}
    nonisolated func frameReceived(_ frame: Data) {}
    nonisolated func linkLost(reason: MeshError?) {}

    func linkEnded() async {
        failure = await sending?.value
        sending = nil
    }
}
