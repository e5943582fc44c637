// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshJournal

struct CursorTests {
    @Test func `each identity has a cursor for each device`() async throws {
        try await Bench.journal { bench, journal in
            for number in 0..<5 { _ = try await journal.append(bench.message("\(number)")) }
            #expect(try await journal.cursor(of: .app, device: "roof") == nil)
            try await journal.setCursor(3, of: .app, device: "roof")
            try await journal.setCursor(5, of: .bot, device: "roof")
            try await journal.setCursor(0, of: .app, device: "hill")
            #expect(try await journal.cursor(of: .app, device: "roof") == 3)
            #expect(try await journal.cursor(of: .bot, device: "roof") == 5)
            #expect(try await journal.cursor(of: .app, device: "hill") == 0)
            #expect(try await journal.cursor(of: .bot, device: "hill") == nil)
        }
    }

    @Test func `a cursor goes forward, and back only where that is meant`() async throws {
        try await Bench.journal { bench, journal in
            for number in 0..<5 { _ = try await journal.append(bench.message("\(number)")) }
            try await journal.setCursor(4, of: .app, device: "roof")
            try await journal.setCursor(2, of: .app, device: "roof")
            #expect(try await journal.cursor(of: .app, device: "roof") == 4)
            try await journal.setCursor(3, of: .app, device: "roof", rewinding: true)
            #expect(try await journal.cursor(of: .app, device: "roof") == 3)
            try await journal.setCursor(5, of: .app, device: "roof")
            #expect(try await journal.cursor(of: .app, device: "roof") == 5)
        }
    }

    @Test func `an identity that is forgotten is as if it had never been there`() async throws {
        try await Bench.journal { bench, journal in
            for number in 0..<3 { _ = try await journal.append(bench.message("\(number)")) }
            for identity in [ClientIdentity.app, .bot] {
                try await journal.setCursor(3, of: identity, device: "roof")
            }
            try await journal.forgetCursor(of: .app, device: "roof")
            try await journal.forgetCursor(of: .app, device: "nowhere")
            #expect(try await journal.cursor(of: .app, device: "roof") == nil)
            #expect(try await journal.cursor(of: .bot, device: "roof") == 3)
            try await journal.setCursor(1, of: .app, device: "roof")
            #expect(try await journal.cursor(of: .app, device: "roof") == 1)
        }
    }

