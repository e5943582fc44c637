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

    @Test func `another host that comes back before the handshake is over is found too`() {
        var bench = Bench()
        // Up for hours, then taken; from then on the link never gets through the handshake.
        kick(&bench, after: .seconds(10_000))
        #expect(bench.roof.waiting?.slug == "backoff")
        for number in 1...3 {
            #expect(bench.passToDeadline()! <= .milliseconds(250))
            bench.established()
            bench.pass(.milliseconds(5))
            bench.end(.linkClosedByPeer)
            #expect(bench.roof.waiting?.slug == (number < 3 ? "backoff" : "contended"))
        }
        #expect(bench.passToDeadline() == .seconds(300))
        bench.established()
        bench.end(.linkClosedByPeer)
        #expect(bench.roof.waiting?.slug == "contended")
    }

    @Test func `closes of ready links and of handshakes count together`() {
        var bench = Bench()
        kick(&bench)
        bench.passToDeadline()
        bench.established()
        bench.end(.linkClosedByPeer)
        bench.passToDeadline()
        kick(&bench)
        #expect(bench.roof.waiting?.slug == "contended")
    }

    @Test func `a handshake that is closed without a ready link before it is no other host`() {
        var bench = Bench()
        for _ in 0..<8 {
            bench.established()
            bench.end(.linkClosedByPeer)
            #expect(bench.roof.waiting?.slug == "backoff")
            bench.passToDeadline()
        }
    }

    @Test(arguments: [MeshError.Code.connectionRefused, .connectionTimeout, .linkClosedByPeer])
    func `an attempt that fails before the link is up speaks against another host`(_ code: MeshError.Code) {
        var bench = Bench()
        for _ in 0..<10 {
            kick(&bench)
            bench.passToDeadline()
            bench.established()
            bench.end(.linkClosedByPeer)
            bench.passToDeadline()
            bench.end(code)
            #expect(bench.roof.waiting?.slug != "contended")
            bench.passToDeadline()
        }
    }

    @Test(arguments: [MeshError.Code.handshakeFailed, .linkClosed, .operationTimeout])
    func `a handshake that fails otherwise speaks against another host`(_ code: MeshError.Code) {
        var bench = Bench()
        for _ in 0..<6 {
            kick(&bench)
            bench.passToDeadline()
            bench.established()
            bench.end(code)
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
