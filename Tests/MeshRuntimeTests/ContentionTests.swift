// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshRuntime

/// Requirement 24 of `reconnection.md` §4.3: the radio serves one host, the newest.
struct ContentionTests {
    /// The link is up for `uptime`, then the peer closes it.
    private func kick(_ bench: inout Bench, after uptime: Duration = .seconds(1)) {
        bench.becomeReady()
        bench.pass(uptime)
        bench.end(.linkClosedByPeer)
    }

    @Test func `three young links closed by the peer are another host`() {
        var bench = Bench()
        for _ in 0..<2 {
            kick(&bench)
            #expect(bench.roof.waiting?.slug == "backoff")
            bench.passToDeadline()
        }
        kick(&bench)
        #expect(bench.roof.waiting?.slug == "contended")
        #expect(bench.roof.lastError?.code == .contended)
        #expect(bench.roof.lastError!.message.contains("another host is using this radio"))
        #expect(bench.roof.remaining == .seconds(300))
        #expect(bench.passToDeadline() == .seconds(300))
        #expect(bench.started == ["roof"])
    }

    @Test func `after the pause one more close is enough`() {
        var bench = Bench()
        for _ in 0..<3 {
            kick(&bench)
            bench.passToDeadline()
        }
        kick(&bench)
        #expect(bench.roof.waiting?.slug == "contended")
    }

    @Test func `a server that refuses in between is restarting`() {
        var bench = Bench()
        for _ in 0..<10 {
            kick(&bench)
            #expect(bench.roof.waiting?.slug != "contended")
            // Prompt, whatever the number of failures: the refusal must be seen.
            #expect(bench.passToDeadline()! <= .milliseconds(125))
            bench.end(.connectionRefused)
            bench.passToDeadline()
        }
    }

    @Test func `a failed handshake in between speaks against another host`() {
        var bench = Bench()
        for _ in 0..<10 {
            kick(&bench)
            bench.passToDeadline()
            bench.established()
            bench.end(.linkClosedByPeer)
            #expect(bench.roof.waiting?.slug != "contended")
            bench.passToDeadline()
        }
    }

    @Test func `links that were not young do not count`() {
        var bench = Bench()
        for _ in 0..<10 {
            kick(&bench, after: .seconds(11))
            #expect(bench.roof.waiting?.slug != "contended")
            bench.passToDeadline()
        }
    }

    @Test func `closes far apart do not count`() {
        var policy = ReconnectionPolicy()
        policy.stableAfter = .seconds(5)
        var bench = Bench(policy: policy)
        for _ in 0..<10 {
            kick(&bench)
            #expect(bench.roof.waiting?.slug == "backoff")
            bench.passToDeadline()
            bench.pass(.seconds(31))
        }
    }

    @Test func `a person overrides the pause`() {
        var bench = Bench()
        for _ in 0..<2 {
            kick(&bench)
            bench.passToDeadline()
        }
        kick(&bench)
        bench.perform(.reconnect)
        #expect(bench.started == ["roof"])
        kick(&bench)
        #expect(bench.roof.waiting?.slug == "backoff")
    }

    @Test func `a transport that knows is believed`() {
        var bench = Bench()
        bench.end(.contended)
        #expect(bench.roof.waiting?.slug == "contended")
    }

    @Test func `the rule can be turned off`() {
        var policy = ReconnectionPolicy()
        policy.contentionCloses = 0
        var bench = Bench(policy: policy)
        for _ in 0..<5 {
            kick(&bench)
            #expect(bench.roof.waiting?.slug == "backoff")
            bench.passToDeadline()
        }
    }
}