    @Test func `a cursor at a number that no message has had is refused`() async throws {
        try await Bench.journal { bench, journal in
            _ = try await journal.append(bench.message("hello", "hill"))
            try await journal.setCursor(1, of: .app, device: "roof")
            for number: Int64 in [-1, 2, .max] {
                await #expect(throws: MeshError(.invalidArgument, "")) {
                    try await journal.setCursor(number, of: .app, device: "roof", rewinding: true)
                }
            }
            #expect(try await journal.cursor(of: .app, device: "roof") == 1)
        }
    }

    @Test func `cursors are there after a restart, and after their messages have gone`() async throws {
        try await Bench.run { bench in
            var journal = try await bench.open { $0.maximumEntries = 3 }
            for number in 0..<5 { _ = try await journal.append(bench.message("\(number)")) }
            try await journal.setCursor(4, of: .app, device: "roof")
            await journal.close()
            journal = try await bench.open { $0.maximumEntries = 3 }
            #expect(try await journal.cursor(of: .app, device: "roof") == 4)
            #expect(try await journal.texts(after: 4) == ["4"])
            for number in 5..<20 { _ = try await journal.append(bench.message("\(number)")) }
            #expect(try await journal.cursor(of: .app, device: "roof") == 4)
            #expect(try await journal.texts(after: 4) == ["17", "18", "19"])
            await journal.close()
        }
    }

    @Test func `an identity that is not used for long is forgotten when another comes`() async throws {
        try await Bench.journal {
            $0.cursorAge = .seconds(10 * 86_400)
        } _: { bench, journal in
            let reader = ClientIdentity(share: "home", name: "reader", address: "192.0.2.9")
            _ = try await journal.append(bench.message("hello"))
            for identity in [ClientIdentity.app, .bot, reader] {
                try await journal.setCursor(1, of: identity, device: "roof")
            }
            bench.pass(.seconds(6 * 86_400))
            // Moving it is using it, and so is reading it.
            try await journal.setCursor(1, of: .bot, device: "roof")
            #expect(try await journal.cursor(of: reader, device: "roof") == 1)
            bench.pass(.seconds(6 * 86_400))
            try await journal.setCursor(0, of: ClientIdentity(share: "a", name: "b", address: "c"), device: "roof")
            #expect(try await journal.cursor(of: .app, device: "roof") == nil)
            #expect(try await journal.cursor(of: .bot, device: "roof") == 1)
            #expect(try await journal.cursor(of: reader, device: "roof") == 1)
        }
    }

    @Test func `clients that call themselves something new each time do not fill the disk`() async throws {
        try await Bench.run { bench in
            for _ in 0..<2 {
                let journal = try await bench.open { $0.maximumCursors = 10 }
                for number in 0..<50 {
                    bench.pass(.seconds(1))
                    let identity = ClientIdentity(share: "home", name: "\(number)", address: "a")
                    try await journal.setCursor(0, of: identity, device: "roof")
                }
                let names = try await journal.statistics().cursors.map(\.identity.name)
                #expect(names == (40..<50).reversed().map { "\($0)" })
                await journal.close()
            }
        }
    }

    /// Stores a cursor of the identity a second after the one before.
    private func visit(_ share: String, _ name: String, _ address: String, _ bench: Bench, _ journal: MessageJournal)
        async throws
    {
        bench.pass(.seconds(1))
        let identity = ClientIdentity(share: share, name: name, address: address)
        try await journal.setCursor(0, of: identity, device: "roof")
    }

    @Test func `whoever calls itself something new each time pays for it itself`() async throws {
        try await Bench.journal {
            $0.maximumCursors = 10
        } _: { bench, journal in
            try await visit("home", "phone", "a", bench, journal)
            try await visit("home", "bot", "a", bench, journal)
            try await visit("other", "phone", "b@%/#", bench, journal)
            for number in 0..<50 { try await visit("home", "\(number)", "b@%/#", bench, journal) }
            let names = try await journal.statistics().cursors.map(\.identity.name)
            #expect(names == (43..<50).reversed().map { "\($0)" } + ["phone", "bot", "phone"])
        }
    }

    @Test func `who comes from a new address each time takes nobody's place on another share`() async throws {
        try await Bench.journal {
            $0.maximumCursors = 10
        } _: { bench, journal in
            for name in ["phone", "bot", "screen"] { try await visit("home", name, "a", bench, journal) }
            for number in 0..<50 { try await visit("open", "app", "\(number)", bench, journal) }
            let shares = try await journal.statistics().cursors.map(\.identity.share)
            #expect(shares == Array(repeating: "open", count: 7) + Array(repeating: "home", count: 3))
        }
    }

    @Test func `statistics say what is there`() async throws {
        try await Bench.journal { bench, journal in
            #expect(try await journal.statistics().entries == 0)
            #expect(try await journal.statistics().oldest == nil)
            let begin = bench.now
            _ = try await journal.append(bench.message("one"))
            bench.pass(.seconds(1))
            _ = try await journal.append(bench.message("two", "hill"))
            _ = try await journal.append(bench.message("three"))
            try await journal.setCursor(2, of: .app, device: "hill")
            let statistics = try await journal.statistics()
            #expect(
                statistics.devices == [
                    .init(name: "hill", entries: 1, head: 2, oldest: begin + 1_000),
                    .init(name: "roof", entries: 2, head: 3, oldest: begin),
                ])
            #expect(
                statistics.cursors == [.init(identity: .app, device: "hill", sequence: 2, usedAt: begin + 1_000)])
            #expect(statistics.entries == 3)
            #expect(statistics.oldest == begin)
            #expect(statistics.bytes > 4_096)
        }
    }
}
