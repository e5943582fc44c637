// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshModuleHost

/// The host against a module in C that breaks rules.
@Suite(.timeLimit(.minutes(20))) struct RudeModuleTests {
    @Test func `frames go both ways and the end is reported once`() async throws {
        try await onLoop { actor in
            let bench = try Bench("rude", actor.loop)
            let transport = try bench.transport([:])
            try await transport.connect()
            #expect(await transport.isConnected)
            #expect(await transport.supportsPipelinedReads)
            #expect(await !transport.supportsWriteWithoutResponse)
            var frames = await transport.receivedData.makeAsyncIterator()
            try await transport.send(Data([1, 2, 3]))
            #expect(await frames.next(isolation: actor) == Data([1, 2, 3]))
            #expect(await code { try await transport.send(Data(count: 201)) } == .frameTooLong)
            #expect(await code { try await transport.send(Data()) } == .invalidArgument)
            let facts = await transport.diagnostics()
            #expect(facts["host"]?["module"]?["mode"]?.stringValue == "c")
            #expect(facts["host"]?["metrics"]?["starts"] != nil)
            await transport.disconnect()
            await transport.disconnect()
            #expect(await frames.next(isolation: actor) == nil)
            #expect(await code { try await transport.send(Data([1])) } == .notConnected)
            #expect(bench.recorder.summary == ["phase connecting", "up 200 rude:1", "down"])
            #expect(bench.recorder.logged.contains("info: started with a line break module=rude"))
            try await transport.connect()
            try await transport.send(Data([4]))
            await bench.factory.shutDown()
            #expect(await !transport.isConnected)
            #expect(await code { try await transport.connect() } == .cancelled)
        }
    }

    @Test func `ten thousand frames of a foreign thread arrive in order behind a slow consumer`() async throws {
        try await onLoop { actor in
            let bench = try Bench("rude", actor.loop)
            let transport = try bench.transport(["mode": "thread"])
            try await transport.connect()
            // By now the thread has filled the queue and waits.
            try await actor.loop.sleep(for: .milliseconds(100))
            var next = 0
            for await frame in await transport.receivedData {
                #expect(number(frame) == next)
                next += 1
                if next % 1_000 == 0 { try await actor.loop.sleep(for: .milliseconds(5)) }
                if next == 10_000 { break }
            }
            #expect(next == 10_000)
            #expect(bench.recorder.framesDropped == 0)
            await transport.disconnect()
            await bench.factory.shutDown()
        }
    }

    @Test func `a disconnect ends a module thread that waits for room`() async throws {
        try await onLoop { actor in
            let bench = try Bench("rude", actor.loop)
            let transport = try bench.transport(["mode": "thread"])
            try await transport.connect()
            try await actor.loop.sleep(for: .milliseconds(20))
            await transport.disconnect()
            await bench.factory.shutDown()
        }
    }

    @Test func `what a module sends against MH_AGAIN is dropped and counted`() async throws {
        try await onLoop { actor in
            let bench = try Bench("rude", actor.loop)
            let transport = try bench.transport(["mode": "deaf"])
            try await transport.connect()
            // 1,024 fit; the next was refused as the rules say, the rest against them.
            let surplus = 10_000 - 1_024 - 1
            try await until(actor.loop) { bench.recorder.framesDropped >= surplus }
            #expect(bench.recorder.framesDropped == surplus)
            var count = 0
            for await frame in await transport.receivedData {
                #expect(number(frame) == count)
                count += 1
                if count == 1_024 { break }
            }
            // The link still works.
            try await transport.send(Data([7, 7, 7, 7]))
            await transport.disconnect()
            await bench.factory.shutDown()
        }
    }

    @Test func `a second tx_done is counted and harms nobody`() async throws {
        try await onLoop { actor in
            let bench = try Bench("rude", actor.loop)
            let transport = try bench.transport(["mode": "double"])
            try await transport.connect()
            for byte in 0..<10 as Range<UInt8> { try await transport.send(Data([byte])) }
            try await until(actor.loop) {
                (await transport.diagnostics()["host"]?["broken_rules"]?.intValue ?? 0) >= 10
            }
            #expect(await transport.diagnostics()["host"]?["broken_rules"] == .int(10))
            await transport.disconnect()
            await bench.factory.shutDown()
        }
    }

    @Test func `sends that find no room wait for writable, in order`() async throws {
        try await onLoop { actor in
            let bench = try Bench("rude", actor.loop)
            let transport = try bench.transport(["mode": "choosy"])
            try await transport.connect()
            let frames = await transport.receivedData
            let sender = Task {
                await withThrowingTaskGroup(of: Void.self) { group in
                    for byte in 0..<100 as Range<UInt8> {
                        group.addTask { try await transport.send(Data([byte])) }
                    }
                }
            }
            var received: Set<UInt8> = []
            for await frame in frames {
                received.insert(frame[frame.startIndex])
                if received.count == 100 { break }
            }
            await sender.value
            await transport.disconnect()
            await bench.factory.shutDown()
        }
    }

    @Test func `a module that is writable before its sender waits gets the frame`() async throws {
        try await onLoop { actor in
            let bench = try Bench("rude", actor.loop)
            let transport = try bench.transport(["mode": "choosy"])
            try await transport.connect()
            // In a task that prefers the loop, what the module has said is dealt with before the sender can wait.
            try await Task(executorPreference: actor.loop.taskExecutor) {
                for byte in 0..<3 as Range<UInt8> { try await transport.send(Data([byte])) }
            }.value
            await transport.disconnect()
            await bench.factory.shutDown()
        }
    }

    @Test func `a cancelled send returns at once and stays accounted for`() async throws {
        try await onLoop { actor in
            var settings = ModuleSettings()
            settings.disconnectDeadline = .milliseconds(50)
            let bench = try Bench("rude", actor.loop, settings: settings)
            let transport = try bench.transport(["mode": "mute"])
            try await transport.connect()
            let send = Task { await code { try await transport.send(Data([1])) } }
            try await until(actor.loop) { await transport.diagnostics()["sends_under_way"] == .int(1) }
            send.cancel()
            #expect(await send.value == .cancelled)
            #expect(await transport.diagnostics()["sends_under_way"] == .int(1))
            let lost = Task { await code { try await transport.send(Data([1])) } }
            try await until(actor.loop) { await transport.diagnostics()["sends_under_way"] == .int(2) }
            // The module never answers disconnect either: the deadline ends the link.
            await transport.disconnect()
            #expect(await lost.value == .linkClosed)
            #expect(bench.recorder.summary.last == "down")
            #expect(bench.recorder.logged.contains { $0.contains("module does not end the link") })
            await bench.factory.shutDown()
        }
    }

    @Test func `a module that never stops is abandoned after the deadline`() async throws {
        try await onLoop { actor in
            var settings = ModuleSettings()
            settings.stopDeadline = .milliseconds(50)
            let bench = try Bench("rude", actor.loop, settings: settings)
            let transport = try bench.transport(["mode": "undying"])
            try await transport.connect()
            await bench.factory.shutDown()
            #expect(await !transport.isConnected)
            #expect(bench.recorder.logged.contains { $0.contains("module does not stop") })
        }
    }

    @Test func `calls after destroy are ignored`() async throws {
        try await onLoop { actor in
            let bench = try Bench("rude", actor.loop)
            let transport = try bench.transport(["mode": "late"])
            try await transport.connect()
            await transport.disconnect()
            await bench.factory.shutDown()
            #expect(bench.recorder.summary.last == "down")
        }
    }

    @Test func `a failed connect keeps its code and its text`() async throws {
        try await onLoop { actor in
            let bench = try Bench("rude", actor.loop)
            let refused = try bench.transport(["mode": "refuse"])
            #expect(await code { try await refused.connect() } == .hostNotFound)
            let contended = try bench.transport(["mode": "detail"], device: "shed")
            do {
                try await contended.connect()
            } catch let error as MeshError {
                #expect(error.code == .contended)
                #expect(error.message == "another host is using this radio; let it go")
                #expect(error.context.device == "shed")
            }
            #expect(await contended.receivedData.first { _ in true } == nil)
            await bench.factory.shutDown()
        }
    }

    @Test func `an op that takes long is counted`() async throws {
        try await onLoop { actor in
            let bench = try Bench("rude", actor.loop)
            let transport = try bench.transport(["mode": "slow"])
            try await transport.connect()
            // Others may have taken long as well: the processors are shared.
            #expect((await transport.diagnostics()["host"]?["slow_ops"]?.intValue ?? 0) >= 1)
            await transport.disconnect()
            await bench.factory.shutDown()
        }
    }

    @Test func `the module's own validation reaches the checker`() async throws {
        try await onLoop { actor in
            let bench = try Bench("rude", actor.loop)
            let issues = bench.factory.check(["mode": "impossible"]).issues
            #expect(issues == [OptionIssue(option: "mode", message: "\"impossible\" cannot be done", hint: "try echo")])
            await bench.factory.shutDown()
        }
    }
}
