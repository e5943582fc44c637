// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshModuleHost

/// The host and the module kit against each other, through a real shared object.
@Suite(.timeLimit(.minutes(20))) struct ScriptedModuleTests {
    @Test func `the description crosses with its option table`() throws {
        let module = try ModuleLoader().load("scripted", path: Fixture.path("scripted"))
        #expect(module.descriptor.version == "2.3.4")
        #expect(module.abi == "1.2")
        #expect(
            module.descriptor.options.map(\.name) == [
                "script", "count", "code", "pause", "password", "address", "adapter", "pin", "connect_timeout",
            ])
        #expect(module.descriptor.options[0].defaultText == "echo")
        #expect(module.descriptor.options[3].kind == .duration)
        #expect(module.descriptor.options[4].isSecret)
        #expect(
            ModuleStatus(module).capabilities == [
                "scan", "multilink", "pairing", "pipelined-reads", "adapter", "own-deadlines",
            ])
    }

    @Test func `frames go both ways and nothing is left after the end`() async throws {
        try await onLoop { actor in
            let before = actor.loop.openHandles
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": "echo"])
            try await transport.connect()
            var frames = await transport.receivedData.makeAsyncIterator()
            for byte in 0..<100 as Range<UInt8> {
                try await transport.send(Data([byte, 1]))
                #expect(await frames.next(isolation: actor) == Data([byte, 1]))
            }
            #expect(await transport.diagnostics()["host"]?["link"]?["sent"] == .int(100))
            await transport.disconnect()
            #expect(await frames.next(isolation: actor) == nil)
            #expect(bench.recorder.summary == ["phase connecting", "up 176 script:echo", "down"])
            #expect(bench.recorder.logged.contains("info: connecting device=roof script=echo module=scripted"))
            await bench.factory.shutDown()
            #expect(actor.loop.openHandles == before)
        }
    }

    @Test func `a send that the transport finishes at once takes one turn`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": "echo"])
            try await transport.connect()
            var others = 0
            actor.loop.performLater { others += 1 }
            try await transport.send(Data([1]))
            // Nothing that was queued before has run: the send did not suspend.
            #expect(others == 0)
            await transport.disconnect()
            await bench.factory.shutDown()
        }
    }

    @Test(arguments: ["burst", "burst_thread"])
    func `ten thousand frames arrive in order`(script: String) async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": .string(script), "count": 10_000])
            try await transport.connect()
            var next = 0
            for await frame in await transport.receivedData {
                #expect(number(frame) == next)
                next += 1
                if next == 5_000 { try await actor.loop.sleep(for: .milliseconds(30)) }
                if next == 10_000 { break }
            }
            #expect(bench.recorder.framesDropped == 0)
            await transport.disconnect()
            await bench.factory.shutDown()
        }
    }

    @Test func `nothing is delivered after a disconnect`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": "burst", "count": 5_000])
            try await transport.connect()
            let frames = await transport.receivedData
            try await actor.loop.sleep(for: .milliseconds(10))
            await transport.disconnect()
            #expect(await frames.first { _ in true } == nil)
            await bench.factory.shutDown()
        }
    }

    @Test func `two Swift modules live in one process with copies of their own`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let folder = try #require(ModuleLocator().programFolder)
            let tcp = ModuleTransportFactory(
                module: try ModuleLoader().load("tcp", path: "\(folder)/libmeshhost-tcp.so"), loop: actor.loop,
                log: .none)
            #expect(tcp.check([:]).issues.map(\.option) == ["host"])
            let transport = try bench.transport(["script": "echo"])
            try await transport.connect()
            // Port 1 (tcpmux) listens nowhere.
            let written: [String: JSONValue] = ["host": "127.0.0.1:1"]
            let other = try tcp.makeTransport(
                TransportSettings(
                    device: "shed", options: tcp.check(written).values, written: written,
                    environment: bench.recorder.environment))
            #expect(await code { try await other.connect() } == .connectionRefused)
            try await transport.send(Data([1]))
            await tcp.shutDown()
            #expect(await transport.isConnected)
            await bench.factory.shutDown()
        }
    }

    @Test func `the reason of a loss crosses, after the last frame`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": "lose", "code": "link.contended"])
            try await transport.connect()
            let frames = await transport.receivedData
            try await transport.send(Data([9]))
            var received: [Data] = []
            for await frame in frames { received.append(frame) }
            #expect(received == [Data([9])])
            #expect(bench.recorder.summary.last == "down link.contended as the script says")
            #expect(await !transport.isConnected)
            // A new attempt is a new link.
            try await transport.connect()
            await transport.disconnect()
            await bench.factory.shutDown()
        }
    }

    @Test(arguments: [
        "adapter.unavailable", "link.authentication-failed", "link.characteristic-not-found", "link.connection-failed",
        "link.refused", "link.timeout", "link.contended", "frame.too-long", "link.host-not-found", "argument.invalid",
        "link.closed", "link.closed-by-peer", "link.not-connected", "not-supported", "operation.timeout",
        "permission-denied", "queue.full", "resource.exhausted", "service.unavailable", "internal", "config.invalid",
    ])
    func `every code of a transport survives the boundary`(slug: String) async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": "fail", "code": .string(slug)])
            #expect(await code { try await transport.connect() }?.slug == slug)
            await bench.factory.shutDown()
        }
    }

    @Test func `a cancelled attempt throws only after the module has cleaned up`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": "hang"])
            // How many attempts the module has begun, and hangs in.
            let begun = { bench.recorder.summary.count { $0 == "phase connecting" } }
            let attempt = Task { await code { try await transport.connect() } }
            try await until(actor.loop) { begun() == 1 }
            attempt.cancel()
            #expect(await attempt.value == .cancelled)
            #expect(bench.recorder.count("cleaned up") == 1)
            let second = Task { await code { try await transport.connect() } }
            try await until(actor.loop) { begun() == 2 }
            await transport.disconnect()
            #expect(await second.value == .cancelled)
            let third = Task { await code { try await transport.connect() } }
            try await until(actor.loop) { begun() == 3 }
            await bench.factory.shutDown()
            #expect(await third.value != nil)
        }
    }

    @Test func `a cancellation between any two jobs of an attempt ends it`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": "hang"])
            for rounds in 0..<16 {
                let attempt = Task(executorPreference: actor.loop.taskExecutor) {
                    await code { try await transport.connect() }
                }
                actor.loop.perform(afterRounds: rounds) { attempt.cancel() }
                #expect(await attempt.value == .cancelled)
            }
            await bench.factory.shutDown()
        }
    }

    @Test func `of two attempts at once, one is refused`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            for rounds in 0..<8 {
                let transport = try bench.transport(["script": "hang"], device: "roof\(rounds)")
                let (executor, loop) = (actor.loop.taskExecutor, actor.loop)
                let first = Task(executorPreference: executor) { await code { try await transport.connect() } }
                loop.perform(afterRounds: rounds) {
                    _ = Task(executorPreference: executor) {
                        let refused = await code { try await transport.connect() }
                        #expect(refused == .invalidArgument)
                        first.cancel()
                    }
                }
                #expect(await first.value == .cancelled)
            }
            await bench.factory.shutDown()
        }
    }

    @Test func `concurrent sends keep their order and a failing one fails alone`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": "echo", "pause": "1ms"])
            try await transport.connect()
            let frames = await transport.receivedData
            var sends: [Task<MeshError.Code?, Never>] = []
            for index in 0..<200 as Range<UInt8> {
                let frame = index == 100 ? Data("bad".utf8) : Data([index])
                sends.append(
                    Task {
                        // On the loop, so that they begin in this order: tasks of the pool need not.
                        _ = actor
                        return await code { try await transport.send(frame) }
                    })
            }
            var next: UInt8 = 0
            for await frame in frames {
                #expect(frame == Data([next]))
                next += next == 99 ? 2 : 1
                if next == 200 { break }
            }
            for (index, send) in sends.enumerated() {
                #expect(await send.value == (index == 100 ? .operationTimeout : nil))
            }
            await transport.disconnect()
            await bench.factory.shutDown()
        }
    }

    @Test func `one instance carries the links of many devices`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transports = try (0..<20).map { try bench.transport(["script": "echo"], device: "d\($0)") }
            for transport in transports { try await transport.connect() }
            for (index, transport) in transports.enumerated() {
                try await transport.send(Data([UInt8(index)]))
                #expect(await transport.receivedData.first { _ in true } == Data([UInt8(index)]))
            }
            await bench.factory.shutDown()
            for transport in transports { #expect(await !transport.isConnected) }
        }
    }

    @Test func `bad options are refused by table, by module and at connect`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            #expect(bench.factory.check(["scrip": "echo"]).issues.map(\.option) == ["scrip"])
            #expect(
                bench.factory.check(["script": "dance"]).issues
                    == [OptionIssue(option: "script", message: "no script \"dance\"", hint: "use echo")])
            let transport = try bench.factory.makeTransport(
                TransportSettings(
                    device: "roof", options: bench.factory.check([:]).values, written: ["script": "dance"],
                    environment: bench.recorder.environment))
            do {
                try await transport.connect()
                Issue.record("connected")
            } catch let error as MeshError {
                #expect(error.code == .configurationInvalid)
                #expect(error.message == "no script \"dance\"")
            }
            await bench.factory.shutDown()
        }
    }

    @Test func `scan results cross and the scan ends with its consumer`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            for _ in 0..<2 {
                var results: [ScanResult] = []
                for try await result in try await bench.factory.scan() {
                    results.append(result)
                    if results.count == 2 { break }
                }
                #expect(results[0] == ScanResult(address: "aa:1", name: "první", rssi: -70, advertisement: [1, 2, 3]))
                #expect(results[1] == ScanResult(address: "aa:2", name: ""))
                // A scan that begins before the one before has ended would join it.
                try await actor.loop.sleep(for: .milliseconds(1))
            }
            await bench.factory.shutDown()
        }
    }

    @Test(arguments: [false, true])
    func `which device options mean crosses`(isApart: Bool) async throws {
        try await onLoop { actor in
            func make(_ name: String) throws -> Bench {
                isApart ? try Bench(isolated: name, actor.loop) : try Bench(name, actor.loop)
            }
            let bench = try make("scripted")
            let identity = { (written: [String: JSONValue]) in
                let values = bench.factory.check(written).values
                // One in a process of its own has to be asked first.
                if let question = bench.factory.question(values) { _ = bench.factory.ask([question]) }
                return bench.factory.identity(values)
            }
            #expect(identity(["address": "AA:3", "script": "burst"]) == "aa:3")
            #expect(identity(["address": "aa:3"]) == "aa:3")
            #expect(identity([:]) == nil)
            // A text for which the wire has no room is none, and not a part of it.
            let long = String(repeating: "a", count: 5_000)
            #expect(identity(["address": .string(long)]) == (isApart ? nil : long))
            // A module of ABI 1.1 does not say.
            let rude = try make("rude")
            #expect(rude.factory.identity(rude.factory.check([:]).values) == nil)
            await rude.factory.shutDown()
            await bench.factory.shutDown()
        }
    }

    @Test func `a search that cannot begin says why and the next one is a new one`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": "adapter"])
            #expect(await code { try await transport.connect() } == .adapterUnavailable)
            do {
                for try await result in try await bench.factory.scan() { Issue.record("\(result) was heard") }
                Issue.record("the scan ended without a reason")
            } catch {
                #expect((error as? MeshError)?.code == .adapterUnavailable)
                #expect((error as? MeshError)?.message == "script0 is off; switch it on")
            }
            // Which switches it on.
            _ = await bench.factory.examine([])
            let first = try await bench.factory.scan().first { _ in true }
            #expect(first?.address == "aa:1")
            await bench.factory.shutDown()
        }
    }

    @Test func `a search that the host has ended does not fail the next one`() async throws {
        try await onLoop { actor in
            let bench = try Bench("scripted", actor.loop)
            let transport = try bench.transport(["script": "adapter"])
            #expect(await code { try await transport.connect() } == .adapterUnavailable)
            let doomed = Task { try await bench.factory.scan().first { _ in true } }
            doomed.cancel()
            _ = try? await doomed.value
            try await actor.loop.sleep(for: .milliseconds(1))
            _ = await bench.factory.examine([])
            #expect(try await bench.factory.scan().first { _ in true }?.address == "aa:1")
            await bench.factory.shutDown()
        }
    }
}
