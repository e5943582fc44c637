// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshRuntime

struct BackoffTests {
    @Test func `delays fill a window that doubles up to the maximum`() {
        var generator = SplitMix(state: 1)
        let policy = ReconnectionPolicy()
        for (failures, window) in [(1, 250), (2, 500), (3, 1_000), (7, 16_000), (8, 30_000), (1_000_000, 30_000)] {
            var least = Duration.seconds(1_000)
            var most = Duration.zero
            for _ in 0..<2_000 {
                let delay = policy.delay(afterFailures: failures, using: &generator)
                least = min(least, delay)
                most = max(most, delay)
            }
            #expect(least >= .milliseconds(62.5))
            #expect(most <= .milliseconds(window))
            // Full jitter: both ends are used.
            #expect(least < .milliseconds(62.5) + .milliseconds(window) / 50)
            #expect(most > .milliseconds(window) * 49 / 50)
        }
    }

    @Test func `a policy of zeros never hangs or traps`() {
        var generator = SplitMix(state: 1)
        var policy = ReconnectionPolicy()
        policy.firstDelay = .zero
        policy.maximumDelay = .zero
        #expect(policy.delay(afterFailures: 9_999, using: &generator) == .zero)
        policy.firstDelay = .seconds(60)
        policy.maximumDelay = .seconds(1)
        #expect(policy.delay(afterFailures: 3, using: &generator) <= .seconds(1))
    }

    @Test func `a link that flaps keeps growing its backoff`() {
        var bench = Bench()
        for round in 1...6 {
            bench.becomeReady()
            bench.pass(.seconds(2))
            bench.end(.linkClosed)
            #expect(bench.roof.consecutiveFailures == round)
            bench.passToDeadline()
        }
    }

    @Test func `stable uptime forgets earlier failures`() {
        var bench = Bench()
        for _ in 0..<6 {
            bench.end(.connectionRefused)
            bench.passToDeadline()
        }
        bench.becomeReady()
        #expect(bench.roof.consecutiveFailures == 6)
        #expect(bench.passToDeadline() == .seconds(30))
        #expect(bench.roof.consecutiveFailures == 0)
        #expect(bench.machine.nextDeadline == nil)
        bench.pass(.seconds(10_000))
        bench.end(.linkClosed)
        #expect(bench.roof.remaining! <= .milliseconds(250))
        #expect(bench.roof.consecutiveFailures == 0)
    }

    @Test func `a link that held is made anew at once where devices take turns`() {
        var bench = Bench(adapter: AdapterSettings(name: "hci0", reportsChanges: false))
        bench.becomeReady()
        bench.pass(.seconds(31))
        bench.end(.linkClosed)
        #expect(bench.started == ["roof"])
        #expect(bench.roof.consecutiveFailures == 0)
        // That attempt is one like any other: its failure is followed by a pause.
        bench.end(.connectionTimeout)
        #expect(bench.roof.waiting?.slug == "backoff")
        bench.passToDeadline()
        bench.becomeReady()
        bench.pass(.seconds(29))
        bench.end(.linkClosed)
        #expect(bench.roof.waiting?.slug == "backoff")
    }

    @Test func `a link that held is made anew after a short random pause on a network`() {
        var bench = Bench(adapter: .network)
        bench.becomeReady()
        bench.pass(.seconds(31))
        bench.end(.linkClosed)
        #expect(bench.roof.waiting?.slug == "backoff")
        #expect(bench.roof.remaining! <= .milliseconds(250))
    }

    @Test func `retries go on for ever by default`() {
        var bench = Bench()
        for round in 1...500 {
            bench.end(.hostNotFound)
            #expect(bench.roof.consecutiveFailures == round)
            #expect(bench.passToDeadline()! <= .seconds(37.5))
            #expect(bench.started == ["roof"])
        }
    }

