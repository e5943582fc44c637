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
