// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import Testing

/// Messages out, with their acknowledgements, and in.
struct SessionMessageTests {
    /// The text of C11 with another attempt.
    static func text(attempt: Int) -> String { "02000\(attempt)" + "80009265" + "0123456789ab" + "48656c6c6f" }

    /// A receipt over a known path: the code's first byte is the attempt's number, from 1 on.
    static func receipt(_ number: Int, isFlood: Bool = false) -> Data {
        hex("060\(isFlood ? 1 : 0)0\(number)000000" + "88130000")
    }

    static func confirmation(_ number: Int) -> Data { hex("820\(number)000000" + "f4010000") }

    static let message = hex("070123456789ab02008000926548656c6c6f")

    // MARK: Sending

    @Test func `a message is sent when its acknowledgement has come`() async throws {
        let bench = try await SessionBench.ready { frame, number in
            // At once: the acknowledgement may be right behind the receipt.
            frame.first == 2 ? [Self.receipt(number), Self.confirmation(number)] : nil
        }
        let success = try await bench.session.send("Hello", to: Golden.key)
        #expect(success.attempts == 1)
        #expect(success.confirmation.tripMilliseconds == 500)
        #expect(await bench.radio.sent(3)[2...] == [Self.text(attempt: 0)])
        await bench.session.stop()
    }

    @Test func `without an acknowledgement the message goes again, with the next attempt's number`() async throws {
        let bench = try await SessionBench.ready { frame, number in
            guard frame.first == 2 else { return nil }
            return [Self.receipt(number)] + (number == 2 ? [Self.confirmation(2)] : [])
        }
        async let success = bench.session.send("Hello", to: Golden.key)
        await bench.settled(3)
        // 5000 ms of the receipt, times 1.2, and 500 ms.
        await bench.clock.step(to: .milliseconds(6_500))
        #expect(try await success.attempts == 2)
        #expect(await bench.radio.sent(4)[2...] == [Self.text(attempt: 0), Self.text(attempt: 1)])
        await bench.session.stop()
    }

    @Test func `a late acknowledgement of an earlier attempt counts`() async throws {
        let bench = try await SessionBench.ready { frame, number in frame.first == 2 ? [Self.receipt(number)] : nil }
        async let success = bench.session.send("Hello", to: Golden.key)
        await bench.settled(3)
        await bench.clock.step(to: .milliseconds(6_500))
        await bench.radio.sent(4)
        await bench.radio.say(Self.confirmation(1))
        #expect(try await success.confirmation.acknowledgement == 1)
        await bench.session.stop()
    }

    @Test func `the last attempts are flooded`() async throws {
        let bench = try await SessionBench.ready { frame, number in
            switch frame.first {
            case 2: [Self.receipt(number, isFlood: number > 2)]
            case 13: [Golden.ok]
            default: nil
            }
        }
        async let lost = code { try await bench.session.send("Hello", to: Golden.key) }
        await bench.settled(3)
        await bench.clock.step(to: .milliseconds(6_500))
        await bench.settled(4)
        await bench.clock.step(to: .seconds(13))
        #expect(await bench.settled(6)[4...] == ["0d" + Golden.keyHex, Self.text(attempt: 2)])
        await bench.clock.step(to: .milliseconds(19_500))
        #expect(await lost == .messageUnacknowledged)
        await bench.session.stop()
    }

    @Test func `a contact without a path is flooded from the start, and not so often`() async throws {
        let bench = try await SessionBench.ready { frame, number in
            frame.first == 2 ? [Self.receipt(number, isFlood: true)] : nil
        }
        async let lost = code { try await bench.session.send("Hello", to: Golden.key) }
        await bench.settled(3)
        await bench.clock.step(to: .milliseconds(6_500))
        await bench.settled(4)
        await bench.clock.step(to: .seconds(13))
        #expect(await lost == .messageUnacknowledged)
        #expect(await bench.radio.sent(4).count == 4)
        await bench.session.stop()
    }

    @Test func `a message that shall go once goes once`() async throws {
        let bench = try await SessionBench.ready { frame, number in frame.first == 2 ? [Self.receipt(number)] : nil }
        async let lost = code { try await bench.session.send("Hello", to: Golden.key, retries: .none) }
        await bench.settled(3)
        await bench.clock.step(to: .milliseconds(6_500))
        #expect(await lost == .messageUnacknowledged)
        #expect(await bench.radio.sent(3).count == 3)
        await bench.session.stop()
    }

