// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Synchronization
import Testing

@testable import MeshJournal

struct QueueTests {
    /// Calls are made in the order of their numbers, all of them before the first is done.
    private func atOnce<Value: Sendable>(
        _ count: Int, _ bench: Bench, _ journal: MessageJournal,
        _ call: @escaping @Sendable (Int) async throws(MeshError) -> Value
    ) async throws -> [Result<Value, MeshError>] {
        let gate = Gate()
        let blocker = Task { try await journal.block(gate) }
        await gate.waitUntilEntered()
        let calls = await LoopActor(bench.loop).run { actor in
            let executor = bench.loop.taskExecutor
            return (0..<count).map { number in
                Task(executorPreference: executor) { () async -> Result<Value, MeshError> in
                    do throws(MeshError) {
                        return .success(try await call(number))
                    } catch {
                        return .failure(error)
                    }
                }
            }
        }
        // The loop runs jobs in the order in which they came. A call takes two: its task's first, and entering the journal.
        for _ in 0..<3 { await LoopActor(bench.loop).run { _ in } }
        gate.open()
        try await blocker.value
        var results: [Result<Value, MeshError>] = []
        for call in calls { results.append(await call.value) }
        return results
    }

    @Test func `a thousand messages at once each get a number of their own, in the order of the calls`() async throws {
        try await Bench.journal { bench, journal in
            let entries = try await atOnce(1_000, bench, journal) { number async throws(MeshError) in
                try await journal.append(bench.message("\(number)"))
            }
            #expect(try entries.map { try $0.get()?.sequence } == (1...1_000).map { Int64($0) })
            #expect(try await journal.texts() == (0..<1_000).map { "\($0)" })
        }
    }

    @Test func `calls that wait share transactions`() async throws {
        try await Bench.journal { bench, journal in
            _ = try await journal.append(bench.message("first"))
            let before = try await journal.transactions()
            let results = try await atOnce(1_000, bench, journal) { number async throws(MeshError) -> Bool in
                if number % 2 == 0 { return try await journal.append(bench.message("\(number)")) != nil }
                let identity = ClientIdentity(share: "home", name: "\(number)", address: "a")
                try await journal.setCursor(1, of: identity, device: "roof")
                return true
            }
            #expect(try results.allSatisfy { try $0.get() })
            // 256 together at most.
            #expect(try await journal.transactions() - before == 4)
        }
    }

    @Test func `what was asked between two changes sees the first and not the second`() async throws {
        try await Bench.journal { bench, journal in
            let counts = try await atOnce(60, bench, journal) { number async throws(MeshError) -> Int in
                if number % 3 != 2 { return try await journal.append(bench.message("\(number)")) == nil ? 0 : -1 }
                return try await journal.entries(of: "roof", after: 0, limit: 1_000).count
            }
            #expect(try counts.map { try $0.get() } == (0..<60).map { $0 % 3 == 2 ? ($0 + 1) / 3 * 2 : -1 })
        }
    }

    @Test func `duplicates among calls that wait are found`() async throws {
        try await Bench.journal { bench, journal in
            let results = try await atOnce(10, bench, journal) { number async throws(MeshError) in
                try await journal.append(bench.message("\(number / 2)")) != nil
            }
            #expect(try results.map { try $0.get() } == (0..<10).map { $0 % 2 == 0 })
        }
    }

    @Test func `one that fails does not take the others with it, and costs no number`() async throws {
        try await Bench.journal { bench, journal in
            _ = try await journal.append(bench.message("first"))
            // Room for small ones.
            let pages = try await journal.number("PRAGMA page_count")
            try await journal.execute("PRAGMA max_page_count = \(pages + 4)")
            let results = try await atOnce(9, bench, journal) { number async throws(MeshError) -> Int64? in
                var message = bench.message("\(number)")
                if number == 4 { message.frame = Data(count: 60_000) }
                return try await journal.append(message)?.sequence
            }
            for (number, result) in results.enumerated() where number != 4 {
                #expect(try result.get() == Int64(number < 4 ? number + 2 : number + 1))
            }
            guard case .failure(let error) = results[4] else {
                Issue.record("60,000 bytes found room in 4 pages")
                return
            }
            #expect(error.code == .storageFailed)
            #expect(error.message.contains("full"))
            #expect(error.context.device == "roof")
            #expect(await journal.head(of: "roof") == 9)
            // With room again all is well.
            try await journal.execute("PRAGMA max_page_count = 1000000")
            var large = bench.message("large")
            large.frame = Data(count: 60_000)
            #expect(try await journal.append(large)?.sequence == 10)
        }
    }

