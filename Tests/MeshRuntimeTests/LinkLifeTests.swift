// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshRuntime

struct LinkLifeTests {
    @Test func `a wanted device is attempted at once`() {
        let bench = Bench()
        #expect(bench.started == ["roof"])
        #expect(bench.roof.phase == .connecting)
        #expect(bench.roof.waiting == nil)
        #expect(bench.roof.attempts == 1)
    }

    @Test func `an unwanted device is left alone`() {
        var bench = Bench(intent: .disconnect)
        #expect(bench.started.isEmpty)
        #expect(bench.roof.waiting == .disconnected)
        #expect(bench.machine.nextDeadline == nil)
        bench.pass(.seconds(100_000))
        #expect(bench.started.isEmpty)
    }

    @Test func `a link is ready once the device answered`() {
        var bench = Bench()
        bench.established()
        #expect(bench.roof.phase == .handshaking)
        #expect(bench.roof.state == .connected)
        bench.sessionReady()
        #expect(bench.roof.phase == .ready)
        #expect(bench.roof.readySince == bench.now)
        #expect(bench.machine.attemptsUnderWay == 0)
    }

    @Test func `a failed handshake is a failed attempt`() {
        var bench = Bench()
        bench.established()
        bench.end(.handshakeFailed)
        #expect(bench.roof.consecutiveFailures == 1)
        #expect(bench.roof.waiting?.slug == "backoff")
    }

    @Test func `disconnect during a wait leaves no attempt behind`() {
        var bench = Bench()
        bench.end(.connectionRefused)
        #expect(bench.machine.nextDeadline != nil)
        bench.perform(.disconnect)
        #expect(bench.machine.nextDeadline == nil)
        bench.pass(.seconds(3_600))
        #expect(bench.started.isEmpty)
        #expect(bench.roof.intent == .disconnect)
        bench.perform(.connect)
        #expect(bench.started == ["roof"])
    }

    @Test func `disconnect during an attempt cancels it and waits for its end`() {
        var bench = Bench()
        bench.perform(.disconnect)
        #expect(bench.ended == ["roof"])
        #expect(bench.roof.phase == .ending)
        #expect(bench.roof.intent == .disconnect)
        bench.end(.cancelled)
        #expect(bench.roof.waiting == .disconnected)
    }

    @Test func `a late success without intent is cancelled`() {
        var bench = Bench()
        bench.perform(.disconnect)
        bench.established()
        #expect(bench.ended == ["roof"])
        bench.sessionReady()
        #expect(bench.ended == ["roof"])
        #expect(bench.roof.phase == .ending)
        bench.end(nil)
        #expect(bench.roof.waiting == .disconnected)
    }

    @Test func `disconnect and connect in a row keep one attempt`() {
        var bench = Bench()
        let first = bench.generation
        bench.perform(.disconnect)
        bench.perform(.connect)
        #expect(bench.started.isEmpty)
        #expect(bench.roof.phase == .ending)
        bench.end(.cancelled)
        #expect(bench.started == ["roof"])
        #expect(bench.generation > first)
    }

    @Test func `an attempt past its deadline is ended before the next`() {
        var bench = Bench()
        #expect(bench.passToDeadline() == ReconnectionPolicy().connectTimeout)
        #expect(bench.ended == ["roof"])
        #expect(bench.roof.phase == .ending)
        bench.pass(.seconds(5))
        #expect(bench.started.isEmpty)
        bench.end(.cancelled)
        #expect(bench.roof.waiting?.slug == "backoff")
        #expect(bench.roof.lastError?.code == .connectionTimeout)
        #expect(bench.roof.consecutiveFailures == 1)
    }

    @Test func `a handshake has a deadline of its own`() {
        var bench = Bench()
        bench.pass(.seconds(50))
        bench.established()
        #expect(bench.passToDeadline() == ReconnectionPolicy().handshakeTimeout)
        bench.end(.cancelled)
        #expect(bench.roof.lastError?.code == .handshakeFailed)
    }

    @Test func `what does not end is reported once and never overtaken`() {
        var bench = Bench()
        bench.perform(.reconnect)
        bench.pass(.seconds(10))
        #expect(bench.actions == [.report(device: "roof", .unended(generation: bench.generation))])
        #expect(bench.machine.nextDeadline == nil)
        #expect(bench.roof.waiting == .ending)
        bench.pass(.seconds(1_000))
        #expect(bench.actions.isEmpty)
        bench.end(nil)
        #expect(bench.started == ["roof"])
    }

