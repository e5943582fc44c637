// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshLoop
import MeshRuntime
import MeshTransportAPI
import Testing

@testable import MeshSharing

/// What each client has for itself: answers from the mesh, acknowledgements, scope, signing, what it may use.
struct VirtualCompanionTests {
    static let getCore = RadioSessionTests.getCore
    static let core = RadioSessionTests.core
    static let badState = RadioSessionTests.badState
    static let ok = Data([0x00])
    static let tableFull = Data([0x01, 0x03])

    static func key(_ byte: UInt8) -> Data { Data(repeating: byte, count: 32) }
    static func login(_ byte: UInt8) -> Data { Data([0x1A]) + key(byte) + Data("secret".utf8) }
    static func status(_ byte: UInt8) -> Data { Data([0x1B]) + key(byte) }
    static func sent(_ tag: Data, timeout: UInt32 = 1_000) -> Data {
        Data([0x06, 1]) + tag + Data((0..<4).map { UInt8(truncatingIfNeeded: timeout >> ($0 * 8)) })
    }
    static func loginSuccess(_ byte: UInt8) -> Data { Data([0x85, 1]) + key(byte).prefix(6) }
    static func statusPush(_ byte: UInt8) -> Data { Data([0x87, 0]) + key(byte).prefix(6) + Data(count: 48) }
    static func text(_ timestamp: UInt8 = 0) -> Data {
        Data([0x02, 0, 0, timestamp, 0, 0x92, 0x65, 1, 2, 3, 4, 5, 6]) + Data("Hi".utf8)
    }
    static func channelText(_ text: String) -> Data { Data([0x03, 0, 0, 1, 0, 0x92, 0x65]) + Data(text.utf8) }

    /// A radio that takes mesh requests, with the tag of each.
    @Sendable static func meshRadio(_ command: Data) -> [Data] {
        switch command.first {
        case 0x1A, 0x1B: [sent(command.dropFirst().prefix(4))]
        case 0x02: [sent(Data([0xDE, 0xAD, 0xBE, 0xEF]))]
        case 0x24: [sent(command.dropFirst().prefix(4))]
        case 0x03, 0x36, 0x22: [ok]
        case 0x21: [Data([0x13, 0, 0, 0x20, 0, 0])]
        case 0x23: [Data([0x14]) + Data(repeating: 0x51, count: 64)]
        default: AnsweringRadio.usual(command)
        }
    }

    // MARK: Answers from the mesh

    @Test func `two mesh requests go one after the other, and each client gets its own answer`() async throws {
        try await SharingBench.run(answers: Self.meshRadio) { bench in
            let first = try await bench.client()
            let second = try await bench.client()
            let radio = bench.radio
            #expect(try await first.ask(Self.login(1)) == Self.sent(Self.key(1).prefix(4)))
            try await second.send(Self.status(2))
            // Other commands are not held up by it.
            #expect(try await first.ask(Self.getCore) == Self.core)
            #expect(await radio.received.allSatisfy { $0.first != 0x1B })
            await radio.push(Self.loginSuccess(1))
            #expect(await first.next() == Self.loginSuccess(1))
            #expect(await second.next() == Self.sent(Self.key(2).prefix(4)))
            await radio.push(Self.statusPush(2))
            #expect(await second.next() == Self.statusPush(2))
            // Had one got the other's, it would come before these.
            #expect(try await first.ask(Self.getCore) == Self.core)
            #expect(try await second.ask(Self.getCore) == Self.core)
        }
    }

    @Test func `a mesh request that has to wait too long is refused, and the next command is done`() async throws {
        try await SharingBench.run(
            session: { $0.meshRequestWait = .milliseconds(20) }, answers: Self.meshRadio
        ) { bench in
            let first = try await bench.client()
            let second = try await bench.client()
            _ = try await first.ask(Self.login(1))
            #expect(try await second.ask(Self.status(2)) == Self.tableFull)
            #expect(try await second.ask(Self.getCore) == Self.core)
            #expect(await bench.session.counters.meshRequestsRefused == 1)
        }
    }

