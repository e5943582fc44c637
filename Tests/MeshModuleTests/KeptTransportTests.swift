// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshModuleHost

/// What a module keeps of a device between two links.
@Suite(.timeLimit(.minutes(10))) struct KeptTransportTests {
    /// How often the transport behind the boundary has been connected.
    private func connections(_ transport: any MeshTransport, isolation: isolated any Actor) async throws -> Int {
        try await transport.connect()
        let frame = await transport.receivedData.first { _ in true }
        await transport.disconnect()
        return number(try #require(frame))
    }

    @Test func `a device keeps its transport from link to link`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": "count"])
            for count in 1...5 { #expect(try await connections(transport, isolation: actor) == count) }
            // The host's transport may be another one: the device is the same.
            let second = try bench.transport(["script": "count"])
            #expect(try await connections(second, isolation: actor) == 6)
            let other = try bench.transport(["script": "count"], device: "shed")
            #expect(try await connections(other, isolation: actor) == 1)
            await bench.factory.shutDown()
        }
    }

    @Test func `other options are another transport`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            #expect(try await connections(bench.transport(["script": "count"]), isolation: actor) == 1)
            #expect(
                try await connections(bench.transport(["script": "count", "password": "x"]), isolation: actor) == 1)
            #expect(try await connections(bench.transport(["script": "count"]), isolation: actor) == 1)
            await bench.factory.shutDown()
        }
    }

    @Test func `a device that is forgotten has another transport when it comes back`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            // Nothing runs yet.
            await bench.factory.forget("roof")
            let transport = try bench.transport(["script": "count"])
            let shed = try bench.transport(["script": "count"], device: "shed")
            for device in [transport, shed] { #expect(try await connections(device, isolation: actor) == 1) }
            await bench.factory.forget("roof")
            await bench.factory.forget("roof")
            #expect(try await connections(transport, isolation: actor) == 1)
            #expect(try await connections(shed, isolation: actor) == 2)
            await bench.factory.shutDown()
        }
    }

    @Test func `a device that is forgotten while its link is up keeps the link`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": "echo"])
            try await transport.connect()
            await bench.factory.forget("roof")
            try await transport.send(Data([7]))
            #expect(await transport.receivedData.first { _ in true } == Data([7]))
            await transport.disconnect()
            #expect(await !transport.isConnected)
            await bench.factory.shutDown()
        }
    }

    @Test func `a device that is forgotten hears nothing of its adapter`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": "adapter"])
            #expect(await code { try await transport.connect() } == .adapterUnavailable)
            await bench.factory.forget("roof")
            _ = await bench.factory.examine([])
            #expect(bench.recorder.summary == ["phase connecting", "adapter false"])
            await bench.factory.shutDown()
        }
    }

    @Test func `two links of one device at a time do not share a transport`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transports = try (0..<2).map { _ in try bench.transport(["script": "echo"]) }
            for transport in transports { try await transport.connect() }
            await transports[0].disconnect()
            #expect(await transports[1].isConnected)
            try await transports[1].send(Data([7]))
            #expect(await transports[1].receivedData.first { _ in true } == Data([7]))
            await bench.factory.shutDown()
        }
    }

    @Test func `an adapter that comes back is told after the attempt that missed it`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": "adapter"])
            #expect(await code { try await transport.connect() } == .adapterUnavailable)
            await transport.disconnect()
            #expect(bench.recorder.summary == ["phase connecting", "adapter false"])
            // That switches it on.
            _ = await bench.factory.examine([])
            // Of an ended link nothing but its adapter is told.
            #expect(bench.recorder.summary == ["phase connecting", "adapter false", "adapter true"])
            try await transport.connect()
            #expect(await transport.isConnected)
            await bench.factory.shutDown()
        }
    }

    @Test func `an attempt that is given up when its adapter goes says why it went`() async throws {
        /// Used on the loop only.
        final class Host: @unchecked Sendable {
            var attempt: Task<MeshError.Code?, Never>?
        }
        try await onLoop { actor in
            let bench = try Bench("rude", actor.loop)
            let host = Host()
            // As the coordinator does.
            let environment = TransportEnvironment(log: .none) {
                if case .adapter = $0 { host.attempt?.cancel() }
            }
            let transport = try bench.transport(["mode": "off"], environment: environment)
            let attempt = Task(executorPreference: actor.loop.taskExecutor) {
                await code { try await transport.connect() }
            }
            host.attempt = attempt
            #expect(await attempt.value == .adapterUnavailable)
            await bench.factory.shutDown()
        }
    }

    @Test func `a transport that is gone hears nothing of its adapter`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            do {
                let transport = try bench.transport(["script": "adapter"])
                #expect(await code { try await transport.connect() } == .adapterUnavailable)
            }
            _ = await bench.factory.examine([])
            #expect(bench.recorder.summary == ["phase connecting", "adapter false"])
            await bench.factory.shutDown()
        }
    }
}
