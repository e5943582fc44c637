// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshModuleHost

/// The fixture modules in processes of their own.
@Suite(.timeLimit(.minutes(20))) struct IsolatedModuleTests {
    @Test func `the description comes out of the process as it is in this one`() async throws {
        // On a loop's thread: it waits for a process, and must not hold up other tests.
        try await onLoop { _ in
            for name in ["rude", "scripted"] {
                let loaded = try ModuleLoader().load(name, path: Fixture.path(name))
                let isolated = try Bench.isolated(name)
                #expect(isolated.descriptor == loaded.descriptor)
                #expect(isolated.abi == loaded.abi)
            }
        }
    }

    @Test func `a file that is no module is refused with the runner's own words`() async throws {
        try await onLoop { _ in
            let error = #expect(throws: ModuleRefusal.self) { try Bench.isolated("other-major") }
            #expect(error?.rule.contains("ABI major 2") == true, "\(error?.description ?? "")")
        }
    }

    @Test(arguments: ["rude", "scripted"])
    func `frames go both ways and nothing is left after the end`(name: String) async throws {
        try await onLoop { actor in
            let before = actor.loop.openHandles
            let bench = try Bench(isolated: name, actor.loop)
            let transport = try bench.transport([:])
            try await transport.connect()
            var frames = await transport.receivedData.makeAsyncIterator()
            for byte in 0..<200 as Range<UInt8> {
                try await transport.send(Data([byte, 1]))
                #expect(await frames.next(isolation: actor) == Data([byte, 1]))
            }
            let facts = await transport.diagnostics()
            #expect(facts["host"]?["pid"]?.intValue ?? 0 > 0)
            if name == "rude" {
                #expect(facts["host"]?["module"]?["mode"]?.stringValue == "c")
                #expect(bench.recorder.logged.contains("info: started with a line break module=rude"))
            } else {
                #expect(facts["host"]?["link"]?["sent"] == .int(200))
            }
            await transport.disconnect()
            #expect(await frames.next(isolation: actor) == nil)
            #expect(bench.recorder.summary.first == "phase connecting")
            #expect(bench.recorder.summary.last == "down")
            await bench.factory.shutDown()
            #expect(bench.factory.status.pids.isEmpty)
            try await until(actor.loop) { actor.loop.openHandles == before }
        }
    }

    @Test func `a frame of every length comes back`() async throws {
        try await onLoop { actor in
            let bench = try Bench(isolated: "rude", actor.loop)
            let transport = try bench.transport([:])
            try await transport.connect()
            var frames = await transport.receivedData.makeAsyncIterator()
            for count in [1, 2, 199, 200] {
                try await transport.send(Data(repeating: 7, count: count))
                #expect(await frames.next(isolation: actor)?.count == count)
            }
            #expect(await code { try await transport.send(Data(count: 201)) } == .frameTooLong)
            await bench.factory.shutDown()
        }
    }

    @Test(arguments: ["thread", "burst"])
    func `ten thousand frames arrive in order behind a slow consumer`(what: String) async throws {
        try await onLoop { actor in
            let isThread = what == "thread"
            let bench = try Bench(isolated: isThread ? "rude" : "scripted", actor.loop)
            let transport = try bench.transport(
                isThread ? ["mode": "thread"] : ["script": .string(what), "count": 10_000])
            try await transport.connect()
            var next = 0
            for await frame in await transport.receivedData {
                #expect(number(frame) == next)
                next += 1
                if next % 1_000 == 0 { try await actor.loop.sleep(for: .milliseconds(5)) }
                if next == 10_000 { break }
            }
            #expect(bench.recorder.framesDropped == 0)
            await transport.disconnect()
            await bench.factory.shutDown()
        }
    }

    @Test func `many sends at once are done in order, and those the module refuses as well`() async throws {
        try await onLoop { actor in
            let bench = try Bench(isolated: "rude", actor.loop)
            let transport = try bench.transport(["mode": "choosy"])
            try await transport.connect()
            let received = Task(executorPreference: actor.loop.taskExecutor) {
                var numbers: [Int] = []
                for await frame in await transport.receivedData {
                    numbers.append(number(frame))
                    if numbers.count == 300 { break }
                }
                return numbers
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for value in 0..<300 {
                    group.addTask { try await transport.send(Data([0, 0, UInt8(value >> 8), UInt8(value & 255)])) }
                }
                try await group.waitForAll()
            }
            #expect(await received.value.sorted() == Array(0..<300))
            await bench.factory.shutDown()
        }
    }

    @Test func `what a flooding module cannot deliver is lost in its own process`() async throws {
        try await onLoop { actor in
            let bench = try Bench(isolated: "rude", actor.loop)
            let transport = try bench.transport(["mode": "flood"])
            try await transport.connect()
            try await until(actor.loop) { bench.recorder.framesDropped > 0 }
            var count = 0
            for await _ in await transport.receivedData {
                count += 1
                if count == 5_000 { break }
            }
            #expect(bench.factory.status.crashes == 0)
            await transport.disconnect()
            await bench.factory.shutDown()
        }
    }

    @Test func `a failed connect keeps its code and its text`() async throws {
        try await onLoop { actor in
            let bench = try Bench(isolated: "rude", actor.loop)
            let refused = try bench.transport(["mode": "refuse"])
            #expect(await code { try await refused.connect() } == .hostNotFound)
            let contended = try bench.transport(["mode": "detail"], device: "shed")
            #expect(await code { try await contended.connect() } == .contended)
            await bench.factory.shutDown()
        }
    }

    @Test func `the module's own validation reaches the checker`() async throws {
        try await onLoop { actor in
            let factory = try Bench(isolated: "rude", actor.loop).factory
            let impossible = factory.check(["mode": "impossible"]).values
            let echo = factory.check(["mode": "echo"]).values
            // Nobody has asked it.
            #expect(factory.validate(impossible).isEmpty)
            let questions = try [#require(factory.question(impossible)), #require(factory.question(echo))]
            let issue = OptionIssue(option: "mode", message: "\"impossible\" cannot be done", hint: "try echo")
            #expect(factory.ask(questions) == [questions[0]: [issue], questions[1]: []])
            #expect(factory.question(impossible) == nil)
            #expect(factory.question(echo) == nil)
            #expect(factory.validate(impossible) == [issue])
            #expect(factory.validate(echo).isEmpty)
            await factory.shutDown()
        }
    }

    @Test func `options that a process ends on do not keep it from judging others`() async throws {
        try await onLoop { actor in
            let factory = try Bench(isolated: "rude", actor.loop).factory
            let questions = try ["deadly", "impossible", "echo"].map {
                try #require(factory.question(factory.check(["mode": .string($0)]).values))
            }
            let answers = factory.ask(questions)
            #expect(answers[questions[0]]?.first?.message.contains("could not be checked") == true)
            #expect(answers[questions[1]]?.first?.option == "mode")
            #expect(answers[questions[2]] == [])
            // It is asked again another time.
            #expect(factory.question(factory.check(["mode": "deadly"]).values) == questions[0])
            await factory.shutDown()
        }
    }

    @Test func `scanning, pairing and examining go through the process`() async throws {
        try await onLoop { actor in
            let bench = try Bench(isolated: "scripted", actor.loop)
            var seen: [String] = []
            for try await result in try await bench.factory.scan() {
                seen.append(result.address)
                if seen.count == 4 { break }
            }
            // The others come once, and a consumer that is late misses what was first.
            #expect(seen.contains("aa:3"))
            #expect(Set(seen).isSubset(of: ["aa:1", "aa:2", "aa:3"]))
            let settings = TransportSettings(
                device: "roof", options: [].resolve([:]).values, written: ["address": "aa:1", "script": "echo"],
                environment: bench.recorder.environment)
            #expect(try await bench.factory.pair(settings).address == "aa:1")
            #expect(try await bench.factory.unpair(settings))
            #expect(await bench.factory.examine([settings]).count == 2)
            await bench.factory.shutDown()
        }
    }

    @Test func `standard error becomes log records with their level`() async throws {
        try await onLoop { actor in
            let bench = try Bench(isolated: "rude", actor.loop)
            let transport = try bench.transport(["mode": "fatal"])
            try await transport.connect()
            try await transport.send(Data("E".utf8))
            try await until(actor.loop) { bench.recorder.logged.contains("info: plain text module=rude") }
            #expect(bench.recorder.logged.contains("warning: a warning module=rude"))
            await bench.factory.shutDown()
        }
    }
}