    @Test func `a request that the mesh does not answer gives way to the next`() async throws {
        try await SharingBench.run(
            session: { $0.meshRequests.margin = .milliseconds(1) },
            answers: { $0.first == 0x1A ? [Self.sent($0.dropFirst().prefix(4), timeout: 10)] : Self.meshRadio($0) }
        ) { bench in
            let first = try await bench.client()
            let second = try await bench.client()
            _ = try await first.ask(Self.login(1))
            #expect(try await second.ask(Self.status(2)) == Self.sent(Self.key(2).prefix(4)))
            // The second has no more time than the first.
            #expect(await bench.session.counters.meshRequestsUnanswered >= 1)
        }
    }

    @Test func `a failure to send that is told late lets no second mesh request out`() async throws {
        var lane = CommandLaneConfiguration()
        lane.replyTimeout = .seconds(600)
        try await SharingBench.run(lane: lane, answers: Self.meshRadio) { bench in
            let first = try await bench.client()
            let second = try await bench.client()
            let radio = bench.radio
            await radio.hold(sendsOf: Self.getCore[0])
            #expect(try await first.ask(Self.getCore) == Self.core)
            // Its receipt is awaited when the sending of the command before it fails.
            await radio.answer { $0.first == 0x1A ? [] : Self.meshRadio($0) }
            try await first.send(Self.login(1))
            while await !radio.received.contains(Self.login(1)) { await Task.yield() }
            await radio.failHeldSend(MeshError(.linkClosed, "the write failed"))
            for _ in 0..<100 { await Task.yield() }
            await radio.push(Self.sent(Self.key(1).prefix(4)))
            #expect(await first.next() == Self.sent(Self.key(1).prefix(4)))
            try await second.send(Self.status(2))
            #expect(try await first.ask(Self.getCore) == Self.core)
            #expect(await radio.received.allSatisfy { $0.first != 0x1B })
            await radio.push(Self.loginSuccess(1))
            #expect(await first.next() == Self.loginSuccess(1))
            #expect(await second.next() == Self.sent(Self.key(2).prefix(4)))
        }
    }

    @Test func `two clients may trace with the same tag`() async throws {
        try await SharingBench.run(answers: Self.meshRadio) { bench in
            let clients = [try await bench.client(), try await bench.client()]
            let radio = bench.radio
            let tag = Data([1, 2, 3, 4])
            for (number, client) in clients.enumerated() {
                let trace = Data([0x24]) + tag + Data(count: 4) + Data([0, UInt8(number)])
                #expect(try await client.ask(trace + Data([9]))?.dropFirst(2).prefix(4) == tag)
            }
            let sent = await radio.received.filter { $0.first == 0x24 }
            #expect(sent[0].dropFirst().prefix(4) != sent[1].dropFirst().prefix(4))
            // The second one's answer comes first.
            for number in [1, 0] {
                let rest = Data(count: 4) + Data([UInt8(number), 9, 4, 8, 12])
                await radio.push(Data([0x89, 0, 2, 0]) + sent[number].dropFirst().prefix(4) + rest)
                #expect(await clients[number].next() == Data([0x89, 0, 2, 0]) + tag + rest)
            }
        }
    }

