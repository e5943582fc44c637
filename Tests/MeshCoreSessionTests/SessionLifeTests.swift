// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshMockTransport
import MeshTransportAPI
import Testing

/// Start, handshake, loss, stop.
struct SessionLifeTests {
    @Test func `the states come in order, and go`() async throws {
        let bench = SessionBench()
        let events = await bench.session.events
        try await bench.session.start()
        try await bench.session.ready()
        await bench.session.stop()
        var states: [MeshSessionState] = []
        for await case .state(let state, let reason) in events {
            states.append(state)
            #expect(reason == nil)
        }
        #expect(states == [.disconnected, .connecting, .connected, .syncing, .ready, .disconnected])
    }

    @Test func `DEVICE_QUERY comes first, then APP_START`() async throws {
        let bench = try await SessionBench.ready(settings: .quiet { $0.appName = "MCore" })
        // C2 and C1 of the reference, the latter with the six spaces of meshcore_py.
        #expect(await bench.radio.sent(2) == ["1603", "0103202020202020" + "4d436f7265"])
        #expect(await bench.session.selfInfo?.name == "CT62_fdl")
        #expect(await bench.session.deviceInfo?.details?.maximumChannels == 40)
        await bench.session.stop()
    }

    @Test func `the synchronisation asks for time, contacts and messages, in this order`() async throws {
        let bench = SessionBench(
            settings: .quiet {
                $0.correctsClock = true
                $0.keepsContacts = true
                $0.fetchesMessages = true
            })
        let events = await bench.session.events
        try await bench.session.start()
        try await bench.session.ready()
        #expect(await bench.radio.sent(5)[2...] == ["05", "04", "0a"])
        #expect(await events.first { if case .radio = $0 { true } else { false } } != nil)
        await bench.session.stop()
    }

    @Test(arguments: [(-3_600, true), (-5, false), (0, false), (3_600, false)])
    func `a clock that is behind is set, never one that is ahead`(offset: Int, isSet: Bool) async throws {
        let radio = UInt32(Int(Golden.date) + offset)
        let bench = SessionBench(
            settings: .quiet {
                $0.correctsClock = true
            }
        ) { frame, _ in
            switch frame.first {
            case 5: [Data([9]) + Golden.number(radio)]
            case 6: [Golden.ok]
            default: nil
            }
        }
        let events = await bench.session.events
        try await bench.session.start()
        try await bench.session.ready()
        // C4 of the reference.
        #expect(await bench.radio.sent(3)[3...] == (isSet ? ["0680009265"] : []))
        await bench.session.stop()
        var corrections: [Duration] = []
        for await case .clockCorrected(let correction) in events { corrections.append(correction) }
        #expect(corrections == (isSet ? [.seconds(-offset)] : []))
    }

    @Test func `firmware that does not know DEVICE_QUERY is fine`() async throws {
        let bench = try await SessionBench.ready { frame, _ in frame.first == 22 ? [hex("0101")] : nil }
        #expect(await bench.session.deviceInfo == nil)
        await bench.session.stop()
    }

    @Test func `a device that refuses APP_START is given up`() async throws {
        let bench = SessionBench { frame, _ in frame.first == 1 ? [hex("0101")] : nil }
        try await bench.session.start()
        #expect(await code { try await bench.session.ready() } == .handshakeFailed)
        await bench.session.stop()
        #expect(await !bench.radio.isConnected)
    }

    @Test func `a radio that loses the first question is asked again`() async throws {
        let bench = SessionBench { frame, number in frame.first == 22 && number == 1 ? [] : nil }
        try await bench.session.start()
        // The lane makes sure first that no late reply can come.
        await bench.clock.step(to: .seconds(5), .milliseconds(5_100))
        try await bench.session.ready()
        #expect(await bench.radio.sent(4)[..<3] == ["1603", "05", "1603"])
        await bench.session.stop()
    }