    @Test func `a program that locks the database is waited for once, not by each`() async throws {
        try await Bench.journal {
            $0.busyTimeout = .milliseconds(20)
        } _: { bench, journal in
            let other = try SQLiteConnection(path: bench.path)
            try other.execute("BEGIN IMMEDIATE", "test")
            let before = try await journal.transactions()
            let results = try await atOnce(200, bench, journal) { number async throws(MeshError) in
                try await journal.append(bench.message("\(number)"))
            }
            #expect(try await journal.transactions() - before == 1)
            for result in results {
                #expect(throws: MeshError(.serviceUnavailable, "")) { _ = try result.get() }
            }
            try other.execute("ROLLBACK", "test")
            #expect(try await journal.append(bench.message("hello"))?.sequence == 1)
        }
    }

    @Test func `the loop turns while a thousand messages wait for the disk`() async throws {
        try await Bench.journal { bench, journal in
            let gate = Gate()
            let blocker = Task { try await journal.block(gate) }
            await gate.waitUntilEntered()
            let appends = (0..<1_000).map { number in
                Task {
                    _ = try await journal.append(bench.message("\(number)"))
                    bench.count.withLock { $0 += 1 }
                }
            }
            try await LoopActor(bench.loop).run { _ in
                for _ in 0..<10 { try await bench.loop.sleep(for: .milliseconds(1)) }
            }
            #expect(bench.count.withLock { $0 } == 0)
            // It answers what it knows, too.
            #expect(await journal.head(of: "roof") == 0)
            gate.open()
            try await blocker.value
            for append in appends { try await append.value }
            #expect(bench.count.withLock { $0 } == 1_000)
        }
    }

    @Test func `no statement runs on the loop`() async throws {
        try await Bench.journal { bench, journal in
            for kind in [JournalOperation.Kind.read, .write(isDurable: true), .write(isDurable: false)] {
                let isOnLoop = try await journal.ask(kind) { _ in bench.loop.isOnLoop }
                #expect(!isOnLoop)
            }
        }
    }

    @Test func `too many calls are refused at once`() async throws {
        try await Bench.journal { bench, journal in
            let results = try await atOnce(MessageJournal.maximumWaiting + 10, bench, journal) {
                _ async throws(MeshError) in try await journal.sequence(before: 0, of: "roof")
            }
            let refused = results.filter {
                if case .failure(let error) = $0 { error.code == .queueFull } else { false }
            }
            #expect(refused.count == 10)
        }
    }

    @Test func `what was asked before the end is done`() async throws {
        try await Bench.run { bench in
            let journal = try await bench.open()
            let results = try await atOnce(100, bench, journal) { number async throws(MeshError) -> Bool in
                if number == 50 {
                    await journal.close()
                    return true
                }
                return try await journal.append(bench.message("\(number)")) != nil
            }
            let isDone = results.map { (try? $0.get()) ?? false }
            #expect(isDone == (0..<100).map { $0 <= 50 })
            let again = try await bench.open()
            #expect(try await again.texts() == (0..<50).map { "\($0)" })
            await again.close()
        }
    }

    @Test func `a cancelled task gets its result all the same`() async throws {
        try await Bench.journal { bench, journal in
            let gate = Gate()
            let blocker = Task { try await journal.block(gate) }
            await gate.waitUntilEntered()
            let append = Task { try await journal.append(bench.message("hello"))?.sequence }
            append.cancel()
            gate.open()
            try await blocker.value
            #expect(try await append.value == 1)
        }
    }

    @Test func `chance finds no order in which something is lost`() async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = SplitMix(state: seed)
        try await Bench.run { bench in
            var journal = try await bench.open { $0.maximumEntries = 50 }
            var expected: [Int64: String] = [:]
            var cursor: Int64 = 0
            var next = 0
            for _ in 0..<400 {
                switch Int.random(in: 0..<12, using: &random) {
                case 0..<7:
                    let entry = try await journal.append(bench.message("\(next)"))
                    expected[try #require(entry).sequence] = "\(next)"
                    next += 1
                case 7:
                    #expect(try await journal.append(bench.message("\(next)", "hill")) != nil)
                    next += 1
                case 8 where next > 0:
                    let old = expected.values.randomElement(using: &random)
                    if let old, Int(old)! > next - 20 { #expect(try await journal.append(bench.message(old)) == nil) }
                case 9, 10:
                    let wanted = await Int64.random(in: 0...journal.head(of: "roof"), using: &random)
                    try await journal.setCursor(wanted, of: .app, device: "roof")
                    cursor = max(cursor, wanted)
                    #expect(try await journal.cursor(of: .app, device: "roof") == cursor, "seed \(seed)")
                default:
                    await journal.close()
                    journal = try await bench.open { $0.maximumEntries = 50 }
                }
                let kept = expected.sorted { $0.key < $1.key }.suffix(50)
                let found = try await journal.entries(of: "roof", after: 0, limit: 1_000)
                #expect(found.map(\.sequence) == kept.map(\.key), "seed \(seed)")
                #expect(try await journal.texts() == kept.map(\.value), "seed \(seed)")
            }
            await journal.close()
        }
    }
}
