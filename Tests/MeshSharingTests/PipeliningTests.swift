// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshRuntime
import MeshTransportAPI
import Testing

@testable import MeshSharing

/// Clients that send many commands at once, and go away meanwhile.
struct PipeliningTests {
    static let getCore = RadioSessionTests.getCore
    static let core = RadioSessionTests.core
    static let getRadio = RadioSessionTests.getRadio
    static let radioStats = RadioSessionTests.radioStats
    static let badState = RadioSessionTests.badState
    static let illegal = Data([0x01, 0x06])
    static let unsupported = Data([0x01, 0x01])
    static let reboot = Data([0x13]) + Data("reboot".utf8)

    static func framed(_ commands: [Data]) -> Data {
        commands.reduce(into: Data()) { $0 += Data([0x3C, UInt8($1.count), 0]) + $1 }
    }

    /// A radio that does not answer one of the questions.
    @Sendable static func withoutRadioStats(_ command: Data) -> [Data] {
        command == getRadio ? [] : AnsweringRadio.usual(command)
    }

    @Test func `answers come in the order of the client's commands`() async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            try await client.sendRaw(Self.framed([Self.getRadio, Self.reboot, Self.getCore, Data([0x03])]))
            #expect(await client.next() == Self.radioStats)
            #expect(await client.next() == Self.unsupported)
            #expect(await client.next() == Self.core)
            #expect(await client.next() == Self.illegal)
        }
    }

    @Test(arguments: [1_000, 50_000])
    func `so many commands at once are all answered, none is refused`(_ count: Int) async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            async let sent: Void = client.sendRaw(
                Self.framed(
                    (0..<count).map { $0 % 10 == 0 ? Self.reboot : $0 % 2 == 0 ? Self.getCore : Self.getRadio }))
            for number in 0..<count {
                let expected = number % 10 == 0 ? Self.unsupported : number % 2 == 0 ? Self.core : Self.radioStats
                let answer = await client.next()
                guard answer == expected else {
                    Issue.record("answer \(number) is \(answer.map { [UInt8]($0) } ?? [])")
                    break
                }
            }
            try await sent
        }
    }

    @Test func `a long series of commands comes whole through a slow lane`() async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            let radio = bench.radio
            await radio.answer(with: Self.withoutRadioStats)
            let key = Data((0..<32).map { UInt8($0) })
            let commands = (0..<400).map { $0 % 2 == 0 ? Self.getRadio : Data([0x1E]) + key }
            try await client.sendRaw(Self.framed(commands))
            for number in 0..<400 {
                if number % 2 == 0 {
                    while await radio.received.count(where: { $0 == Self.getRadio }) <= number / 2 {
                        await Task.yield()
                    }
                    await radio.push(Self.radioStats)
                }
                #expect(await client.next() == (number % 2 == 0 ? Self.radioStats : Self.unsupported))
            }
        }
    }

    @Test func `a client that sends without end does not keep others from reading`() async throws {
        try await SharingBench.run { bench in
            let text = Data([0x03, 0, 0, 1, 0, 0, 0, 0x41])
            let radio = bench.radio
            await radio.answer { $0 == text ? [] : AnsweringRadio.usual($0) }
            let sender = try await bench.client()
            try await sender.sendRaw(Self.framed(Array(repeating: text, count: 60)))
            while await !radio.received.contains(text) { await Task.yield() }
            let reader = try await bench.client()
            try await reader.send(Self.getCore)
            while await !bench.session.lane.isAwaited(by: 2) { await Task.yield() }
            for sends in 1...10 {
                while await radio.received.count(where: { $0 == text }) < sends { await Task.yield() }
                await radio.push(Data([0x00]))
                #expect(await sender.next() == Data([0x00]))
                if await !bench.session.lane.isAwaited(by: 2) { break }
            }
            let answered = await !bench.session.lane.isAwaited(by: 2)
            try #require(answered)
            #expect(await reader.next() == Self.core)
        }
    }

    @Test func `commands of a client that was reset do not reach the radio`() async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            let other = try await bench.client()
            _ = try await client.ask(Self.getCore)
            _ = try await other.ask(Self.getCore)
            let radio = bench.radio
            await radio.answer(with: Self.withoutRadioStats)
            await client.stopReading()
            await radio.push(Data([0x90]))
            #expect(await other.next() == Data([0x90]))
            let leave = try await bench.event("client.leave") {
                try await client.sendRaw(Self.framed(Array(repeating: Self.getRadio, count: 500)))
                // With a frame unread, closing resets the connection.
                await client.close()
            }
            #expect(leave.data["reason"]?.stringValue == "failed")
            await radio.push(Self.radioStats)
            #expect(try await other.ask(Self.getCore) == Self.core)
            #expect(await radio.received.count { $0 == Self.getRadio } <= 1)
        }
    }

    @Test func `commands of a client that has closed for good end with the first answer it does not take`() async throws
    {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            let radio = bench.radio
            await radio.answer(with: Self.withoutRadioStats)
            _ = try await bench.event("frame.tx") {
                try await client.sendRaw(Self.framed(Array(repeating: Self.getRadio, count: 500)))
            }
            await client.close()
            let leave = try await bench.event("client.leave") { await radio.push(Self.radioStats) }
            #expect(leave.data["reason"]?.stringValue == "closed")
            // Not counting what the host asks when the radio leaves the second one unanswered.
            #expect(await radio.received.count { $0 == Self.getRadio } <= 2)
        }
    }

    @Test func `a client that closes its side still gets its answers, then is closed`() async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            let leave = try await bench.event("client.leave") {
                try await client.sendRaw(Self.framed(Array(repeating: Self.getRadio, count: 300) + [Self.reboot]))
                await client.finishSending()
                for _ in 0..<300 { #expect(await client.next() == Self.radioStats) }
                #expect(await client.next() == Self.unsupported)
                #expect(await client.next() == nil)
            }
            #expect(leave.data["reason"]?.stringValue == "closed")
            await client.close()
        }
    }

    @Test func `a client that closes its side waits no longer than the lane`() async throws {
        var lane = CommandLaneConfiguration()
        lane.replyTimeout = .milliseconds(20)
        lane.departureTimeout = .milliseconds(20)
        lane.fenceSilence = .milliseconds(1)
        try await SharingBench.run(
            lane: lane,
            share: {
                $0.role = .owner
            }
        ) { bench in
            let radio = bench.radio
            await radio.answer { $0 == Self.reboot ? [] : Self.withoutRadioStats($0) }
            for command in [Self.getRadio, Self.reboot] {
                let client = try await bench.client()
                try await client.send(command)
                await client.finishSending()
                if command == Self.getRadio { #expect(await client.next() == Self.badState) }
                #expect(await client.next() == nil)
                await client.close()
            }
        }
    }

    @Test func `a client that closes its side while the radio is away is answered and closed`() async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            let radio = bench.radio
            await radio.answer(with: Self.withoutRadioStats)
            _ = try await bench.event("frame.tx") {
                try await client.sendRaw(Self.framed(Array(repeating: Self.getRadio, count: 200)))
                await client.finishSending()
            }
            await radio.vanish()
            for _ in 0..<200 { #expect(await client.next() == Self.badState) }
            #expect(await client.next() == nil)
            await client.close()
        }
    }

    @Test func `the radio's error to REBOOT goes to who asked`() async throws {
        try await SharingBench.run(share: {
            $0.role = .owner
        }) { bench in
            let first = try await bench.client()
            let second = try await bench.client()
            try await first.send(Self.reboot)
            #expect(await first.next() == Self.unsupported)
            #expect(try await second.ask(Self.getCore) == Self.core)
        }
    }

    @Test func `a command that cannot be sent ends at once with an error`() async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            let radio = bench.radio
            await radio.failSends(MeshError(.frameTooLong, "too long"))
            #expect(try await client.ask(Self.getCore) == Self.illegal)
            #expect(try await client.ask(Self.getRadio) == Self.illegal)
            await radio.failSends(MeshError(.linkClosed, "trouble"))
            #expect(try await client.ask(Self.getCore) == Self.badState)
            await radio.failSends(nil)
            #expect(try await client.ask(Self.getCore) == Self.core)
            #expect(await bench.session.counters.commandTimeouts == 0)
        }
    }

    @Test func `a frame that the link cannot carry never reaches it`() async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            let radio = bench.radio
            await radio.limitFrames(40)
            _ = try await bench.event("link.ready") { await radio.vanish() }
            let message = Data([0x02, 0, 0, 1, 2, 3, 4]) + Data(repeating: 0x41, count: 34)
            #expect(try await client.ask(message) == Self.illegal)
            #expect(try await client.ask(message.prefix(40)) == Self.unsupported)
            #expect(await radio.received.last == message.prefix(40))
        }
    }

    @Test func `refused clients are told of together`() {
        var reports = RefusalReports()
        #expect(reports.refused(now: .seconds(10)) == 1)
        #expect(reports.refused(now: .milliseconds(10_001)) == nil)
        #expect(reports.refused(now: .milliseconds(10_999)) == nil)
        #expect(reports.refused(now: .seconds(11)) == 3)
        #expect(reports.refused(now: .seconds(30)) == 1)
    }
}