    @Test func `facts of an old generation are dropped and counted`() {
        var bench = Bench()
        let old = bench.generation
        bench.end(.connectionRefused)
        bench.established(generation: old)
        bench.passToDeadline()
        bench.established(generation: old)
        bench.sessionReady(generation: old)
        bench.end(.linkClosed, generation: old)
        #expect(bench.roof.phase == .connecting)
        #expect(bench.roof.staleFacts == 4)
        bench.sessionReady()
        #expect(bench.roof.phase == .connecting)
        #expect(bench.roof.staleFacts == 5)
    }

    @Test func `reconnect drops the link and attempts at once`() {
        var bench = Bench()
        bench.becomeReady()
        bench.perform(.reconnect)
        #expect(bench.ended == ["roof"])
        bench.end(nil)
        #expect(bench.started == ["roof"])
        #expect(bench.roof.consecutiveFailures == 0)
    }

    @Test func `reconnect ends a wait and resets the backoff`() {
        var bench = Bench()
        for _ in 0..<5 {
            bench.end(.connectionRefused)
            bench.passToDeadline()
        }
        bench.end(.connectionRefused)
        bench.perform(.reconnect)
        #expect(bench.started == ["roof"])
        #expect(bench.roof.consecutiveFailures == 0)
        #expect(bench.roof.attempts == 1)
    }

    @Test func `release ends the link and takes it back at its time`() {
        var bench = Bench()
        bench.becomeReady()
        bench.perform(.release(for: .seconds(600)))
        #expect(bench.ended == ["roof"])
        bench.end(nil)
        #expect(bench.roof.waiting == .released)
        #expect(bench.roof.remaining == .seconds(600))
        bench.pass(.seconds(599))
        #expect(bench.started.isEmpty)
        bench.pass(.seconds(1))
        #expect(bench.started == ["roof"])
        #expect(bench.actions.first == .report(device: "roof", .intentChanged(.connect)))
    }

    @Test func `release without a limit waits for a person`() {
        var bench = Bench()
        bench.perform(.release(for: nil))
        bench.end(.cancelled)
        #expect(bench.machine.nextDeadline == nil)
        bench.perform(.connect)
        #expect(bench.started == ["roof"])
    }

    @Test func `a removed device with an attempt in flight goes when that has ended`() {
        var bench = Bench()
        bench.actions = bench.machine.removeDevice("roof", now: bench.now)
        #expect(bench.ended == ["roof"])
        #expect(bench.machine.deviceNames == ["roof"])
        bench.perform(.connect)
        bench.end(.cancelled)
        #expect(bench.actions.last == .forget(device: "roof"))
        #expect(bench.machine.deviceNames.isEmpty)
        #expect(bench.machine.attemptsUnderWay == 0)
        #expect(bench.machine.nextDeadline == nil)
    }

    @Test func `a removed device without a link goes at once`() {
        var bench = Bench(intent: .disconnect)
        bench.actions = bench.machine.removeDevice("roof", now: bench.now)
        #expect(bench.actions == [.forget(device: "roof")])
    }

    @Test func `every step is reported in order`() {
        var bench = Bench()
        let generation = bench.generation
        #expect(
            bench.actions == [
                .report(device: "roof", .connecting(attempt: 1, generation: generation)),
                .startAttempt(device: "roof", generation: generation),
            ])
        bench.established()
        #expect(bench.actions == [.report(device: "roof", .up(generation: generation))])
        bench.sessionReady()
        #expect(bench.actions == [.report(device: "roof", .ready(generation: generation))])
        bench.end(.linkClosed)
        #expect(
            bench.actions.first
                == .report(
                    device: "roof",
                    .down(reason: MeshError(.linkClosed, ""), phase: .ready, generation: generation)))
        guard case .report(_, .waiting(let reason, let remaining?)) = bench.actions[1] else {
            Issue.record("\(bench.actions)")
            return
        }
        #expect(reason.slug == "backoff")
        #expect(remaining <= .milliseconds(250))
    }
}
