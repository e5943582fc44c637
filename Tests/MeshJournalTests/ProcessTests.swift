// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshJournal

/// Journals between processes.
struct ProcessTests {
    @Test func `what was acknowledged survives a kill at any moment`() async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = SplitMix(state: seed)
        try await Bench.run { bench in
            var acknowledged: [Int64] = []
            for _ in 0..<8 {
                let child = try JournalChild("append", bench.path, "0")
                // Long enough for the log to be moved into the database now and then.
                for _ in 0..<Int.random(in: 1...400, using: &random) {
                    acknowledged.append(try #require(child.line().flatMap { Int64($0) }))
                }
                child.kill()
                // What it had printed in the meantime.
                while let line = child.line() { acknowledged.append(try #require(Int64(line))) }
                let journal = try await bench.open()
                let kept = try await journal.entries(of: "roof", after: 0, limit: 100_000).map(\.sequence)
                #expect(Set(kept).isSuperset(of: acknowledged), "seed \(seed)")
                // One at most was kept and not yet acknowledged when the end came.
                #expect(kept.count <= acknowledged.count + 1, "seed \(seed)")
                acknowledged = kept
                #expect(
                    try await journal.number("SELECT count(*) FROM pragma_quick_check WHERE quick_check = 'ok'") == 1)
                await journal.close()
            }
            #expect(Set(acknowledged).count == acknowledged.count)
            #expect(bench.levels.isEmpty)
        }
    }

    @Test func `a journal that another process has open is refused, until that ends`() async throws {
        try await Bench.run { bench in
            let child = try JournalChild("hold", bench.path)
            #expect(child.line() == "open")
            let error = await #expect(throws: MeshError.self) { _ = try await bench.open() }
            #expect(error?.code == .serviceUnavailable)
            #expect(error?.message.contains(bench.path) == true)
            #expect(child.finish() == 0)
            let journal = try await bench.open()
            #expect(try await journal.append(bench.message("hello")) != nil)
            await journal.close()
        }
    }

    @Test func `a program that locks the database is waited for, then named`() async throws {
        try await Bench.journal {
            $0.busyTimeout = .milliseconds(20)
        } _: { bench, journal in
            let other = try SQLiteConnection(path: bench.path)
            try other.execute("BEGIN IMMEDIATE", "test")
            let error = await #expect(throws: MeshError.self) { _ = try await journal.append(bench.message("hello")) }
            #expect(error?.code == .serviceUnavailable)
            #expect(error?.disposition == .transient)
            // Reading goes on.
            #expect(try await journal.texts() == [])
            try other.execute("ROLLBACK", "test")
            #expect(try await journal.append(bench.message("hello"))?.sequence == 1)
        }
    }

    @Test func `somebody who looks into it is not in the way`() async throws {
        try await Bench.journal { bench, journal in
            _ = try await journal.append(bench.message("one"))
            let reader = try SQLiteConnection(path: bench.path)
            try reader.execute("BEGIN", "test")
            #expect(try reader.number("SELECT count(*) FROM messages", "test") == 1)
            #expect(try await journal.append(bench.message("two")) != nil)
            try reader.execute("COMMIT", "test")
            #expect(try reader.number("SELECT count(*) FROM messages", "test") == 2)
        }
    }

    @Test func `a full disk fails a message and keeps those before`() async throws {
        try await Bench.run { bench in
            let child = try JournalChild("append", bench.path, "0", "--file-limit", "400000")
            var acknowledged: [Int64] = []
            var failure = ""
            while let line = child.line() {
                if let number = Int64(line) { acknowledged.append(number) } else { failure = line }
            }
            #expect(child.finish() == 1)
            #expect(failure.hasPrefix("error storage.failed "), "\(failure)")
            #expect(failure.contains("File too large; free some space"), "\(failure)")
            let journal = try await bench.open()
            let kept = try await journal.entries(of: "roof", after: 0, limit: 100_000).map(\.sequence)
            #expect(kept == acknowledged)
            #expect(kept.count > 10)
            #expect(try await journal.append(bench.message("more room"))?.sequence == Int64(kept.count + 1))
            await journal.close()
            #expect(bench.levels.isEmpty)
        }
    }

    @Test func `a folder that may not be written is named with what to do`() async throws {
        try await Bench.run { bench in
            chmod(bench.directory, 0o555)
            defer { chmod(bench.directory, 0o700) }
            // Root may write everywhere, so the child becomes nobody.
            let child = try JournalChild("append", bench.path, "1", "--nobody")
            let line = child.line() ?? ""
            #expect(line.hasPrefix("error permission-denied "), "\(line)")
            #expect(line.contains("check owner and mode"), "\(line)")
            #expect(child.finish() == 1)
        }
    }

    @Test func `a file that may not be written is named with what to do`() async throws {
        try await Bench.run { bench in
            await (try bench.open()).close()
            remove(bench.path + ".lock")
            chmod(bench.path, 0o444)
            chmod(bench.directory, 0o777)
            let child = try JournalChild("append", bench.path, "1", "--nobody")
            let line = child.line() ?? ""
            #expect(line.hasPrefix("error permission-denied "), "\(line)")
            #expect(child.finish() == 1)
        }
    }
}
