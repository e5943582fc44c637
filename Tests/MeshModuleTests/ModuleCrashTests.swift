// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Synchronization
import Testing

@testable import MeshModuleHost

/// Processes of modules that end, hang, or say what is no message.
@Suite(.timeLimit(.minutes(20))) struct ModuleCrashTests {
    /// Short deadlines for what hangs, and only for that: a process that is alive must not miss them.
    private static func quick(_ frame: String = "") -> ModuleSettings {
        var settings = ModuleSettings()
        if frame == "H" {
            settings.process.pingInterval = .milliseconds(200)
            settings.process.pingDeadline = .seconds(5)
        }
        settings.stopDeadline = .milliseconds(200)
        return settings
    }

    private static func supervision(limit: Int) -> ModuleSupervisorStateMachine.Configuration {
        var configuration = ModuleSupervisorStateMachine.Configuration()
        configuration.firstDelay = .milliseconds(1)
        configuration.crashLimit = limit
        return configuration
    }

    @Test(arguments: [
        ("S", "was ended by signal 11"), ("X", "ended by itself with status 3"), ("G", "sent a message that is none"),
        ("H", "hangs"),
    ])
    func `a crash ends the link and says how, and the next link works`(frame: String, words: String) async throws {
        try await onLoop { actor in
            let bench = try Bench(
                isolated: "rude", actor.loop, settings: Self.quick(frame), supervision: Self.supervision(limit: 5))
            let crashes = Mutex<[ModuleCrash]>([])
            bench.isolated?.onCrash { crash in crashes.withLock { $0.append(crash) } }
            let other = try bench.transport(["mode": "echo"], device: "shed")
            try await other.connect()
            let transport = try bench.transport(["mode": "fatal"])
            try await transport.connect()
            try? await transport.send(Data(frame.utf8))
            #expect(await transport.receivedData.first { _ in false } == nil)
            #expect(await !transport.isConnected)
            let end = try #require(bench.recorder.summary.last { $0.hasPrefix("down") })
            #expect(end.contains("module rude crashed: its process \(words)"), "\(end)")
            let crash = try #require(crashes.withLock { $0.first })
            #expect(crash.reason.contains(words))
            #expect(crash.restartAfter != nil)
            // The other device's process has nothing to do with it.
            #expect(await other.isConnected)
            try await other.send(Data([1]))
            try await actor.loop.sleep(for: .milliseconds(20))
            try await transport.connect()
            try await transport.send(Data([1]))
            #expect(bench.factory.status.crashes == 1)
            #expect(bench.factory.status.restarts == 1)
            await bench.factory.shutDown()
            #expect(bench.factory.status.pids.isEmpty)
        }
    }

    @Test func `after too many crashes nothing is started until somebody says so`() async throws {
        try await onLoop { actor in
            let bench = try Bench(isolated: "rude", actor.loop, supervision: Self.supervision(limit: 3))
            let transport = try bench.transport(["mode": "fatal"])
            for _ in 0..<3 {
                try await transport.connect()
                try? await transport.send(Data("X".utf8))
                #expect(await transport.receivedData.first { _ in false } == nil)
                try await actor.loop.sleep(for: .milliseconds(20))
            }
            #expect(bench.factory.status.state == .quarantined)
            #expect(await code { try await transport.connect() } == .moduleRefused)
            bench.isolated?.reset()
            #expect(bench.factory.status.state == .loaded)
            try await transport.connect()
            await bench.factory.shutDown()
        }
    }

    @Test func `a start right after a crash is put off`() async throws {
        try await onLoop { actor in
            var supervision = Self.supervision(limit: 5)
            supervision.firstDelay = .seconds(3_600)
            supervision.maximumDelay = .seconds(3_600)
            let bench = try Bench(isolated: "rude", actor.loop, supervision: supervision)
            let transport = try bench.transport(["mode": "fatal"])
            try await transport.connect()
            try? await transport.send(Data("S".utf8))
            #expect(await transport.receivedData.first { _ in false } == nil)
            #expect(await code { try await transport.connect() } == .serviceUnavailable)
            await bench.factory.shutDown()
        }
    }

    @Test func `a module that does not stop is killed`() async throws {
        try await onLoop { actor in
            let bench = try Bench(isolated: "rude", actor.loop, settings: Self.quick())
            let transport = try bench.transport(["mode": "undying"])
            try await transport.connect()
            await bench.factory.shutDown()
            #expect(bench.factory.status.pids.isEmpty)
            #expect(bench.factory.status.crashes == 0)
            #expect(bench.recorder.logged.contains { $0.hasPrefix("error: module does not stop; killed") })
        }
    }

    @Test func `processes that have ended leave no descriptor and no zombie`() async throws {
        try await onLoop { actor in
            let bench = try Bench(isolated: "rude", actor.loop)
            let transport = try bench.transport([:])
            try await transport.connect()
            await transport.disconnect()
            let before = Self.descriptors
            for _ in 0..<20 {
                try await transport.connect()
                try await transport.send(Data([1]))
                await transport.disconnect()
            }
            await bench.factory.shutDown()
            #expect(bench.isolated?.supervisor.starts == 21)
            #expect(bench.factory.status.pids.isEmpty)
            try await until(actor.loop) { Self.descriptors <= before }
        }
    }

    private static var descriptors: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
    }
}
