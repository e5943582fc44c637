// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshLoop
import MeshRuntime
import MeshTransportAPI
import Testing

@testable import MeshSharing

/// Contact lists: one pass over the radio's for all clients.
struct ContactSharingTests {
    static func number(_ value: UInt32) -> Data { Data((0..<4).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }) }

    static func changed(_ index: Int) -> UInt32 { UInt32(1_000 + 4 * index) }

    /// A row of the list; it changed at second `1000 + 4 * index` of the radio's clock.
    static func row(_ index: Int) -> Data {
        Data([0x03]) + Data([UInt8(index >> 8), UInt8(index & 0xFF)]) + Data(repeating: 7, count: 30)
            + Data([1, 0, 0xFF])
            + Data(count: 64) + Data("Contact".utf8) + Data(count: 25) + Data(count: 12)
            + number(changed(index))
    }

    /// A radio with so many contacts, with the firmware's strict `since`.
    static func radio(_ count: Int) -> @Sendable (Data) -> [Data] {
        { command in
            switch command.first {
            case 0x04:
                let bytes = [UInt8](command.dropFirst())
                let since = bytes.count == 4 ? bytes.reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) } : 0
                let rows = (0..<count).filter { changed($0) > since }
                let latest = rows.last.map(changed) ?? 0
                return [Data([0x02]) + number(UInt32(count))] + rows.map(row) + [Data([0x04]) + number(latest)]
            case 0x05: return [Data([0x09]) + number(1_018)]
            case 0x0D, 0x0F: return [Data([0x00])]
            default: return AnsweringRadio.usual(command)
            }
        }
    }

    static func list(_ client: ShareTestClient, since: UInt32? = nil) async throws -> [Data] {
        try await client.send(Data([0x04]) + (since.map(number) ?? Data()))
        var frames: [Data] = []
        while let frame = await client.next() {
            frames.append(frame)
            if frame.first == 0x04 || frame.first == 0x01 { break }
        }
        return frames
    }

    static func passes(_ bench: isolated SharingBench) async -> Int {
        await bench.radio.received.count { $0.first == 0x04 }
    }

    @Test func `eight clients get 350 contacts from one pass`() async throws {
        try await SharingBench.run(answers: Self.radio(350)) { bench in
            var clients: [ShareTestClient] = []
            for _ in 0..<8 { clients.append(try await bench.client()) }
            for client in clients { try await client.send(Data([0x04])) }
            for client in clients {
                var frames: [Data] = []
                while frames.last?.first != 0x04, let frame = await client.next() { frames.append(frame) }
                #expect(frames.count == 352)
                #expect(frames.first == Data([0x02]) + Self.number(350))
                #expect(frames.dropFirst().dropLast() == ArraySlice((0..<350).map(Self.row)))
                #expect(frames.last == Data([0x04]) + Self.number(Self.changed(349)))
            }
            #expect(await Self.passes(bench) == 1)
        }
    }

    @Test func `since is strict, and the end tells the latest of the rows`() async throws {
        try await SharingBench.run(answers: Self.radio(5)) { bench in
            let client = try await bench.client()
            #expect(
                try await Self.list(client, since: 1_012) == [
                    Data([0x02]) + Self.number(5), Self.row(4), Data([0x04]) + Self.number(1_016),
                ])
            #expect(
                try await Self.list(client, since: 1_016) == [
                    Data([0x02]) + Self.number(5), Data([0x04]) + Self.number(0),
                ])
        }
    }

    @Test func `a link is ready before what changed meanwhile is known, and a list waits for that`() async throws {
        try await SharingBench.run(answers: Self.radio(5)) { bench in
            let client = try await bench.client()
            _ = try await Self.list(client)
            let radio = bench.radio
            let more = Self.radio(6)
            await radio.answer { $0.first == 0x04 ? [] : more($0) }
            _ = try await bench.event("link.ready") { await radio.vanish() }
            try await client.send(Data([0x04]))
            // Other commands would be served first; the pass is in the lane.
            while await Self.passes(bench) != 2 { try await bench.loop.sleep(for: .milliseconds(1)) }
            let pass = try #require(await radio.received.last { $0.first == 0x04 })
            #expect(pass.count == 5, "only what changed")
            for frame in more(pass) { await radio.push(frame) }
            var frames: [Data] = []
            while frames.last?.first != 0x04, let frame = await client.next() { frames.append(frame) }
            #expect(frames.count == 8 && frames.contains(Self.row(5)))
        }
    }

    @Test func `an advert makes the next list ask for what changed, and no more`() async throws {
        try await SharingBench.run(answers: Self.radio(5)) { bench in
            let client = try await bench.client()
            _ = try await Self.list(client)
            let radio = bench.radio
            await radio.answer(with: Self.radio(6))
            let advert = Data([0x80]) + Self.row(5).dropFirst().prefix(32)
            await radio.push(advert)
            #expect(await client.next() == advert)
            #expect(try await Self.list(client).count == 8)
            let passes = await bench.radio.received.filter { $0.first == 0x04 }
            #expect(passes.count == 2 && passes[0] == Data([0x04]))
            // A little before the radio's clock at the first pass, which tells of every later change.
            let since = [UInt8](passes[1].dropFirst()).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            #expect((1_001..<1_018).contains(since))
        }
    }

    @Test func `a contact that one client removes is gone for the others, and they are told`() async throws {
        try await SharingBench.run(share: { $0.role = .admin }, answers: Self.radio(3)) { bench in
            let first = try await bench.client()
            let second = try await bench.client()
            _ = try await Self.list(first)
            _ = try await Self.list(second)
            let key = Self.row(1).dropFirst().prefix(32)
            #expect(try await first.ask(Data([0x0F]) + key) == Data([0x00]))
            #expect(await second.next() == Data([0x8F]) + key)
            #expect(try await Self.list(second).count == 4)
        }
    }

    @Test func `APP_START ends only the list of its own client`() async throws {
        try await SharingBench.run(answers: Self.radio(350)) { bench in
            let first = try await bench.client()
            let second = try await bench.client()
            try await first.send(Data([0x04]))
            #expect(try await second.ask(MessageSharingTests.appStart("other"))?.first == 0x05)
            var frames: [Data] = []
            while frames.last?.first != 0x04, let frame = await first.next() { frames.append(frame) }
            #expect(frames.count == 352)
        }
    }

    @Test func `a radio that lists no contacts is asked each time`() async throws {
        try await SharingBench.run { bench in
            let client = try await bench.client()
            #expect(try await Self.list(client) == [Data([0x01, 0x01])])
            #expect(try await Self.list(client) == [Data([0x01, 0x01])])
        }
    }
}
