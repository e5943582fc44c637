// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshLoop
import MeshRuntime
import MeshTransportAPI
import Synchronization
import Testing

@testable import MeshSharing

struct RadioSessionTests {
    // Reads that the host never answers itself.
    static let getCore = Data([0x38, 0])
    static let core = Data([0x18, 0]) + Data(count: 9)
    static let getRadio = Data([0x38, 1])
    static let radioStats = Data([0x18, 1]) + Data(count: 12)
    static let badState = Data([0x01, 0x04])

    @Test func `the host handshakes before anything else`() async throws {
        try await SharingBench.run { bench in
            let received = await bench.radio.received
            // Then what can wait until clients are served: messages and contacts.
            #expect(received.prefix(3) == [Data([0x16, 3]), CompanionFrame.appStart(name: "meshhost"), Data([0x05])])
            #expect(Set(received.dropFirst(3)).isSubset(of: [Data([0x0A]), Data([0x04])]))
        }
    }

    @Test func `commands of clients wait until the clock is right, and a link is ready before that`()
        async throws
    {
        let now: UInt32 = 1_800_000_000
        try await SharingBench.run(wallClock: .seconds(Int64(now)), session: { $0.sendWait = .seconds(600) }) { bench in
            let client = try await bench.client()
            #expect(try await client.ask(Self.getCore) == Self.core)
            let radio = bench.radio
            await radio.answer { $0.first == 0x05 ? [] : $0.first == 0x06 ? [Data([0])] : AnsweringRadio.usual($0) }
            _ = try await bench.event("link.ready") { await radio.vanish() }
            let before = await radio.received
            #expect(before.last == Data([0x05]))
            // What is known is answered at once, what is not waits.
            #expect(try await client.ask(Data([0x16, 3]))?.first == 0x0D)
            try await client.send(Self.getRadio)
            while await bench.session.clientSnapshots.first?.framesIn != 3 { await Task.yield() }
            #expect(await radio.received == before)
            await radio.push(Data([0x09]) + ContactSharingTests.number(now - 100))
            #expect(await client.next() == Self.radioStats)
            let after = await radio.received.dropFirst(before.count)
            #expect(after.first == Data([0x06]) + ContactSharingTests.number(now))
            #expect(after.contains(Self.getRadio))
        }
    }

