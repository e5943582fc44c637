// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshRuntime

struct AdmissionTests {
    private let hci0 = AdapterSettings(name: "hci0")

    @Test func `one attempt at a time goes through an adapter`() {
        var bench = Bench(adapter: hci0)
        bench.add("hill", adapter: hci0)
        bench.add("mast", adapter: hci0)
        #expect(bench.snapshot("hill").waiting == .slot)
        bench.established()
        #expect(bench.started.isEmpty)
        bench.sessionReady()
        #expect(bench.started == ["hill"])
        bench.end(.connectionFailed, "hill")
        #expect(bench.started == ["mast"])
    }

    @Test func `a cancelled attempt keeps its slot until it has ended`() {
        var bench = Bench(adapter: hci0)
        bench.add("hill", adapter: hci0)
        bench.perform(.disconnect)
        #expect(bench.started.isEmpty)
        bench.end(.cancelled)
        #expect(bench.started == ["hill"])
    }

    @Test func `those who wait are served in their order`() {
        var bench = Bench(adapter: hci0)
        for name in ["c", "a", "b"] { bench.add(name, adapter: hci0) }
        // `connect` once more does not cost a place in the queue.
        bench.perform(.connect, "c")
        var order: [String] = []
        bench.becomeReady()
        while let next = bench.started.first {
            order.append(next)
            bench.becomeReady(next)
        }
        #expect(order == ["c", "a", "b"])
    }

    @Test func `one who failed goes to the end of the queue`() {
        var bench = Bench(adapter: hci0)
        bench.add("hill", adapter: hci0)
        bench.add("mast", adapter: hci0)
        bench.end(.connectionFailed)
        #expect(bench.started == ["hill"])
        bench.pass(.seconds(1))
        #expect(bench.roof.waiting == .slot)
        bench.end(.connectionFailed, "hill")
        #expect(bench.started == ["mast"])
        bench.end(.connectionFailed, "mast")
        #expect(bench.started == ["roof"])
    }

    @Test func `a full adapter does not hold up another`() {
        var bench = Bench(adapter: hci0)
        bench.add("hill", adapter: hci0)
        bench.add("mast", adapter: AdapterSettings(name: "hci1"))
        #expect(bench.started == ["mast"])
    }

    @Test func `a link of another kind never waits for those of an adapter, nor for the adapter`() {
        let hci0 = AdapterSettings(name: "hci0", reportsChanges: false)
        var bench = Bench(adapter: hci0)
        bench.add("hill", adapter: hci0)
        #expect(bench.started.isEmpty)
        // Both are busy, or wait: the third begins at once all the same.
        bench.add("shed", adapter: .network)
        #expect(bench.started == ["shed"])
        bench.becomeReady("shed")
        bench.adapter("hci0", isAvailable: false)
        #expect(bench.ended == ["roof"])
        bench.end(.cancelled)
        bench.end(.linkClosed, "shed")
        bench.passToDeadline()
        #expect(bench.started == ["shed"])
        #expect(bench.snapshot("hill").waiting == .adapter(name: "hci0"))
        bench.adapter("hci0", isAvailable: true)
        #expect(bench.started == ["hill"])
        bench.becomeReady("hill")
        #expect(bench.started == ["roof"])
    }

    @Test func `one who leaves the queue is passed over`() {
        var bench = Bench(adapter: hci0)
        for name in ["a", "b", "c"] { bench.add(name, adapter: hci0) }
        bench.perform(.disconnect, "a")
        bench.actions = bench.machine.removeDevice("b", now: bench.now)
        bench.becomeReady()
        #expect(bench.started == ["c"])
    }

    @Test func `all attempts together stay below the limit`() {
        var bench = Bench(limit: 3)
        for number in 0..<10 { bench.add("d\(number)") }
        #expect(bench.machine.attemptsUnderWay == 3)
        bench.end(.connectionFailed)
        #expect(bench.machine.attemptsUnderWay == 3)
        #expect(bench.started == ["d2"])
    }

    @Test func `a changed adapter moves a device to the other queue`() {
        var bench = Bench(adapter: hci0)
        bench.add("hill", adapter: hci0)
        let settings = DeviceLinkSettings(adapter: AdapterSettings(name: "hci1"))
        bench.actions = bench.machine.settingsChanged("hill", settings, needsNewLink: true, now: bench.now)
        #expect(bench.started == ["hill"])
        bench.becomeReady()
        #expect(bench.machine.attemptsUnderWay == 1)
        bench.becomeReady("hill")
        #expect(bench.machine.attemptsUnderWay == 0)
    }
}
