// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshMockTransport
import MeshSerialTransport
import MeshStream
import MeshTCPTransport
import MeshTransportAPI
import MeshTransportTesting
import Testing

struct ConformanceTests {
    /// How long a rule may take before it counts as broken. Tests share the processors: it decides no more than that.
    private let patience = Duration.seconds(600)

    @Test func `TCP keeps the transport rules`() async {
        let conformance = TransportConformance(timeLimit: patience) { environment in
            let thread = LoopThread()
            let peer = try await LoopbackPeer.start(thread.loop)
            let transport = TCPTransport(
                loop: thread.loop,
                settings: TCPSettings(endpoint: TCPEndpoint(host: peer.host, port: peer.port), checksLayout: false),
                environment: environment)
            return ConformanceSubject(transport: transport, peer: peer) {
                await peer.stop()
                try await thread.shutDown()
            }
        }
        let report = await conformance.run()
        #expect(report.broken == [], "\(report)")
        // For devices that nobody leads.
        #expect(report.skipped == ["frames come back as they went, and in order"])
    }

    @Test func `a serial port keeps the transport rules`() async {
        let conformance = TransportConformance(timeLimit: patience) { environment in
            let thread = LoopThread()
            let peer = try await SerialPeer.start(thread.loop)
            let watcher = SerialPortWatcher(loop: thread.loop)
            let transport = SerialTransport(
                loop: thread.loop, settings: SerialSettings(choice: .path(peer.path), checksLayout: false),
                watcher: watcher, environment: environment)
            await peer.observe {
                if case .int(let count)? = await transport.diagnostics()["bytes_received"] { count } else { 0 }
            }
            return ConformanceSubject(transport: transport, peer: peer) {
                await peer.stop()
                await LoopActor(thread.loop).run { _ in watcher.close() }
                try await thread.shutDown()
            }
        }
        let report = await conformance.run()
        #expect(report.broken == [], "\(report)")
    }

    @Test func `the mock keeps the transport rules`() async {
        let conformance = TransportConformance(timeLimit: patience) { environment in
            let mock = MockTransport(environment: environment)
            return ConformanceSubject(transport: mock, peer: MockPeer(mock: mock))
        }
        let report = await conformance.run()
        #expect(report.broken == [], "\(report)")
        #expect(
            report.skipped == ["half a frame is not delivered", "frames come back as they went, and in order"])
    }

    @Test func `the simulated radio keeps the transport rules`() async {
        let conformance = TransportConformance(timeLimit: patience) { environment in
            let thread = LoopThread()
            let transport = SimulatedRadioTransport(
                loop: thread.loop, settings: SimulatedRadioSettings(), environment: environment)
            return ConformanceSubject(transport: transport, peer: SilentPeer()) { try await thread.shutDown() }
        }
        let report = await conformance.run()
        #expect(report.broken == [], "\(report)")
    }

    @Test func `the factories describe themselves and their options`() async throws {
        let thread = LoopThread()
        #expect(
            TransportConformance.checkDescriptor(
                of: TCPTransportFactory(loop: thread.loop), required: ["host": "192.0.2.1"]) == [])
        #expect(
            TransportConformance.checkDescriptor(
                of: SerialTransportFactory(loop: thread.loop), required: ["path": "/dev/ttyACM0"]) == [])
        #expect(TransportConformance.checkDescriptor(of: MockTransportFactory(loop: thread.loop), required: [:]) == [])
        try await thread.shutDown()
    }

    @Test func `the kit names the rules that a careless transport breaks`() async {
        let conformance = TransportConformance(timeLimit: patience) { _ in
            ConformanceSubject(transport: CarelessTransport(), peer: SilentPeer())
        }
        let report = await conformance.run()
        #expect(
            report.broken.contains {
                $0.hasPrefix("before connect nothing can be sent and the stream has finished: send before connect")
            }, "\(report)")
        #expect(report.description.contains("broken: connect reports the phases"))
        #expect(!report.skipped.isEmpty)
    }
}

/// The test side of a mock as a peer.
actor MockPeer: ConformancePeer {
    let mock: MockTransport
    private var received = 0
    nonisolated var abilities: ConformanceAbilities { [.sending, .receiving, .closing, .resetting, .holding] }

    init(mock: MockTransport) {
        self.mock = mock
    }

    func sendFrame(_ payload: [UInt8]) async throws { await mock.simulateReceive(.init(payload)) }
    func sendHalfFrame() async throws { throw MissingAbility() }
    func receiveFrame() async throws -> [UInt8] {
        received += 1
        let index = received - 1
        return Array(await mock.waitForSentData(count: received)[index])
    }
    func close() async throws { await mock.vanish() }
    func reset() async throws { await mock.vanish() }
    func holdConnections() async throws { await mock.hangNextConnect() }
    func acceptConnections() async throws {}
}

/// A transport that keeps hardly any rule.
private struct CarelessTransport: MeshTransport {
    func connect() async throws {}
    func disconnect() async {}
    func send(_ data: Data) async throws {}
    var receivedData: AsyncStream<Data> { AsyncStream { $0.finish() } }
    var isConnected: Bool { false }
}