    @Test func `a silent device ends the link, and everybody who waits is told`() async throws {
        let bench = SessionBench { _, _ in [] }
        let events = await bench.session.events
        try await bench.session.start()
        async let time = code { try await bench.session.time() }
        async let ready = code { try await bench.session.ready() }
        // The command, and two fences with their silence.
        await bench.clock.step(
            to: .seconds(5), .milliseconds(5_100), .milliseconds(8_100), .milliseconds(8_200), .milliseconds(11_200))
        // One that was too late finds no link.
        for code in await [time, ready] { #expect(code == .handshakeFailed || code == .notConnected) }
        let end = await events.first { if case .state(.disconnected, .some) = $0 { true } else { false } }
        #expect(end == .state(.disconnected, reason: MeshError(.handshakeFailed, "")))
        #expect(await !bench.radio.isConnected)
    }

    @Test func `without a link a call fails at once`() async throws {
        let bench = SessionBench()
        #expect(await code { try await bench.session.time() } == .notConnected)
        #expect(await code { try await bench.session.ready() } == .notConnected)
        await bench.session.stop()
    }

    @Test func `a lost link fails everybody who waits, and a new one can be made`() async throws {
        let bench = try await SessionBench.ready { frame, number in frame.first == 5 && number <= 2 ? [] : nil }
        let events = await bench.session.events
        async let first = code { try await bench.session.time() }
        async let second = code { try await bench.session.time() }
        async let login = code { try await bench.session.login(to: Golden.key, password: "secret") }
        await bench.radio.sent(3)
        await bench.radio.vanish()
        #expect(await first == .linkClosed)
        // These may have been too late to wait.
        for code in await [second, login] { #expect(code == .linkClosed || code == .notConnected) }
        let end = await events.first { if case .state(.disconnected, _) = $0 { true } else { false } }
        #expect(end == .state(.disconnected, reason: MeshError(.linkClosed, "")))
        try await bench.session.start()
        try await bench.session.ready()
        #expect(await bench.radio.links == 2)
        await bench.session.stop()
    }

    @Test func `a call that waits for the handshake is failed by the loss`() async throws {
        let bench = SessionBench { _, _ in [] }
        try await bench.session.start()
        async let time = code { try await bench.session.time() }
        await bench.radio.sent(1)
        await bench.radio.vanish()
        let error = await time
        #expect(error == .linkClosed || error == .notConnected)
        await bench.session.stop()
    }

    @Test func `stopping fails who waits, and is idempotent`() async throws {
        let bench = try await SessionBench.ready { frame, _ in frame.first == 20 ? [] : nil }
        async let battery = code { try await bench.session.batteryAndStorage() }
        await bench.radio.sent(3)
        async let once: Void = bench.session.stop()
        async let twice: Void = bench.session.stop()
        _ = await (once, twice)
        #expect(await battery == .cancelled)
        #expect(await bench.session.state == .disconnected)
        await bench.session.stop()
        try await bench.session.start()
        try await bench.session.ready()
        await bench.session.stop()
    }

    @Test func `a session is started once`() async throws {
        let bench = try await SessionBench.ready()
        #expect(await code { try await bench.session.start() } == .invalidArgument)
        await bench.session.stop()
    }

    @Test func `a link that cannot be made is the transport's error`() async throws {
        let mock = MockTransport()
        await mock.failNextConnects()
        let session = MeshCoreSession(transport: mock)
        let events = await session.events
        #expect(await code { try await session.start() } == .connectionRefused)
        let end = await events.first { if case .state(.disconnected, .some) = $0 { true } else { false } }
        #expect(end == .state(.disconnected, reason: MeshError(.connectionRefused, "")))
        try await session.start()
        await session.stop()
    }

    @Test func `stopping ends an attempt to connect`() async throws {
        let mock = MockTransport()
        await mock.hangNextConnect()
        let session = MeshCoreSession(transport: mock)
        let events = await session.events
        async let start = code { try await session.start() }
        _ = await events.first { $0 == .state(.connecting, reason: nil) }
        await session.stop()
        #expect(await start == .cancelled)
        #expect(await session.state == .disconnected)
    }

    @Test func `cancelling ends an attempt to connect`() async throws {
        let mock = MockTransport()
        await mock.hangNextConnect()
        let session = MeshCoreSession(transport: mock)
        let events = await session.events
        let start = Task { await code { try await session.start() } }
        _ = await events.first { $0 == .state(.connecting, reason: nil) }
        start.cancel()
        #expect(await start.value == .cancelled)
        #expect(await session.state == .disconnected)
    }
}
