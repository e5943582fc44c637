// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import Testing

/// Turns, timeouts and callers that give up.
struct SessionLaneTests {
    @Test func `a late reply does not reach the next caller`() async throws {
        // The first GET_TIME is not answered; the radio's fence is GET_BATT, since a GET_TIME could be its late answer.
        let bench = try await SessionBench.ready { frame, number in frame.first == 5 && number == 1 ? [] : nil }
        async let lost = code { try await bench.session.time() }
        await bench.settled(3)
        await bench.clock.step(to: .seconds(5))
        #expect(await lost == .operationTimeout)
        async let next = bench.session.time()
        await bench.radio.say(hex("0901000000"))
        await bench.flush()
        await bench.clock.step(to: .milliseconds(5_100))
        #expect(try await next == Golden.date)
        #expect(await bench.radio.sent(5)[2...] == ["05", "14", "05"])
        #expect(await bench.session.counters.lateReplies == 1)
        #expect(await bench.session.counters.commandTimeouts == 1)
        await bench.session.stop()
    }

    @Test func `a cancelled caller's reply goes to nobody`() async throws {
        let bench = try await SessionBench.ready { frame, number in frame.first == 5 && number == 1 ? [] : nil }
        let lost = Task { await code { try await bench.session.time() } }
        await bench.radio.sent(3)
        lost.cancel()
        #expect(await lost.value == .cancelled)
        // The same question again: it waits for its own reply.
        async let next = bench.session.time()
        await bench.radio.say(hex("0901000000"))
        #expect(try await next == Golden.date)
        #expect(await bench.radio.sent(4).count == 4)
        await bench.session.stop()
    }

    @Test func `a caller that is cancelled while it waits sends nothing`() async throws {
        let bench = try await SessionBench.ready { frame, number in frame.first == 5 && number == 1 ? [] : nil }
        async let first = bench.session.time()
        await bench.radio.sent(3)
        let waiting = Task { await code { try await bench.session.batteryAndStorage() } }
        waiting.cancel()
        #expect(await waiting.value == .cancelled)
        await bench.radio.say(Golden.time)
        #expect(try await first == Golden.date)
        #expect(try await bench.session.time() == Golden.date)
        #expect(await bench.radio.sent(4)[2...] == ["05", "05"])
        await bench.session.stop()
    }

    @Test func `calls are answered each with its own`() async throws {
        let bench = try await SessionBench.ready()
        async let times = [bench.session.time(), bench.session.time()]
        async let battery = bench.session.batteryAndStorage()
        #expect(try await times == [Golden.date, Golden.date])
        #expect(try await battery.batteryMillivolts == 128)
        await bench.session.stop()
    }

    @Test func `an error belongs to the command in flight`() async throws {
        let bench = try await SessionBench.ready { frame, _ in frame.first == 7 ? [hex("0103")] : nil }
        async let advert = code { try await bench.session.sendSelfAdvert() }
        async let time = bench.session.time()
        #expect(await advert == .radioTableFull)
        #expect(try await time == Golden.date)
        await bench.session.stop()
    }

    @Test func `too many calls are refused`() async throws {
        let bench = try await SessionBench.ready(
            settings: .quiet {
                $0.callLimit = 1
            }
        ) { frame, _ in
            frame.first == 20 ? [] : nil
        }
        async let first = code { try await bench.session.batteryAndStorage() }
        await bench.radio.sent(3)
        #expect(await code { try await bench.session.time() } == .queueFull)
        await bench.session.stop()
        #expect(await first == .cancelled)
    }

    @Test func `a call's own timeout ends it, and its reply goes to nobody`() async throws {
        let bench = try await SessionBench.ready { frame, number in frame.first == 5 && number == 1 ? [] : nil }
        async let lost = code { try await bench.session.perform(.getTime, timeout: .seconds(1)) }
        await bench.settled(3)
        await bench.clock.step(to: .seconds(1))
        #expect(await lost == .operationTimeout)
        async let next = bench.session.time()
        await bench.radio.say(hex("0901000000"))
        #expect(try await next == Golden.date)
        await bench.session.stop()
    }

    @Test func `replies that nobody asked for are counted`() async throws {
        let bench = try await SessionBench.ready()
        await bench.radio.say(Golden.ok)
        #expect(try await bench.session.time() == Golden.date)
        #expect(await bench.session.counters.unaskedReplies == 1)
        await bench.session.stop()
    }

    @Test func `a frame that cannot be read is told, and counted`() async throws {
        let bench = try await SessionBench.ready()
        let events = await bench.session.events
        await bench.radio.say(hex("82deadbe"))
        #expect(await events.first { $0 == .unreadable(hex("82deadbe")) } != nil)
        #expect(await bench.session.counters.unreadableFrames == 1)
        await bench.session.stop()
    }

    @Test func `a frame too long for the link fails its call alone`() async throws {
        let radio = RefusingLink()
        let session = MeshCoreSession(
            transport: radio, settings: .quiet(), environment: MeshSessionEnvironment(clock: ManualClock()))
        try await session.start()
        try await session.ready()
        #expect(
            await code { try await session.sendRawPacket(OutgoingRawPacket(priority: 0, packet: Data(count: 100))) }
                == .frameTooLong)
        #expect(try await session.time() == Golden.date)
        await session.stop()
    }

    // MARK: Signs of life

    @Test func `a silent link is asked for a sign of life, a lively one is not`() async throws {
        let bench = try await SessionBench.ready(settings: .quiet { $0.probeAfter = .seconds(30) })
        bench.clock.advance(by: .seconds(20))
        await bench.flush()
        await bench.clock.step(to: .seconds(30), .seconds(50))
        #expect(await bench.settled(3)[2...] == ["05"])
        await bench.clock.step(to: .seconds(80))
        #expect(await bench.radio.sent(4)[2...] == ["05", "05"])
        await bench.session.stop()
    }

    @Test func `a link without a sign of life is given up`() async throws {
        let bench = try await SessionBench.ready(
            settings: .quiet {
                $0.probeAfter = .seconds(30)
            }
        ) { frame, number in
            [5, 20, 22].contains(frame.first) && (frame.first != 22 || number > 1) ? [] : nil
        }
        let events = await bench.session.events
        await bench.clock.step(
            to: .seconds(30), .seconds(35), .milliseconds(35_100), .milliseconds(38_100), .milliseconds(38_200),
            .milliseconds(41_200))
        let end = await events.first { if case .state(.disconnected, _) = $0 { true } else { false } }
        #expect(end == .state(.disconnected, reason: MeshError(.operationTimeout, "")))
        #expect(await bench.radio.sent(5)[2...] == ["05", "14", "1603"])
    }
}

/// A link that takes short frames only.
actor RefusingLink: MeshTransport {
    private let radio = ScriptedRadio()

    func connect() async throws { try await radio.connect() }
    func disconnect() async { await radio.disconnect() }
    func send(_ data: Data) async throws {
        if data.count > 50 { throw MeshError(.frameTooLong, "no") }
        try await radio.send(data)
    }
    var receivedData: AsyncStream<Data> { get async { await radio.receivedData } }
    var isConnected: Bool { get async { await radio.isConnected } }
}