    @Test func `retries end at the limit and wait for a person`() {
        var policy = ReconnectionPolicy()
        policy.maximumRetries = 2
        var bench = Bench(policy: policy)
        for _ in 0..<2 {
            bench.end(.connectionRefused)
            bench.passToDeadline()
            #expect(bench.started == ["roof"])
        }
        bench.end(.connectionRefused)
        #expect(bench.roof.waiting?.slug == "exhausted")
        #expect(bench.machine.nextDeadline == nil)
        bench.perform(.connect)
        #expect(bench.started == ["roof"])
    }

    @Test func `an exhausted device tries again when its adapter comes back`() {
        var policy = ReconnectionPolicy()
        policy.maximumRetries = 0
        var bench = Bench(policy: policy, adapter: .network)
        bench.end(.connectionRefused)
        #expect(bench.roof.waiting?.slug == "exhausted")
        bench.adapter("network", isAvailable: true)
        #expect(bench.started == ["roof"])
    }

    @Test func `no retries still brings back a link that held`() {
        var policy = ReconnectionPolicy()
        policy.maximumRetries = 0
        var bench = Bench(policy: policy)
        bench.becomeReady()
        bench.pass(.seconds(31))
        bench.end(.linkClosed)
        #expect(bench.roof.waiting?.slug == "backoff")
    }

    @Test(arguments: [MeshError.Code.authenticationFailed, .configurationInvalid, .internalError])
    func `an error that only a person can mend waits for one`(_ code: MeshError.Code) {
        var bench = Bench()
        bench.end(code)
        #expect(bench.roof.waiting == .blocked(MeshError(code, "")))
        #expect(bench.machine.nextDeadline == nil)
        bench.pass(.seconds(100_000))
        #expect(bench.started.isEmpty)
        bench.perform(.connect)
        #expect(bench.started == ["roof"])
    }

    @Test func `changed settings clear a block`() {
        var bench = Bench()
        bench.end(.authenticationFailed)
        bench.actions = bench.machine.settingsChanged(
            "roof", DeviceLinkSettings(), needsNewLink: false, now: bench.now)
        #expect(bench.started == ["roof"])
    }

    @Test func `settings that need a new link end the old one`() {
        var bench = Bench()
        bench.becomeReady()
        bench.actions = bench.machine.settingsChanged(
            "roof", DeviceLinkSettings(), needsNewLink: false, now: bench.now)
        #expect(bench.actions.isEmpty)
        bench.actions = bench.machine.settingsChanged(
            "roof", DeviceLinkSettings(), needsNewLink: true, now: bench.now)
        #expect(bench.ended == ["roof"])
        bench.end(nil)
        #expect(bench.started == ["roof"])
    }

    @Test func `the breaker opens after ten failures and lets single attempts through`() {
        var bench = Bench()
        for _ in 1...9 {
            bench.end(.connectionRefused)
            #expect(bench.roof.breaker == .closed)
            bench.passToDeadline()
        }
        bench.end(.connectionRefused)
        for _ in 0..<20 {
            #expect(bench.roof.breaker == .open)
            #expect(bench.roof.waiting?.slug == "breaker-open")
            let wait = bench.passToDeadline()!
            #expect(wait >= .seconds(30) && wait <= .seconds(37.5))
            #expect(bench.roof.breaker == .halfOpen)
            #expect(bench.started == ["roof"])
            bench.end(.connectionRefused)
        }
        bench.passToDeadline()
        bench.becomeReady()
        #expect(bench.roof.breaker == .halfOpen)
        bench.pass(.seconds(30))
        #expect(bench.roof.breaker == .closed)
    }

    @Test func `a person passes an open breaker`() {
        var bench = Bench()
        for _ in 1...10 {
            bench.end(.connectionRefused)
            if bench.roof.breaker == .closed { bench.passToDeadline() }
        }
        #expect(bench.roof.breaker == .open)
        bench.perform(.connect)
        #expect(bench.started == ["roof"])
        #expect(bench.roof.breaker == .closed)
    }
}
