// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshCrypto
import MeshLoop
import MeshRuntime
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshSharing

extension ShareTestClient {
    /// Proves to have a token; what the host says in the end.
    func prove(_ name: String, _ secret: String, followedBy next: Data = Data()) async throws -> Data? {
        guard let question = try await ask(ShareProof.nameFrame(name.utf8)) else { return nil }
        let nonce = try #require(ShareProof.nonce(in: question))
        let code = ShareProof.codeFrame(
            try ShareProof.code(secret: secret, nonce: nonce, name: Array(name.utf8)))
        try await sendRaw(Data([0x3C, UInt8(code.count), 0]) + code + next)
        return await self.next()
    }
}

/// Shares with tokens.
struct TokenTests {
    static let secret = "0123456789abcdef"
    static let tokens = [
        ShareToken(name: "alice", role: .admin, secret: secret),
        ShareToken(name: "bob", role: .observe, secret: "fedcba9876543210"),
    ]
    static let accepted = Data([0x00])
    static let failed = Data([0x01, 0x06])
    static let unsupported = Data([0x01, 0x01])
    static let getCore = RadioSessionTests.getCore
    static let core = RadioSessionTests.core

    static func run(
        _ adjust: @Sendable (inout ShareSettings) -> Void = { _ in },
        _ body: @Sendable (isolated SharingBench) async throws -> Void
    ) async throws {
        try await SharingBench.run(
            share: {
                $0.tokens = Self.tokens
                adjust(&$0)
            }, body)
    }

    @Test func `who proves a token is a client in its role`() async throws {
        try await Self.run { bench in
            let alice = try await bench.client()
            let join = try await bench.event("client.join") {
                let word = try await alice.prove("alice", Self.secret)
                #expect(word == Self.accepted)
            }
            #expect(join.data["token"] == "alice" && join.data["role"] == "admin")
            let bob = try await bench.client()
            #expect(try await bob.prove("bob", "fedcba9876543210") == Self.accepted)
            // SET_ADVERT_NAME is for admins, and this radio does not know it.
            let name = Data([0x08]) + Data("x".utf8)
            _ = try await alice.ask(name)
            #expect(await bench.radio.received.contains(name))
            let count = await bench.radio.received.count
            #expect(try await bob.ask(name) == Self.unsupported)
            #expect(await bench.radio.received.count == count)
            #expect(await bench.session.clientSnapshots.map(\.token) == ["alice", "bob"])
            #expect(await bench.session.clientSnapshots.map(\.role) == [.admin, .observe])
            #expect(await bench.session.shareSnapshots.map(\.tokens) == [["alice", "bob"]])
        }
    }

    @Test func `a wrong secret and an unknown name are told the same, and that is all`() async throws {
        try await Self.run { bench in
            for (name, secret) in [("alice", "0123456789abcdeF"), ("carol", Self.secret)] {
                let client = try await bench.client()
                #expect(try await client.prove(name, secret) == Self.failed)
                #expect(await client.next() == nil)
            }
            #expect(await bench.session.clientCount == 0)
            #expect(await bench.session.counters.left[.denied] == 2)
        }
    }

    @Test func `a client that knows nothing of tokens is told that its command is not supported`() async throws {
        try await Self.run { bench in
            let client = try await bench.client()
            let refused = try await bench.event("client.refused") {
                let answer = try await client.ask(CompanionFrame.appStart(name: "app"))
                #expect(answer == Self.unsupported)
            }
            #expect(refused.data["reason"] == "proof")
            #expect(await client.next() == nil)
        }
    }

    @Test func `pushes go to clients, not to those who have still to prove that they are some`() async throws {
        try await Self.run { bench in
            let client = try await bench.client()
            let waiting = try await bench.client()
            #expect(try await client.prove("alice", Self.secret) == Self.accepted)
            let advert = Data([0x80]) + Data(repeating: 7, count: 32)
            await bench.radio.push(advert)
            #expect(await client.next() == advert)
            #expect(try await waiting.prove("bob", "fedcba9876543210") == Self.accepted)
        }
    }

