// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshTransportAPI
import Testing

@testable import MeshJournal

struct MessageTests {
    @Test func `messages come back as they were given, oldest first`() async throws {
        try await Bench.journal { bench, journal in
            let first = bench.message("one")
            bench.pass(.seconds(1))
            let second = bench.message("two", origin: "home/app@192.0.2.7#0")
            let one = try #require(try await journal.append(first))
            let two = try #require(try await journal.append(second))
            #expect(
                one
                    == JournalEntry(
                        sequence: 1, device: "roof", receivedAt: first.receivedAt, frame: first.frame, origin: nil))
            #expect(
                two
                    == JournalEntry(
                        sequence: 2, device: "roof", receivedAt: second.receivedAt, frame: second.frame,
                        origin: "home/app@192.0.2.7#0"))
            #expect(try await journal.entries(of: "roof", after: 0, limit: 10) == [one, two])
            #expect(try await journal.entries(of: "roof", after: 1, limit: 10) == [two])
            #expect(try await journal.entries(of: "roof", after: 2, limit: 10) == [])
            #expect(try await journal.entries(of: "roof", after: 0, limit: 1) == [one])
            #expect(try await journal.entries(of: "roof", after: 0, limit: 0) == [])
            #expect(try await journal.entries(of: "nowhere", after: 0, limit: 10) == [])
        }
    }

    @Test(arguments: [0, 1, 176, 4_096, MessageJournal.maximumFrameLength])
    func `a frame of any length comes back`(_ length: Int) async throws {
        try await Bench.journal { bench, journal in
            var message = bench.message("")
            message.key = Data()
            message.frame = Data((0..<length).map { UInt8(truncatingIfNeeded: $0) })
            _ = try await journal.append(message)
            #expect(try await journal.entries(of: "roof", after: 0, limit: 1).map(\.frame) == [message.frame])
        }
    }

    @Test func `what is too long is refused, and named without what it says`() async throws {
        try await Bench.journal { bench, journal in
            var long = bench.message("secret")
            long.frame = Data(count: MessageJournal.maximumFrameLength + 1)
            var longKey = bench.message("secret")
            longKey.key = Data(count: MessageJournal.maximumKeyLength + 1)
            for message in [long, longKey] {
                let error = await #expect(throws: MeshError.self) { _ = try await journal.append(message) }
                #expect(error?.code == .invalidArgument)
                #expect(error?.context.device == "roof")
                #expect(error?.message.contains("secret") == false)
            }
            #expect(await journal.head(of: "roof") == 0)
        }
    }

    @Test func `numbers rise over all devices, and each device has its own head`() async throws {
        try await Bench.journal { bench, journal in
            #expect(await journal.head(of: "roof") == 0)
            for number in 0..<10 {
                _ = try await journal.append(bench.message("\(number)", number % 3 == 0 ? "hill" : "roof"))
            }
            #expect(await journal.head(of: "hill") == 10)
            #expect(await journal.head(of: "roof") == 9)
            #expect(try await journal.entries(of: "hill", after: 0, limit: 10).map(\.sequence) == [1, 4, 7, 10])
            #expect(try await journal.entries(of: "roof", after: 5, limit: 10).map(\.sequence) == [6, 8, 9])
        }
    }

    @Test func `an odd device name is a name like others`() async throws {
        try await Bench.journal { bench, journal in
            let names = ["", "d'or", "\u{0}", "ö", "🛰", "a\u{0}b"]
            for name in names { _ = try await journal.append(bench.message(name, name)) }
            for name in names { #expect(try await journal.texts(of: name) == [name]) }
        }
    }

    @Test func `the number before the last messages is what a late client begins with`() async throws {
        try await Bench.journal { bench, journal in
            #expect(try await journal.sequence(before: 5, of: "roof") == 0)
            for number in 0..<10 { _ = try await journal.append(bench.message("\(number)", "hill")) }
            for number in 0..<10 { _ = try await journal.append(bench.message("\(number)")) }
            for (count, expected) in [(-1, 20), (0, 20), (1, 19), (9, 11), (10, 0), (Int.max, 0)] {
                #expect(try await journal.sequence(before: count, of: "roof") == Int64(expected))
            }
            for count in 0...10 {
                let after = try await journal.sequence(before: count, of: "roof")
                #expect(try await journal.texts(after: after).count == count)
            }
        }
    }

    // MARK: Duplicates

    @Test func `the same key of the same device is kept once within the window`() async throws {
        try await Bench.journal {
            $0.duplicateWindow = .seconds(60)
        } _: { bench, journal async throws in
            #expect(try await journal.append(bench.message("hello")) != nil)
            #expect(try await journal.append(bench.message("hello")) == nil)
            #expect(try await journal.append(bench.message("hello", "hill")) != nil)
            #expect(try await journal.append(bench.message("hello!")) != nil)
            bench.pass(.seconds(60))
            #expect(try await journal.append(bench.message("hello")) == nil)
            bench.pass(.milliseconds(1))
            #expect(try await journal.append(bench.message("hello")) != nil)
            #expect(try await journal.texts() == ["hello", "hello!", "hello"])
            #expect(try await journal.texts(of: "hill") == ["hello"])
        }
    }

    @Test func `a message may have a window of its own`() async throws {
        try await Bench.journal { bench, journal async throws in
            func message() -> NewMessage {
                var message = bench.message("open")
                message.duplicateWindow = .seconds(60)
                return message
            }
            #expect(try await journal.append(message()) != nil)
            bench.pass(.seconds(60))
            #expect(try await journal.append(message()) == nil)
            bench.pass(.milliseconds(1))
            #expect(try await journal.append(message()) != nil)
        }
    }

    @Test func `a clock that is set back does not let duplicates in`() async throws {
        try await Bench.journal {
            $0.duplicateWindow = .seconds(60)
        } _: { bench, journal async throws in
            #expect(try await journal.append(bench.message("hello")) != nil)
            bench.pass(.seconds(-60))
            #expect(try await journal.append(bench.message("hello")) == nil)
            bench.pass(.milliseconds(-1))
            #expect(try await journal.append(bench.message("hello")) != nil)
        }
    }

    @Test func `times at the ends of what a number holds do no harm`() async throws {
        try await Bench.journal { bench, journal async throws in
            for time in [Int64.min, Int64.max, 0] {
                var message = bench.message("hello")
                message.receivedAt = time
                #expect(try await journal.append(message) != nil)
                #expect(try await journal.append(message) == nil)
            }
        }
    }

    @Test func `duplicates are known after a restart`() async throws {
        try await Bench.run { bench in
            var journal = try await bench.open()
            _ = try await journal.append(bench.message("hello"))
            await journal.close()
            journal = try await bench.open()
            #expect(try await journal.append(bench.message("hello")) == nil)
            await journal.close()
        }
    }

    // MARK: Removing

    @Test func `only so many messages of each device are kept`() async throws {
        try await Bench.journal {
            $0.maximumEntries = 5
        } _: { bench, journal in
            for number in 0..<20 {
                _ = try await journal.append(bench.message("\(number)"))
                if number < 3 { _ = try await journal.append(bench.message("\(number)", "hill")) }
            }
            #expect(try await journal.texts() == ["15", "16", "17", "18", "19"])
            #expect(try await journal.texts(of: "hill") == ["0", "1", "2"])
            #expect(try await journal.statistics().entries == 8)
        }
    }

    @Test func `a smaller number is reached a few at a time`() async throws {
        try await Bench.run { bench in
            var journal = try await bench.open()
            for number in 0..<100 { _ = try await journal.append(bench.message("\(number)")) }
            await journal.close()
            journal = try await bench.open { $0.maximumEntries = 10 }
            var counts: [Int] = []
            for number in 100..<113 {
                _ = try await journal.append(bench.message("\(number)"))
                counts.append(Int(try await journal.number("SELECT count(*) FROM message")))
            }
            #expect(counts == [93, 86, 79, 72, 65, 58, 51, 44, 37, 30, 23, 16, 10])
            await journal.close()
        }
    }

    @Test func `messages that are too old go with the next ones, of whatever device`() async throws {
        try await Bench.run { bench in
            var journal = try await bench.open { $0.maximumAge = .seconds(3_600) }
            for number in 0..<4 { _ = try await journal.append(bench.message("\(number)", "hill")) }
            bench.pass(.seconds(1_800))
            _ = try await journal.append(bench.message("later"))
            await journal.close()
            bench.pass(.seconds(1_801))
            journal = try await bench.open { $0.maximumAge = .seconds(3_600) }
            _ = try await journal.append(bench.message("now"))
            #expect(try await journal.texts(of: "hill") == [])
            #expect(try await journal.texts() == ["later", "now"])
            #expect(await journal.head(of: "hill") == 4)
            let statistics = try await journal.statistics()
            #expect(statistics.devices.map(\.entries) == [0, 2])
            await journal.close()
        }
    }

    @Test func `a clock that the network sets does not make new messages old`() async throws {
        try await Bench.journal { bench, journal in
            let right = Duration.milliseconds(bench.now)
            bench.set(.zero)
            _ = try await journal.append(bench.message("before the clock was set"))
            bench.set(right)
            _ = try await journal.append(bench.message("after"))
            #expect(try await journal.texts() == ["before the clock was set", "after"])
        }
    }

    @Test func `a clock that jumps ahead costs a few messages, not all`() async throws {
        try await Bench.run { bench in
            var journal = try await bench.open()
            for number in 0..<100 { _ = try await journal.append(bench.message("\(number)")) }
            await journal.close()
            journal = try await bench.open()
            bench.pass(.seconds(40 * 365 * 86_400))
            _ = try await journal.append(bench.message("from the future"))
            bench.pass(.seconds(-40 * 365 * 86_400))
            _ = try await journal.append(bench.message("now"))
            #expect(try await journal.texts().count == 94)
            await journal.close()
        }
    }

    @Test func `a message from the future does not keep what came after it`() async throws {
        try await Bench.run { bench in
            var journal = try await bench.open()
            bench.pass(.seconds(40 * 365 * 86_400))
            for number in 0..<9 { _ = try await journal.append(bench.message("future \(number)")) }
            bench.pass(.seconds(-40 * 365 * 86_400))
            for number in 0..<3 { _ = try await journal.append(bench.message("\(number)")) }
            await journal.close()
            bench.pass(.seconds(31 * 86_400))
            journal = try await bench.open()
            _ = try await journal.append(bench.message("now"))
            _ = try await journal.append(bench.message("and now"))
            #expect(try await journal.texts().suffix(3) == ["future 8", "now", "and now"])
            await journal.close()
        }
    }
}