    @Test func `two like messages have times of their own, and so acknowledgements`() async throws {
        let bench = try await SessionBench.ready { frame, number in frame.first == 2 ? [Self.receipt(number)] : nil }
        async let first = bench.session.send("Hello", to: Golden.key)
        await bench.radio.sent(3)
        async let second = bench.session.send("Hello", to: Golden.key)
        #expect(await bench.radio.sent(4)[3] == "020000" + "81009265" + "0123456789ab" + "48656c6c6f")
        await bench.radio.say(Self.confirmation(2), Self.confirmation(1))
        #expect(try await first.confirmation.acknowledgement == 1)
        #expect(try await second.confirmation.acknowledgement == 2)
        await bench.session.stop()
    }

    @Test func `an unknown recipient fails at once`() async throws {
        let bench = try await SessionBench.ready { frame, _ in frame.first == 2 ? [Golden.notFound] : nil }
        #expect(await code { try await bench.session.send("Hello", to: Golden.key) } == .radioNotFound)
        await bench.session.stop()
    }

    @Test func `a sender that gives up, and a lost link, end the wait`() async throws {
        let bench = try await SessionBench.ready { frame, number in frame.first == 2 ? [Self.receipt(number)] : nil }
        let cancelled = Task { await code { try await bench.session.send("Hello", to: Golden.key) } }
        await bench.settled(3)
        cancelled.cancel()
        #expect(await cancelled.value == .cancelled)
        async let lost = code { try await bench.session.send("Hello", to: Golden.key) }
        await bench.settled(4)
        await bench.radio.vanish()
        #expect(await lost == .linkClosed)
        await bench.session.stop()
    }

    // MARK: Fetching

    static let fetching = MeshSessionSettings.quiet { $0.fetchesMessages = true }

    @Test func `messages are fetched at the start and told before the session is ready`() async throws {
        let bench = SessionBench(settings: Self.fetching) { frame, number in
            frame.first == 10 && number <= 2 ? [Self.message] : nil
        }
        let events = await bench.session.events
        try await bench.session.start()
        var texts = 0
        for await event in events {
            if case .message(let message) = event {
                #expect(message.text == "Hello")
                texts += 1
            }
            if event == .state(.ready, reason: nil) { break }
        }
        #expect(texts == 2)
        #expect(await bench.radio.sent(5)[2...] == ["0a", "0a", "0a"])
        await bench.session.stop()
    }

    @Test func `messages are fetched when the radio has some`() async throws {
        let bench = SessionBench(settings: Self.fetching) { frame, number in
            frame.first == 10 && number == 2 ? [Self.message] : nil
        }
        let events = await bench.session.events
        try await bench.session.start()
        try await bench.session.ready()
        await bench.radio.say(hex("83"))
        #expect(await events.first { if case .message = $0 { true } else { false } } != nil)
        await bench.session.stop()
    }

    @Test func `nothing is fetched while nobody listens: the radio forgets what it hands out`() async throws {
        let bench = try await SessionBench.ready(settings: Self.fetching) { frame, number in
            frame.first == 10 && number == 1 ? [Self.message] : nil
        }
        await bench.radio.say(hex("83"))
        #expect(try await bench.session.time() == Golden.date)
        #expect(await bench.radio.sent(3)[2...] == ["05"])
        let events = await bench.session.events
        #expect(await events.first { if case .message = $0 { true } else { false } } != nil)
        await bench.session.stop()
    }

    @Test func `a message whose fetcher gave up is kept for who listens next`() async throws {
        let bench = try await SessionBench.ready { frame, number in frame.first == 10 && number == 1 ? [] : nil }
        let lost = Task { await code { try await bench.session.nextMessage() } }
        await bench.radio.sent(3)
        lost.cancel()
        #expect(await lost.value == .cancelled)
        await bench.radio.say(Self.message)
        #expect(try await bench.session.time() == Golden.date)
        let events = await bench.session.events
        #expect(await events.first { if case .message = $0 { true } else { false } } != nil)
        await bench.session.stop()
    }

    @Test func `a message that cannot be read does not keep the others`() async throws {
        let bench = SessionBench(settings: Self.fetching) { frame, number in
            switch (frame.first, number) {
            case (10, 1): [hex("0701")]
            case (10, 2): [Self.message]
            default: nil
            }
        }
        let events = await bench.session.events
        try await bench.session.start()
        #expect(await events.first { $0 == .unreadable(hex("0701")) } != nil)
        #expect(await events.first { if case .message = $0 { true } else { false } } != nil)
        await bench.session.stop()
    }

    @Test func `messages are asked for now and then`() async throws {
        let bench = SessionBench(
            settings: .quiet {
                $0.fetchesMessages = true
                $0.messagePoll = .seconds(60)
            })
        let events = await bench.session.events
        try await bench.session.start()
        try await bench.session.ready()
        await bench.clock.step(to: .seconds(60))
        #expect(await bench.radio.sent(4)[2...] == ["0a", "0a"])
        await bench.session.stop()
        _ = events
    }
}