    @Test func `an acknowledgement goes to the sender`() async throws {
        try await SharingBench.run(answers: Self.meshRadio) { bench in
            let clients = [try await bench.client(), try await bench.client(), try await bench.client()]
            let radio = bench.radio
            // The same code for both: the recipient is not part of it (reference §1.8).
            _ = try await clients[1].ask(Self.text())
            _ = try await clients[0].ask(Self.text())
            let confirmed = Data([0x82, 0xDE, 0xAD, 0xBE, 0xEF, 0, 1, 0, 0])
            await radio.push(confirmed)
            #expect(await clients[1].next() == confirmed)
            await radio.push(confirmed)
            #expect(await clients[0].next() == confirmed)
            for client in clients { #expect(try await client.ask(Self.getCore) == Self.core) }
        }
    }

    // MARK: Of its own

    @Test func `each client's sends go out in its own flood scope`() async throws {
        try await SharingBench.run(answers: Self.meshRadio) { bench in
            let scoped = try await bench.client()
            let plain = try await bench.client()
            let scope = Data([0x36, 0]) + Data(repeating: 5, count: 16)
            #expect(try await scoped.ask(scope) == Self.ok)
            for client in [scoped, scoped, plain, scoped] {
                #expect(try await client.ask(Self.channelText("Hi")) == Self.ok)
            }
            let frames = await bench.radio.received.filter { [0x36, 0x03].contains($0.first) }
            let text = Self.channelText("Hi")
            #expect(frames == [scope, text, text, Data([0x36, 0]), text, scope, text])
        }
    }

    @Test func `a scope that may not have been set is set again`() async throws {
        var lane = CommandLaneConfiguration()
        lane.replyTimeout = .milliseconds(500)
        lane.fenceSilence = .milliseconds(1)
        try await SharingBench.run(lane: lane, answers: Self.meshRadio) { bench in
            let scoped = try await bench.client()
            let plain = try await bench.client()
            let scope = Data([0x36, 0]) + Data(repeating: 5, count: 16)
            let text = Self.channelText("Hi")
            _ = try await scoped.ask(scope)
            #expect(try await scoped.ask(text) == Self.ok)
            // The radio takes the other scope, and its answer is lost.
            let radio = bench.radio
            await radio.answer { $0 == Data([0x36, 0]) ? [] : Self.meshRadio($0) }
            #expect(try await plain.ask(text) == Self.badState)
            // And once it says that it cannot just now.
            await radio.answer { $0 == scope ? [Data([0x01, 0x04])] : Self.meshRadio($0) }
            #expect(try await scoped.ask(text) == Self.badState)
            await radio.answer(with: Self.meshRadio)
            #expect(try await scoped.ask(text) == Self.ok)
            let frames = await radio.received.filter { [0x36, 0x03].contains($0.first) }
            #expect(frames == [scope, text, Data([0x36, 0]), scope, scope, text])
        }
    }

    @Test func `a radio that was told to go away is greeted when it is back, and its client is served`() async throws {
        for vanishes in [true, false] {
            var lane = CommandLaneConfiguration()
            lane.departureTimeout = vanishes ? .seconds(600) : .milliseconds(20)
            try await SharingBench.run(lane: lane, share: { $0.role = .owner }) { bench in
                let radio = bench.radio
                let reboot = PipeliningTests.reboot
                await radio.answer { $0 == reboot ? [] : AnsweringRadio.usual($0) }
                let client = try await bench.client()
                _ = try await client.ask(Self.getCore)
                let ready = bench.bus.subscribe(EventFilter(types: ["link.ready"]))
                _ = try await bench.event("link.down") {
                    try await client.send(reboot)
                    while await !radio.received.contains(reboot) { await Task.yield() }
                    // Whether the link shows it or not.
                    if vanishes { await radio.vanish() }
                }
                var events = ready.makeAsyncIterator()
                _ = await events.next()
                #expect(try await client.ask(Self.getCore) == Self.core)
            }
        }
    }

    @Test func `signatures of two admins do not mix`() async throws {
        try await SharingBench.run(share: { $0.role = .admin }, answers: Self.meshRadio) { bench in
            let first = try await bench.client()
            let second = try await bench.client()
            for client in [first, second] {
                #expect(try await client.ask(Data([0x21])) == Data([0x13, 0, 0, 0x20, 0, 0]))
            }
            #expect(try await first.ask(Data([0x22, 1])) == Self.ok)
            #expect(try await second.ask(Data([0x22, 2])) == Self.ok)
            #expect(try await first.ask(Data([0x22, 3])) == Self.ok)
            for client in [first, second] { #expect(try await client.ask(Data([0x23]))?.first == 0x14) }
            let frames = await bench.radio.received.filter { [0x21, 0x22, 0x23].contains($0.first) }
            #expect(
                frames == [
                    Data([0x21]), Data([0x22, 1, 3]), Data([0x23]), Data([0x21]), Data([0x22, 2]), Data([0x23]),
                ])
        }
    }

    @Test func `a signature that is wanted during a handshake is made after it`() async throws {
        var lane = CommandLaneConfiguration()
        lane.replyTimeout = .seconds(600)
        try await SharingBench.run(
            lane: lane, session: { $0.sendWait = .seconds(600) }, share: { $0.role = .admin }, answers: Self.meshRadio
        ) { bench in
            let client = try await bench.client()
            let radio = bench.radio
            _ = try await client.ask(Data([0x21]))
            #expect(try await client.ask(Data([0x22, 1])) == Self.ok)
            // The handshake stops at APP_START.
            await radio.answer { $0.first == 0x01 ? [] : Self.meshRadio($0) }
            let asked = await radio.received.count { $0.first == 0x01 }
            _ = try await bench.event("link.down") { await radio.vanish() }
            // Virtual time goes on for who sleeps, and brings the next attempt.
            while await radio.received.count(where: { $0.first == 0x01 }) == asked {
                try await bench.loop.sleep(for: .milliseconds(1))
            }
            try await client.send(Data([0x23]))
            while await bench.session.clientSnapshots.first?.framesIn != 3 { await Task.yield() }
            await radio.answer(with: Self.meshRadio)
            for frame in AnsweringRadio.usual(Data([0x01])) { await radio.push(frame) }
            #expect(await client.next()?.first == 0x14)
            let frames = await radio.received.filter { [0x21, 0x22, 0x23].contains($0.first) }
            #expect(frames == [Data([0x21]), Data([0x22, 1]), Data([0x23])])
        }
    }

    @Test func `received-packet logs go to shares that want them`() async throws {
        let log = Data([0x88, 0x20, 0xAB, 0x15, 0])
        for wanted in [true, false] {
            try await SharingBench.run(share: { $0.receivedPacketLogs = wanted }) { bench in
                let client = try await bench.client()
                _ = try await client.ask(Self.getCore)
                await bench.radio.push(log)
                let marker = Data([0x90])
                await bench.radio.push(marker)
                if wanted { #expect(await client.next() == log) }
                #expect(await client.next() == marker)
            }
        }
    }

    // MARK: While the radio is away

    @Test func `a send waits for the link, and goes out when it is back`() async throws {
        try await SharingBench.run(session: { $0.sendWait = .seconds(60) }, answers: Self.meshRadio) { bench in
            let client = try await bench.client()
            _ = try await client.ask(Self.getCore)
            let radio = bench.radio
            await radio.stayAway(true)
            _ = try await bench.event("link.down") { await radio.vanish() }
            #expect(try await client.ask(Self.getCore) == Self.badState)
            try await client.send(Self.channelText("later"))
            await radio.stayAway(false)
            #expect(await client.next() == Self.ok)
            #expect(await bench.radio.received.last { $0.first == 0x03 } == Self.channelText("later"))
        }
    }

    @Test func `a send that has waited long enough is refused`() async throws {
        for wait in [Duration.zero, .milliseconds(20)] {
            try await SharingBench.run(session: { $0.sendWait = wait }) { bench in
                let client = try await bench.client()
                _ = try await client.ask(Self.getCore)
                let radio = bench.radio
                await radio.stayAway(true)
                _ = try await bench.event("link.down") { await radio.vanish() }
                #expect(try await client.ask(Self.channelText("late")) == Self.badState)
            }
        }
    }

    @Test func `nothing waits for a radio that somebody has disconnected`() async throws {
        try await SharingBench.run(session: { $0.sendWait = .seconds(3_600) }, answers: Self.meshRadio) { bench in
            let client = try await bench.client()
            _ = try await client.ask(Self.getCore)
            let begin = bench.loop.now
            let radio = bench.radio
            await radio.stayAway(true)
            _ = try await bench.event("link.down") { await radio.vanish() }
            // What has begun to wait does not wait on.
            try await client.send(Self.channelText("late"))
            while await !bench.session.hasWaitingClient { await Task.yield() }
            try await bench.perform(.disconnect)
            #expect(await client.next() == Self.badState)
            #expect(try await client.ask(Self.channelText("later")) == Self.badState)
            #expect(bench.loop.now - begin < .seconds(3_600))
            // Asked for again, it is waited for.
            try await bench.perform(.connect)
            try await client.send(Self.channelText("soon"))
            await radio.stayAway(false)
            #expect(await client.next() == Self.ok)
        }
    }

    @Test func `who begins with a radio that nobody wants is answered at once`() async throws {
        try await SharingBench.run(session: { $0.sendWait = .seconds(3_600) }, intent: .disconnect) { bench in
            let client = try await bench.client()
            let begin = bench.loop.now
            for command in [Data([0x16, 3]), Data([0x01]) + Data(count: 7) + Data("test".utf8)] {
                #expect(try await client.ask(command) == Self.badState)
            }
            #expect(bench.loop.now - begin < .seconds(3_600))
            try await bench.perform(.connect)
            #expect(try await client.ask(Data([0x16, 3]))?.first == 0x0D)
        }
    }

    @Test func `what is known is told while the radio is away`() async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            let start = Data([0x01]) + Data(count: 7) + Data("test".utf8)
            let selfInfo = try await client.ask(start)
            let channel = try await client.ask(Data([0x1F, 2]))
            let radio = bench.radio
            await radio.stayAway(true)
            _ = try await bench.event("link.down") { await radio.vanish() }
            #expect(try await client.ask(start) == selfInfo)
            #expect(try await client.ask(Data([0x1F, 2])) == channel)
            #expect(try await client.ask(Data([0x1F, 3])) == Self.badState)
        }
    }

