// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import MeshTransportTesting
import Synchronization
import Testing

/// What a transport told, in order.
final class EventLog: Sendable {
    private let state = Mutex<[String]>([])
    private let failures = Mutex<[MeshError]>([])

    var environment: TransportEnvironment {
        TransportEnvironment(
            log: LogSink(threshold: .warning) { level, message, _ in self.add("\(level): \(message)") },
            linkEvents: { event in
                switch event {
                case .phase(let phase): self.add(phase.rawValue)
                case .up(let info): self.add("up \(info.peer) \(info.maximumFrameLength)")
                case .down(let reason):
                    self.add("down \(reason?.code.slug ?? "as asked")")
                    if let reason { self.failures.withLock { $0.append(reason) } }
                case .framesDropped(let count): self.add("dropped \(count)")
                case .bytesSkipped(let count): self.add("skipped \(count)")
                case .adapter(let isAvailable): self.add("adapter \(isAvailable)")
                }
            })
    }

    func add(_ entry: String) { state.withLock { $0.append(entry) } }
    var entries: [String] { state.withLock { $0 } }
    var downs: [MeshError] { failures.withLock { $0 } }

    func clear() { state.withLock { $0 = [] } }
}

/// A transport over a scripted central. Both are on one loop, and its time is virtual.
struct BLEBench: Sendable {
    let central: ScriptedCentral
    let transport: BLETransport
    let log = EventLog()

    init(_ loop: EventLoop, seed: UInt64 = 1, _ change: (inout BLETransportSettings) -> Void = { _ in }) {
        var settings = BLETransportSettings(target: .address(BLEAddress("C0:11:22:33:44:55")!))
        change(&settings)
        central = ScriptedCentral(loop)
        transport = BLETransport(loop: loop, central: central, settings: settings, environment: log.environment)
    }

    /// The error of `connect`.
    func failConnect() async -> MeshError? {
        do {
            try await transport.connect()
            return nil
        } catch {
            return error as? MeshError
        }
    }

    func next(_ count: Int, from stream: AsyncStream<Data>) async -> [[UInt8]] {
        var frames: [[UInt8]] = []
        if count == 0 { return frames }
        for await frame in stream {
            frames.append(Array(frame))
            if frames.count == count { break }
        }
        return frames
    }

    /// Lets whatever is ready run.
    func settle() async {
        for _ in 0..<50 { await Task.yield() }
    }
}

struct BLEConformanceTests {
    @Test func `BLE keeps the transport rules`() async {
        let conformance = TransportConformance(timeLimit: .seconds(600)) { environment in
            let thread = LoopThread()
            let central = ScriptedCentral(thread.loop)
            let transport = BLETransport(
                loop: thread.loop, central: central,
                settings: BLETransportSettings(target: .address(BLEAddress("C0:11:22:33:44:55")!)),
                environment: environment)
            return ConformanceSubject(transport: transport, peer: ScriptedPeer(central: central)) {
                #expect(await central.openLinks == 0)
                #expect(await central.observerCount == 0)
                #expect(await central.mostInFlight <= 1)
                try await thread.shutDown()
            }
        }
        let report = await conformance.run()
        #expect(report.broken == [], "\(report)")
        #expect(
            report.skipped == ["half a frame is not delivered", "frames come back as they went, and in order"])
    }
}

/// The device behind a ``ScriptedCentral`` as a peer of the conformance kit.
private struct ScriptedPeer: ConformancePeer {
    let central: ScriptedCentral
    var abilities: ConformanceAbilities { [.sending, .receiving, .closing, .resetting, .holding] }

    func sendFrame(_ payload: [UInt8]) async throws { await central.link().notify(payload) }
    func sendHalfFrame() async throws { throw MissingAbility() }
    func receiveFrame() async throws -> [UInt8] { await central.nextFrame() }
    func close() async throws { await central.link().lose() }
    func reset() async throws { await central.link().lose(.unreachable) }
    func holdConnections() async throws { await central.always(.connect, .hang) }
    func acceptConnections() async throws {
        await central.always(.connect, .succeed)
        await central.release(.connect)
    }
}
