// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshModuleHost
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshDaemon

/// What a reading asks of modules in processes of their own.
@Suite(.timeLimit(.minutes(20))) struct ModuleInquiryTests {
    private static let folder = ModuleLocator().programFolder ?? "."

    private static func rude() -> ModuleInquiry.Stranger {
        ModuleInquiry.Stranger(
            name: "rude",
            launch: ModuleLaunch(
                .library(name: "rude", path: "\(folder)/libfixture-rude.so"), runner: "\(folder)/meshhost"))
    }

    @Test func `a module is there once it was asked, and judges options once it was asked again`() async throws {
        try await onLoop { actor in
            let inquiry = ModuleInquiry()
            #expect(inquiry.takeQuestions() == nil)
            #expect(try inquiry.introduced(Self.rude()) == nil)
            #expect(try inquiry.introduced(Self.rude()) == nil)
            inquiry.learn(try #require(inquiry.takeQuestions()).ask())
            let module = try #require(try inquiry.introduced(Self.rude()))
            #expect(inquiry.takeQuestions() == nil)
            let factory = ModuleTransportFactory(module: module, loop: actor.loop, log: .none)
            let asking = inquiry.asking(factory)
            #expect(asking.check(["mode": "impossible"]).issues.isEmpty)
            inquiry.learn(try #require(inquiry.takeQuestions()).ask())
            #expect(asking.check(["mode": "impossible"]).issues.map(\.option) == ["mode"])
            #expect(inquiry.takeQuestions() == nil)
            // From now on the factory itself knows it.
            #expect(factory.check(["mode": "impossible"]).issues.map(\.option) == ["mode"])
            await factory.shutDown()
        }
    }

    @Test func `a module that does not say what it is holds up nobody else, and is asked once`() async throws {
        try await onLoop { actor in
            let loop = actor.loop
            let stuck = ModuleInquiry.Stranger(
                name: "stuck", launch: ModuleLaunch(.command(["/bin/sleep", "600"]), runner: "\(Self.folder)/meshhost"))
            let inquiry = ModuleInquiry()
            #expect(try inquiry.introduced(stuck) == nil)
            let questions = try #require(inquiry.takeQuestions())
            // The loop's timers fire while it is waited for.
            let turns = Turns()
            let timer = LoopTimer(loop)
            timer.schedule(after: .milliseconds(1)) { turns.count += 1 }
            let answers = try #require(await questions.ask(beside: loop))
            #expect(turns.count == 1)
            inquiry.learn(answers)
            #expect(throws: ModuleRefusal.self) { try inquiry.introduced(stuck) }
            #expect(inquiry.takeQuestions() == nil)
        }
    }

    @Test func `who is cancelled waits for no module`() async throws {
        try await onLoop { actor in
            let loop = actor.loop
            let inquiry = ModuleInquiry()
            // Soon refused, so that nothing is left at work; still later than the cancelling.
            let missing = ModuleLaunch(.library(name: "rude", path: "/nothing/rude.so"))
            _ = try inquiry.introduced(ModuleInquiry.Stranger(name: "rude", launch: missing))
            let questions = try #require(inquiry.takeQuestions())
            let asking = Task(executorPreference: loop.taskExecutor) { await questions.ask(beside: loop) == nil }
            asking.cancel()
            #expect(await asking.value)
        }
    }

    private final class Turns { var count = 0 }
}