    @Test func `what comes in one piece with the proof is served`() async throws {
        try await Self.run { bench in
            let client = try await bench.client()
            let commands = Data([0x3C, 2, 0]) + Self.getCore + Data([0x3C, 2, 0]) + RadioSessionTests.getRadio
            #expect(try await client.prove("alice", Self.secret, followedBy: commands) == Self.accepted)
            #expect(await client.next() == Self.core)
            #expect(await client.next() == RadioSessionTests.radioStats)
        }
    }

    @Test func `a program of this machine that fails again and again is told so late, and is in nobody's way`()
        async throws
    {
        try await Self.run { bench in
            for _ in 0..<3 {
                let client = try await bench.client()
                #expect(try await client.prove("alice", "a wrong secret") == Self.failed)
                #expect(await client.next() == nil)
            }
            let begin = bench.loop.now
            let wrong = try await bench.client()
            let question = try #require(try await wrong.ask(ShareProof.nameFrame("alice".utf8)))
            let nonce = try #require(ShareProof.nonce(in: question))
            let code = try ShareProof.code(secret: "a wrong secret", nonce: nonce, name: Array("alice".utf8))
            try await wrong.send(ShareProof.codeFrame(code))
            // The same token, from the same user, while that one waits.
            let right = try await bench.client()
            #expect(try await right.prove("alice", Self.secret) == Self.accepted)
            #expect(try await right.ask(Self.getCore) == Self.core)
            #expect(bench.loop.now - begin < FailedProofs.lateness)
            #expect(await wrong.next() == Self.failed)
            #expect(bench.loop.now - begin >= FailedProofs.lateness)
            #expect(await wrong.next() == nil)
            #expect(await bench.session.counters.left[.denied] == 4)
        }
    }

    @Test func `one that leaves before it is told so leaves nothing behind`() async throws {
        try await Self.run { bench in
            for _ in 0..<3 {
                let client = try await bench.client()
                _ = try await client.prove("alice", "a wrong secret")
            }
            // Of refusals that follow each other only one a second is told of.
            try await bench.loop.sleep(for: .seconds(2))
            let client = try await bench.client()
            let refused = try await bench.event("client.refused") {
                _ = try await client.ask(ShareProof.nameFrame("alice".utf8))
                try await client.send(ShareProof.codeFrame([UInt8](repeating: 0, count: 32)))
                await client.close()
            }
            #expect(refused.data["reason"] == "proof")
            #expect(await !bench.session.hasEntrants)
        }
    }

    @Test func `a crowd of connections that say nothing keeps nobody out`() async throws {
        try await Self.run({ $0.maximumClients = 1 }) { bench in
            var silent: [ShareTestClient] = []
            for _ in 0..<Entrant.limit + 5 { silent.append(try await bench.client()) }
            let client = try await bench.client()
            #expect(try await client.prove("alice", Self.secret) == Self.accepted)
            #expect(try await client.ask(Self.getCore) == Self.core)
            // The oldest had to go.
            #expect(await silent[0].next() == nil)
            // Now the share has all the clients that it may have.
            let tooMany = try await bench.client()
            #expect(await tooMany.next() == nil)
            let late = silent[silent.count - 1]
            #expect(try await late.prove("bob", "fedcba9876543210") == Self.accepted)
            #expect(await late.next() == nil)
            #expect(await bench.session.clientCount == 1)
        }
    }

    @Test func `a token's place in the messages is its own, whatever its program is called`() async throws {
        try await Self.run { bench in
            let message = Data([0x11, 0, 0, 0, 0, 0xFF, 0, 1, 2, 3, 4]) + Data("Bob: Hi".utf8)
            let first = try await bench.client()
            _ = try await first.prove("alice", Self.secret)
            _ = try await first.ask(Data([0x16, 3]))
            _ = try await first.ask(CompanionFrame.appStart(name: "phone"))
            await bench.radio.queue([message])
            await bench.radio.push(Data([0x83]))
            #expect(await first.next() == Data([0x83]))
            #expect(try await first.ask(Data([0x0A])) == message)
            #expect(try await first.ask(Data([0x0A])) == Data([0x0A]))
            #expect(await bench.session.clientSnapshots.map(\.app) == ["phone"])
            await first.close()
            // Another program, with the same token and with another one.
            for (name, secret, answer) in [
                ("alice", Self.secret, Data([0x0A])), ("bob", "fedcba9876543210", message),
            ] {
                let client = try await bench.client()
                _ = try await client.prove(name, secret)
                _ = try await client.ask(Data([0x16, 3]))
                _ = try await client.ask(CompanionFrame.appStart(name: "desk"))
                var reply = try await client.ask(Data([0x0A]))
                while reply == Data([0x83]) { reply = await client.next() }
                #expect(reply == answer, "\(name)")
            }
        }
    }

