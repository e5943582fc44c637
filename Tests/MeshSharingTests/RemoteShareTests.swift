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

    @Test func `after three failures nobody from there is listened to`() async throws {
        try await Self.run { bench in
            for _ in 0..<3 {
                let client = try await bench.client()
                #expect(try await client.prove("alice", "a wrong secret") == Self.failed)
            }
            let client = try await bench.client()
            #expect(await client.next() == nil)
            #expect(await bench.session.counters.left[.denied] == 4)
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

/// Shares with TLS, and the bridge that leads to them.
struct BridgeTests {
    static let tls = ShareTLS(
        certificates: Array((Certificates.server + "\n" + Certificates.intermediate).utf8),
        key: Array(Certificates.serverKey.utf8))
    static let authority = Array(Certificates.authority.utf8)

    /// The bench's share on TCP, whose bytes the kernel hands on in its own time.
    static func run(
        tokens: [ShareToken] = TokenTests.tokens, tls: ShareTLS? = tls,
        _ body: @Sendable (isolated SharingBench, UInt16) async throws -> Void
    ) async throws {
        try await SharingBench.run(
            time: .monotonic,
            share: {
                $0.addresses = [SocketAddress(ip: "127.0.0.1", port: 0)!]
                $0.tokens = tokens
                $0.tls = tls
            }
        ) { bench in
            let listen = try #require(await bench.session.shareSnapshots.first?.listen)
            try await body(bench, try #require(UInt16(listen.drop { $0 != ":" }.dropFirst())))
        }
    }

    /// Events of a bridge in their order. Sendable: used on the loop only.
    final class Told: @unchecked Sendable {
        var events: [String] = []
        var error: MeshError?
        private var waiter: (count: Int, continuation: CheckedContinuation<Void, Never>)?

        func tell(_ event: BridgeEvent) {
            switch event {
            case .listening: events.append("listening")
            case .opened(_, _, let tls): events.append("opened \(tls ?? "-")")
            case .closed(_, let side): events.append("closed \(side)")
            case .failed(_, let error):
                events.append("failed \(error.code)")
                self.error = error
            }
            guard let waiter, events.count >= waiter.count else { return }
            self.waiter = nil
            waiter.continuation.resume()
        }

        func wait(for count: Int, isolation: isolated (any Actor)? = #isolation) async {
            if events.count < count { await withCheckedContinuation { waiter = (count, $0) } }
        }
    }

    /// Runs `body` with a bridge and the path that it listens on.
    static func withBridge(
        _ bench: isolated SharingBench, _ settings: BridgeSettings, _ body: (String, Told) async throws -> Void
    ) async throws {
        let path = "\(bench.folder)/bridge.sock"
        var settings = settings
        settings.addresses = [SocketAddress(unixPath: path)]
        let told = Told()
        let bridge = ShareBridge(loop: bench.loop, settings: settings) { told.tell($0) }
        try await bridge.start()
        do {
            try await body(path, told)
        } catch {
            Issue.record(error)
        }
        await bridge.stop()
    }

    static func settings(
        _ port: UInt16, tls: Bool = true, token: BridgeSettings.Token? = .init(name: "alice", secret: TokenTests.secret)
    ) -> BridgeSettings {
        BridgeSettings(
            host: "127.0.0.1", port: port, tls: tls ? .authorities(authority) : nil, token: token, addresses: [])
    }

    @Test(arguments: [true, false], [true, false])
    func `a program reaches the share as if it were one of this host`(tls: Bool, token: Bool) async throws {
        try await Self.run(tokens: token ? TokenTests.tokens : [], tls: tls ? Self.tls : nil) { bench, port in
            let settings = Self.settings(
                port, tls: tls, token: token ? .init(name: "alice", secret: TokenTests.secret) : nil)
            try await Self.withBridge(bench, settings) { path, told in
                let client = ShareTestClient(bench.loop)
                try await client.connect(path)
                for _ in 0..<200 { try await client.send(RadioSessionTests.getCore) }
                for _ in 0..<200 { #expect(await client.next() == RadioSessionTests.core) }
                let snapshot = try #require(await bench.session.clientSnapshots.first)
                #expect(snapshot.token == (token ? "alice" : nil))
                #expect(snapshot.tls == (tls ? "TLSv1.3" : nil))
                #expect(await bench.session.shareSnapshots.map(\.hasTLS) == [tls])
                let left = try await bench.event("client.leave") { await client.close() }
                #expect(left.data["reason"] == "closed")
                await told.wait(for: 3)
                #expect(told.events == ["listening", "opened \(tls ? "TLSv1.3" : "-")", "closed client"])
            }
        }
    }

    @Test func `a client that has finished sending still gets its answers`() async throws {
        try await Self.run { bench, port in
            try await Self.withBridge(bench, Self.settings(port)) { path, _ in
                let client = ShareTestClient(bench.loop)
                try await client.connect(path)
                try await client.send(RadioSessionTests.getCore)
                await client.finishSending()
                #expect(await client.next() == RadioSessionTests.core)
                #expect(await client.next() == nil)
            }
        }
    }

    @Test func `the end of the share is the end of the program's connection`() async throws {
        try await Self.run { bench, port in
            try await Self.withBridge(bench, Self.settings(port)) { path, told in
                let client = ShareTestClient(bench.loop)
                try await client.connect(path)
                #expect(try await client.ask(RadioSessionTests.getCore) == RadioSessionTests.core)
                await bench.session.closeShares()
                #expect(await client.next() == nil)
                await client.close()
                await told.wait(for: 3)
                #expect(told.events.last == "closed share")
            }
        }
    }

    /// What goes wrong, and the code that it is told with.
    enum Trouble: CaseIterable {
        case wrongPin, wrongAuthority, wrongSecret, unknownToken, noTokenWanted, noTLSThere, tlsThere, nothingThere

        var code: MeshError.Code {
            switch self {
            case .wrongPin, .wrongAuthority, .wrongSecret, .unknownToken: .authenticationFailed
            case .noTokenWanted: .notSupported
            case .noTLSThere: .connectionFailed
            case .tlsThere: .linkClosedByPeer
            case .nothingThere: .connectionRefused
            }
        }

        func apply(to settings: inout BridgeSettings) {
            switch self {
            case .wrongPin: settings.tls = .pinned(sha256: Array(repeating: 0, count: 32))
            case .wrongAuthority: settings.tls = .authorities(Array(Certificates.otherAuthority.utf8))
            case .wrongSecret: settings.token?.secret = "another secret"
            case .unknownToken: settings.token?.name = "carol"
            case .tlsThere: settings.tls = nil
            case .noTokenWanted, .noTLSThere: break
            case .nothingThere: settings.port = 1
            }
        }
    }

    @Test(arguments: Trouble.allCases)
    func `what goes wrong is told, and the program's connection ends`(trouble: Trouble) async throws {
        let tokens = trouble == .noTokenWanted ? [] : TokenTests.tokens
        try await Self.run(tokens: tokens, tls: trouble == .noTLSThere ? nil : Self.tls) { bench, port in
            var settings = Self.settings(port)
            trouble.apply(to: &settings)
            try await Self.withBridge(bench, settings) { path, told in
                let client = ShareTestClient(bench.loop)
                try await client.connect(path)
                #expect(await client.next() == nil)
                await told.wait(for: 2)
                #expect(told.events == ["listening", "failed \(trouble.code)"], "\(told.error?.message ?? "")")
            }
            // The share notices its end in a turn of its own.
            while await bench.session.clientCount > 0 { await Task.yield() }
        }
    }

    @Test func `a share that says nothing is given up`() async throws {
        try await Self.run { bench, _ in
            let address = try #require(SocketAddress(ip: "127.0.0.1", port: 0))
            final class Accepted { var streams: [LoopStream] = [] }
            let accepted = Accepted()
            let listener = try LoopListener(bench.loop, on: address) { accepted.streams.append($0) }
            var settings = Self.settings(listener.address.port)
            settings.openingLimit = .milliseconds(50)
            try await Self.withBridge(bench, settings) { path, told in
                let client = ShareTestClient(bench.loop)
                try await client.connect(path)
                #expect(await client.next() == nil)
                await told.wait(for: 2)
                #expect(told.events.last == "failed link.timeout")
            }
        }
    }

    @Test
    func
        `a certificate that cannot be used keeps the share closed, and one that cannot take its place changes nothing`()
        async throws
    {
        try await Self.run { bench, port in
            let broken = ShareTLS(certificates: Self.tls.certificates, key: Array(Certificates.expiredKey.utf8))
            let error = await #expect(throws: MeshError.self) {
                try await bench.session.renewAccess(ofShare: 0, tokens: TokenTests.tokens, tls: broken)
            }
            #expect(error?.code == .configurationInvalid)
            let settings = ShareSettings(
                name: "other", type: "companion-tcp",
                addresses: [try #require(SocketAddress(ip: "127.0.0.1", port: 0))],
                tls: broken)
            await #expect(throws: MeshError.self) { _ = try await bench.session.openShare(settings) }
            try await Self.withBridge(bench, Self.settings(port)) { path, _ in
                let client = ShareTestClient(bench.loop)
                try await client.connect(path)
                #expect(try await client.ask(RadioSessionTests.getCore) == RadioSessionTests.core)
            }
        }
    }

    @Test func `a renewed certificate is shown to who comes from then on`() async throws {
        try await Self.run { bench, port in
            try await Self.withBridge(bench, Self.settings(port)) { path, told in
                let before = ShareTestClient(bench.loop)
                try await before.connect(path)
                #expect(try await before.ask(RadioSessionTests.getCore) == RadioSessionTests.core)
                let expired = ShareTLS(
                    certificates: Array((Certificates.expired + "\n" + Certificates.intermediate).utf8),
                    key: Array(Certificates.expiredKey.utf8))
                try await bench.session.renewAccess(ofShare: 0, tokens: TokenTests.tokens, tls: expired)
                #expect(try await before.ask(RadioSessionTests.getCore) == RadioSessionTests.core)
                let after = ShareTestClient(bench.loop)
                try await after.connect(path)
                #expect(await after.next() == nil)
                await told.wait(for: 3)
                #expect(told.error?.message.contains("certificate has expired") == true)
            }
        }
    }
}