    @Test func `a radio that does not tell the time serves its clients`() async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            let radio = bench.radio
            await radio.answer { $0.first == 0x05 ? [Data([0x01, 0x01])] : AnsweringRadio.usual($0) }
            _ = try await bench.event("link.ready") { await radio.vanish() }
            #expect(try await client.ask(Self.getCore) == Self.core)
        }
    }

    @Test func `a reply goes to its asker and to nobody else`() async throws {
        try await SharingBench.run { bench in
            let first = try await bench.client()
            let second = try await bench.client()
            try await first.send(Data([0x1F, 4]))
            try await second.send(Data([0x1F, 3]))
            #expect(await first.next()?.prefix(2) == Data([0x12, 4]))
            #expect(await second.next()?.prefix(2) == Data([0x12, 3]))
            // Had one got the other's reply, it would come before this one.
            #expect(try await first.ask(Self.getCore) == Self.core)
            #expect(try await second.ask(Self.getRadio) == Self.radioStats)
        }
    }

    @Test func `two clients asking at once for 2,000 rounds get their own answers`() async throws {
        try await SharingBench.run { bench in
            let first = try await bench.client()
            let second = try await bench.client()
            for round in 0..<2_000 {
                let channel = UInt8(round % 40)
                try await first.send(Data([0x1F, channel]))
                try await second.send(round % 2 == 0 ? Self.getCore : Self.getRadio)
                #expect(await first.next()?.prefix(2) == Data([0x12, channel]))
                #expect(await second.next() == (round % 2 == 0 ? Self.core : Self.radioStats))
            }
        }
    }

    @Test func `a push goes to everybody`() async throws {
        try await SharingBench.run { bench in
            let first = try await bench.client()
            let second = try await bench.client()
            _ = try await first.ask(Self.getCore)
            _ = try await second.ask(Self.getCore)
            let advert = Data([0x80]) + Data(repeating: 7, count: 32)
            await bench.radio.push(advert)
            #expect(await first.next() == advert)
            #expect(await second.next() == advert)
        }
    }

    @Test func `while the radio is away clients stay and get an error, and are served again after the handshake`()
        async throws
    {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            #expect(try await client.ask(Self.getCore) == Self.core)
            await bench.radio.answer { _ in [] }
            let radio = bench.radio
            _ = try await bench.event("link.down") { await radio.vanish() }
            #expect(try await client.ask(Self.getCore) == Self.badState)
            await radio.answer(with: AnsweringRadio.usual)
            _ = try await bench.event("link.ready") {}
            #expect(try await client.ask(Self.getCore) == Self.core)
            #expect(await !client.isClosed)
        }
    }

    @Test(.timeLimit(.minutes(20)))
    func `a frame that the transport is never done with does not hold up the link's end`()
        async throws
    {
        var lane = CommandLaneConfiguration()
        lane.replyTimeout = .milliseconds(50)
        lane.fenceTimeout = .milliseconds(50)
        lane.fenceSilence = .milliseconds(1)
        try await SharingBench.run(lane: lane) { bench in
            let client = try await bench.client()
            let radio = bench.radio
            let ready = bench.bus.subscribe(EventFilter(types: ["link.ready"]))
            _ = try await bench.event("link.down") {
                await radio.swallowFrames()
                // Unanswered, as the fences after it: the radio is taken for dead.
                let answer = try await client.ask(Self.getCore)
                #expect(answer == Self.badState)
            }
            var events = ready.makeAsyncIterator()
            _ = await events.next()
            #expect(await !client.isClosed)
        }
    }

    @Test func `a command in flight when the radio vanishes gets an error`() async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            await bench.radio.answer { command in
                command == Self.getCore ? [] : AnsweringRadio.usual(command)
            }
            let radio = bench.radio
            _ = try await bench.event("frame.tx") { try await client.send(Self.getCore) }
            await radio.vanish()
            #expect(await client.next() == Self.badState)
        }
    }

    @Test func `what the role does not allow never reaches the radio`() async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            #expect(try await client.ask(Data([0x17])) == Data([0x0F]))
            #expect(try await client.ask(Data([0x0F])) == Data([0x01, 0x01]))
            #expect(try await client.ask(Data([0x13]) + Data("reboot".utf8)) == Data([0x01, 0x01]))
            #expect(try await client.ask(Data([0x03, 0])) == Data([0x01, 0x06]))
            #expect(await bench.radio.received.allSatisfy { [0x16, 0x01, 0x05, 0x0A, 0x04].contains($0[0]) })
            #expect(await bench.session.counters.commandsRefused == 4)
        }
    }

    @Test func `a client's protocol version does not become the radio's`() async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            _ = try await client.ask(Data([0x16, 1]))
            #expect(await bench.radio.received.allSatisfy { $0.first != 0x16 || $0 == Data([0x16, 3]) })
        }
    }

    @Test func `a late reply is not given to the next asker`() async throws {
        var lane = CommandLaneConfiguration()
        lane.replyTimeout = .milliseconds(500)
        lane.fenceSilence = .milliseconds(1)
        try await SharingBench.run(lane: lane) { bench in
            let first = try await bench.client()
            let second = try await bench.client()
            let radio = bench.radio
            // The radio keeps the first answer back until it is asked for the time: the fence.
            let asked = Mutex(0)
            let other = Data([0x18, 1]) + Data(repeating: 0x22, count: 12)
            await radio.answer { command in
                switch command {
                case Self.getRadio:
                    asked.withLock {
                        $0 += 1; return $0 == 1
                    } ? [] : [other]
                case Data([0x05]): [Self.radioStats, Data([0x09, 1, 2, 3, 4])]
                default: AnsweringRadio.usual(command)
                }
            }
            #expect(try await first.ask(Self.getRadio) == Self.badState)
            #expect(try await second.ask(Self.getRadio) == other)
            let counters = await bench.session.counters
            #expect(counters.commandTimeouts == 1 && counters.lateReplies == 1)
        }
    }

    @Test func `a radio that answers nothing any more is reconnected`() async throws {
        var lane = CommandLaneConfiguration()
        lane.replyTimeout = .milliseconds(10)
        lane.fenceSilence = .milliseconds(1)
        lane.fenceTimeout = .milliseconds(10)
        try await SharingBench.run(lane: lane) { bench in
            let client = try await bench.client()
            let radio = bench.radio
            await radio.answer { _ in [] }
            let down = try await bench.event("link.down") { try await client.send(Self.getCore) }
            #expect(down.data["code"]?.stringValue == "operation.timeout")
            await radio.answer(with: AnsweringRadio.usual)
            _ = try await bench.event("link.ready") {}
            #expect(await radio.connects >= 2)
        }
    }

    @Test func `a client that does not read is cut, and the others miss nothing`() async throws {
        try await SharingBench.run(share: {
            $0.receivedPacketLogs = true; $0.stuckTimeout = .milliseconds(50)
        }) { bench in
            let reader = try await bench.client()
            let stuck = try await bench.client()
            _ = try await reader.ask(Self.getCore)
            _ = try await stuck.ask(Self.getCore)
            await stuck.stopReading()
            let radio = bench.radio
            let leave = try await bench.event("client.leave") {
                for number in 0..<10_000 {
                    let frame = Data([0x88, UInt8(number & 255), UInt8(number >> 8)]) + Data(count: 97)
                    await radio.push(frame)
                    #expect(await reader.next() == frame)
                }
            }
            #expect(leave.data["reason"]?.stringValue == "stuck")
            #expect(await bench.session.counters.left[.stuck] == 1)
            await stuck.close()
            #expect(try await reader.ask(Self.getCore) == Self.core)
        }
    }

    @Test func `a share takes so many clients and no more`() async throws {
        try await SharingBench.run(share: {
            $0.maximumClients = 1
        }) { bench in
            let first = try await bench.client()
            _ = try await first.ask(Self.getCore)
            let second = try await bench.client()
            #expect(await second.next() == nil)
            #expect(await bench.session.counters.left[.refused] == 1)
            await first.close()
        }
    }

    @Test func `a client that leaves during its command does not spoil the next one`() async throws {
        try await SharingBench.run { bench in
            let first = try await bench.client()
            let second = try await bench.client()
            let radio = bench.radio
            await radio.answer { command in command == Self.getRadio ? [] : AnsweringRadio.usual(command) }
            _ = try await bench.event("frame.tx") { try await first.send(Self.getRadio) }
            await first.close()
            try await second.send(Self.getCore)
            let leave = try await bench.event("client.leave") { await radio.push(Self.radioStats) }
            #expect(leave.data["reason"]?.stringValue == "closed")
            #expect(await second.next() == Self.core)
        }
    }

    @Test func `junk between a client's frames is skipped`() async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            try await client.sendRaw(Data([0xFF, 0x3C, 0x00, 0x00, 0x3E, 0x3C, 0x02, 0x00, 0x38, 0x00]))
            #expect(await client.next() == Self.core)
        }
    }

    @Test func `messages and adverts become events`() async throws {
        try await SharingBench.run { bench in
            let radio = bench.radio
            let advert = try await bench.event("advert") {
                await radio.push(Data([0x80]) + Data(repeating: 0xAB, count: 32))
            }
            #expect(advert.data["public_key"]?.stringValue == String(repeating: "ab", count: 32))
            #expect(advert.device == "roof")
            // Golden bytes: reference §3.3 R8, decoded with meshcore_py 2.3.17.
            let frame =
                Data([0x10, 0xF8, 0, 0, 1, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xFF, 0, 0x80, 0, 0x92, 0x65])
                + Data("Hello".utf8)
            await radio.queue([frame])
            let message = try await bench.event("message.direct") { await radio.push(Data([0x83])) }
            #expect(message.data["text"]?.stringValue == "Hello")
            #expect(message.data["message"]?.intValue != nil)
        }
    }

    @Test func `what is said to one client when another one has ended reaches it`() async throws {
        try await SharingBench.run { bench in
            let ending = try await bench.client()
            let staying = try await bench.client()
            for client in [ending, staying] { #expect(try await client.ask(Self.getCore) == Self.core) }
            let news = Data([0x90])
            await bench.session.give(news, to: 2, whenLeft: 1)
            await ending.finishSending()
            #expect(await ending.next() == nil)
            // In its own turn, which is over.
            try #require(await !bench.session.isToBeFlushed(2))
            #expect(await staying.next() == news)
        }
    }
}

extension RadioSession {
    /// Whether the client is on the list of those to be flushed.
    fileprivate func isToBeFlushed(_ id: UInt64) -> Bool { clients[id]?.connection.isDirty ?? false }

    /// Gives a client a frame in the moment in which the connection of another one has ended.
    fileprivate func give(_ frame: Data, to id: UInt64, whenLeft ending: UInt64) {
        guard let client = clients[id], let ending = clients[ending], let settings = shares[0]?.settings else { return }
        let loop = loop
        ending.connection.become(
            ShareClient.Callbacks(
                now: { loop.now }, room: { 1 }, onFrame: { _ in }, onInputEnd: { self.flushLater(ending) },
                onDrained: {},
                onLeave: { reason in
                    self.clientLeft(ending, settings, reason)
                    self.give(client, frame)
                }))
    }
}