    @Test func `a share without tokens asks for none, and no radio hears of it`() async throws {
        try await SharingBench.run(share: { $0.role = .owner }) { bench in
            let client = try await bench.client()
            #expect(try await client.ask(ShareProof.nameFrame("alice".utf8)) == Self.unsupported)
            #expect(try await client.ask(Self.getCore) == Self.core)
            #expect(await !bench.radio.received.contains { $0.first == ShareProof.code })
        }
    }

    @Test func `another secret ends the token's clients, and no others`() async throws {
        try await Self.run { bench in
            let alice = try await bench.client()
            let bob = try await bench.client()
            _ = try await alice.prove("alice", Self.secret)
            _ = try await bob.prove("bob", "fedcba9876543210")
            let renewed = [ShareToken(name: "alice", role: .admin, secret: "another one of 16"), Self.tokens[1]]
            try await bench.session.renewAccess(ofShare: 0, tokens: renewed, tls: nil)
            #expect(await alice.next() == nil)
            #expect(try await bob.ask(Self.getCore) == Self.core)
            let again = try await bench.client()
            #expect(try await again.prove("alice", Self.secret) == Self.failed)
            let right = try await bench.client()
            #expect(try await right.prove("alice", "another one of 16") == Self.accepted)
        }
    }

    @Test(arguments: [
        [ShareToken(name: "alice", role: .admin, secret: "another one of 16")],
        [ShareToken(name: "alice", role: .observe, secret: secret)], [],
    ])
    func `a code for a token that is not the same any more lets nobody in`(renewed: [ShareToken]) async throws {
        try await Self.run { bench in
            let client = try await bench.client()
            let question = try #require(try await client.ask(ShareProof.nameFrame("alice".utf8)))
            let nonce = try #require(ShareProof.nonce(in: question))
            try await bench.session.renewAccess(ofShare: 0, tokens: renewed + [Self.tokens[1]], tls: nil)
            let code = try ShareProof.code(secret: Self.secret, nonce: nonce, name: Array("alice".utf8))
            let word = try await client.ask(ShareProof.codeFrame(code))
            try #require(word == Self.failed)
            #expect(await client.next() == nil)
            #expect(await bench.session.clientCount == 0)
        }
    }

    @Test
    func `a share that gets tokens keeps no client without one, and one that has none any more keeps none with one`()
        async throws
    {
        try await SharingBench.run { bench in
            let stranger = try await bench.client()
            #expect(try await stranger.ask(Self.getCore) == Self.core)
            try await bench.session.renewAccess(ofShare: 0, tokens: Self.tokens, tls: nil)
            try #require(await bench.session.clientCount == 0)
            #expect(await stranger.next() == nil)
            let alice = try await bench.client()
            #expect(try await alice.prove("alice", Self.secret) == Self.accepted)
            try await bench.session.renewAccess(ofShare: 0, tokens: [], tls: nil)
            #expect(await alice.next() == nil)
        }
    }

    @Test func `a timer that is early leaves no silent connection for ever`() async throws {
        try await Self.run { bench in
            let silent = try await bench.client()
            var isWatched: Bool?
            repeat {
                await Task.yield()
                isWatched = await bench.session.isWatchedAfterAnEarlyTimer
            } while isWatched == nil
            #expect(isWatched == true)
            await silent.close()
        }
    }
}

extension RadioSession {
    /// Whether anybody is waited for that is no client yet.
    fileprivate var hasEntrants: Bool { !entrants.isEmpty }

    /// Has the timer of a connection that is no client yet fire before its time; whether it is set again. Nil: there is no
    /// such connection.
    fileprivate var isWatchedAfterAnEarlyTimer: Bool? {
        guard let entrant = entrants.values.first else { return nil }
        // However long the test has had to wait for a processor.
        entrant.access = ShareAccessStateMachine(now: loop.now + .seconds(3_600))
        entrant.timer.cancel()
        deadlineReached(entrant)
        return entrant.timer.isScheduled
    }
}
