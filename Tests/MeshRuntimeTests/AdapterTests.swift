// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshRuntime

struct AdapterTests {
    private let hci0 = AdapterSettings(name: "hci0")

    @Test func `an absent adapter pauses attempts until it is back`() {
        var bench = Bench(adapter: hci0)
        bench.adapter("hci0", isAvailable: false)
        #expect(bench.ended == ["roof"])
        bench.end(.cancelled)
        #expect(bench.roof.waiting == .adapter(name: "hci0"))
        #expect(bench.machine.nextDeadline == nil)
        #expect(bench.roof.consecutiveFailures == 0)
        bench.pass(.seconds(10_000))
        #expect(bench.started.isEmpty)
        bench.adapter("hci0", isAvailable: true)
        #expect(bench.started == ["roof"])
    }

    @Test func `why the adapter is away is remembered, and is no failure`() {
        var bench = Bench(adapter: hci0)
        bench.adapter("hci0", isAvailable: false)
        bench.end(.adapterUnavailable)
        #expect(bench.roof.lastError?.code == .adapterUnavailable)
        #expect(bench.roof.consecutiveFailures == 0)
        #expect(bench.roof.waiting == .adapter(name: "hci0"))
    }

    @Test func `the clock of attempts stands still meanwhile`() {
        var bench = Bench(adapter: hci0)
        for _ in 0..<4 {
            bench.end(.connectionTimeout)
            bench.passToDeadline()
        }
        bench.end(.connectionTimeout)
        bench.adapter("hci0", isAvailable: false)
        #expect(bench.roof.waiting == .adapter(name: "hci0"))
        bench.pass(.seconds(10_000))
        bench.adapter("hci0", isAvailable: true)
        #expect(bench.roof.consecutiveFailures == 5)
        #expect(bench.started == ["roof"])
    }

    @Test func `a device added while its adapter is away waits for it`() {
        var bench = Bench(adapter: hci0)
        bench.adapter("hci0", isAvailable: false)
        bench.add("hill", adapter: hci0)
        #expect(bench.started.isEmpty)
        #expect(bench.snapshot("hill").waiting == .adapter(name: "hci0"))
    }

    @Test func `what the last device of an adapter said of it is forgotten with the device`() {
        var bench = Bench(adapter: hci0)
        bench.adapter("hci0", isAvailable: false)
        bench.end(.adapterUnavailable)
        bench.actions = bench.machine.removeDevice("roof", now: bench.now)
        bench.add("hill", adapter: hci0)
        #expect(bench.snapshot("hill").phase == .connecting)
    }

    @Test func `an adapter of others does not matter`() {
        var bench = Bench(adapter: hci0)
        bench.adapter("hci1", isAvailable: false)
        #expect(bench.roof.phase == .connecting)
    }

    @Test func `an error that blames the adapter is retried slowly where no event is sure`() {
        var bench = Bench(adapter: .network)
        for _ in 0..<50 {
            bench.end(.adapterUnavailable)
            #expect(bench.roof.waiting == .adapter(name: "network"))
            #expect(bench.roof.consecutiveFailures == 0)
            #expect(bench.passToDeadline() == .seconds(30))
            #expect(bench.started == ["roof"])
        }
        bench.end(.adapterUnavailable)
        bench.adapter("network", isAvailable: true)
        #expect(bench.started == ["roof"])
    }

    @Test func `an error that blames an adapter nobody reported away does not wait for ever`() {
        // The adapter went and came back before the failure was told.
        var bench = Bench(adapter: hci0)
        bench.end(.adapterUnavailable)
        #expect(bench.roof.remaining == .seconds(30))
    }

    @Test func `an absent network is tried now and then`() {
        var bench = Bench(adapter: .network)
        bench.adapter("network", isAvailable: false)
        bench.end(.cancelled)
        #expect(bench.passToDeadline() == .seconds(30))
        #expect(bench.started == ["roof"])
        // Said again, it must not end the attempt.
        bench.adapter("network", isAvailable: false)
        #expect(bench.ended.isEmpty)
        bench.end(.connectionTimeout)
        #expect(bench.roof.waiting == .adapter(name: "network"))
        #expect(bench.roof.consecutiveFailures == 0)
        bench.perform(.connect)
        #expect(bench.started == ["roof"])
    }

    @Test func `a port of the device's own wakes that device only`() {
        var bench = Bench()
        bench.add("hill")
        bench.end(.adapterUnavailable)
        bench.end(.adapterUnavailable, "hill")
        #expect(bench.roof.waiting == .adapter(name: nil))
        bench.actions = bench.machine.adapterChanged(ofDevice: "roof", isAvailable: true, now: bench.now)
        #expect(bench.started == ["roof"])
    }

    @Test func `a ready link outlives the report that its adapter is away`() {
        var bench = Bench(adapter: hci0)
        bench.becomeReady()
        bench.adapter("hci0", isAvailable: false)
        #expect(bench.roof.phase == .ready)
        bench.end(.linkClosed)
        #expect(bench.roof.waiting == .adapter(name: "hci0"))
    }

    @Test func `a disconnected device does not wake with its adapter`() {
        var bench = Bench(adapter: hci0)
        bench.adapter("hci0", isAvailable: false)
        bench.perform(.disconnect)
        bench.end(.cancelled)
        bench.adapter("hci0", isAvailable: true)
        #expect(bench.started.isEmpty)
    }
}