    // MARK: Limits

    @Test func `sends beyond the share's air time are refused and do not reach the radio`() async throws {
        // 868 MHz, 62.5 kHz, SF 8, CR 5: a text takes a good part of a second.
        let selfInfo =
            Data([0x05, 1, 22, 22]) + Self.key(9) + Data(count: 12)
            + Data([0x20, 0x44, 0x0D, 0, 0x24, 0xF4, 0, 0, 8, 5])
            + Data("Test".utf8)
        try await SharingBench.run(
            share: {
                $0.airtimePercent = 1
                $0.airtimeBurst = .seconds(2)
            }, answers: { $0.first == 0x01 ? [selfInfo] : Self.meshRadio($0) }
        ) { bench in
            let client = try await bench.client()
            var accepted = 0
            while try await client.ask(Self.channelText("Hello, everybody")) == Self.ok { accepted += 1 }
            #expect((1..<20).contains(accepted))
            #expect(await bench.radio.received.count { $0.first == 0x03 } == accepted)
            #expect(await bench.session.counters.airtimeRefused == 1)
            #expect(try await client.ask(Self.getCore) == Self.core)
        }
    }

    @Test func `a silent radio that answers is left alone, however quiet the mesh is`() async throws {
        try await SharingBench.run(session: { $0.probeSilence = .milliseconds(20) }) { bench in
            var sent = bench.bus.subscribe(EventFilter(types: ["frame.tx"])).makeAsyncIterator()
            var probes = 0
            while probes < 3, let event = await sent.next() {
                if event.data["hex"]?.stringValue == "05" { probes += 1 }
            }
            #expect(await bench.radio.connects == 1)
        }
    }

    @Test func `a silent radio is asked whether it is there, and reconnected if it is not`() async throws {
        var lane = CommandLaneConfiguration()
        lane.replyTimeout = .milliseconds(10)
        lane.fenceSilence = .milliseconds(1)
        lane.fenceTimeout = .milliseconds(10)
        try await SharingBench.run(lane: lane, session: { $0.probeSilence = .milliseconds(20) }) { bench in
            let radio = bench.radio
            _ = try await bench.event("link.down") { await radio.answer { _ in [] } }
            await radio.answer(with: AnsweringRadio.usual)
        }
    }
}

extension RadioSession {
    /// Whether a client waits for something that does not wait for ever.
    fileprivate var hasWaitingClient: Bool { clients.values.contains { $0.deadline != nil } }
}
