// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshHCITransport

/// A link that is ended first sends what it has accepted.
struct HCILinkClosingTests {
    private static let handle = ConnectionHandle(0x40)

    /// A controller with one buffer, without a line, and a link on it.
    private static func makeLink(_ actor: isolated LoopActor) async -> (HCIController, HCILink) {
        let controller = HCIController(loop: actor.loop, port: .unix(path: "/nonexistent"), file: nil, log: .none)
        let connection = ConnectionComplete(
            status: .success, handle: handle, role: .central, peer: DeviceAddress(0xC011_2233_4455, .random),
            parameters: .init(interval: 24, latency: 0, supervisionTimeout: 500))
        let link = HCILink(
            controller, connection, own: DeviceAddress(1, .public), peerName: "Roof", bond: nil,
            database: nil, tuning: .init(), settings: .init(),
            blockedUntil: nil)
        controller.here { controller in
            controller.outbound = ACLTransmitStateMachine(.init(buffers: .init(packetLength: 27, count: 1)))
            controller.begin(link)
        }
        return (controller, link)
    }

    private static func complete(_ controller: HCIController, _ count: UInt16) {
        controller.here { $0.take(.completedPackets([.init(handle: handle, count: count)])) }
    }

    @Test(.timeLimit(.minutes(10))) func `the end waits for the last packet to be sent`() async throws {
        try await onLoop(time: .virtual) { actor in
            let (controller, link) = await Self.makeLink(actor)
            let frame = L2CAPFrame(channel: L2CAPFrame.securityChannel, payload: [UInt8](repeating: 8, count: 40))
            #expect(link.here { $0.offer(frame) } == .accepted)
            let (ends, continuation) = AsyncStream.makeStream(of: Bool.self)
            let drain = Task(executorPreference: actor.loop.taskExecutor) {
                _ = actor
                await link.drain(upTo: .seconds(50))
                continuation.yield(link.here { $0.hasUnsent })
            }
            while link.here({ $0.drainers.isEmpty }) { await Task.yield() }
            Self.complete(controller, 1)
            // The second packet of two went into the buffer that is free again.
            #expect(link.here { !$0.drainers.isEmpty && $0.hasUnsent })
            Self.complete(controller, 1)
            var iterator = ends.makeAsyncIterator()
            #expect(await iterator.next() == false)
            await drain.value
        }
    }

    @Test(.timeLimit(.minutes(10))) func `a peer that takes nothing holds the end up for a while only`() async throws {
        try await onLoop(time: .virtual) { actor in
            let (_, link) = await Self.makeLink(actor)
            let frame = L2CAPFrame(channel: L2CAPFrame.securityChannel, payload: [1])
            #expect(link.here { $0.offer(frame) } == .accepted)
            await link.drain(upTo: .milliseconds(5))
            #expect(link.here { $0.hasUnsent })
        }
    }

    @Test(.timeLimit(.minutes(10))) func `a link that is lost is not waited for`() async throws {
        try await onLoop(time: .virtual) { actor in
            let (controller, link) = await Self.makeLink(actor)
            let frame = L2CAPFrame(channel: L2CAPFrame.securityChannel, payload: [1])
            #expect(link.here { $0.offer(frame) } == .accepted)
            let drain = Task(executorPreference: actor.loop.taskExecutor) {
                _ = actor
                await link.end()
            }
            while link.here({ $0.drainers.isEmpty }) { await Task.yield() }
            controller.here { $0.take(.disconnectionComplete(.success, Self.handle, reason: .connectionTimeout)) }
            await drain.value
            #expect(link.here { $0.end != nil && !$0.hasUnsent })
        }
    }
}
