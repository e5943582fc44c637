// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshTransportAPI
import Testing

@testable import MeshJournal

struct OpeningTests {
    @Test func `messages and numbers go on after a restart`() async throws {
        try await Bench.run { bench in
            var journal = try await bench.open()
            for number in 0..<3 { _ = try await journal.append(bench.message("\(number)")) }
            await journal.close()
            journal = try await bench.open()
            #expect(await journal.head(of: "roof") == 3)
            #expect(try await journal.texts() == ["0", "1", "2"])
            #expect(try await journal.append(bench.message("3", "hill"))?.sequence == 4)
            await journal.close()
            #expect(bench.levels.isEmpty)
        }
    }

    @Test func `a number is never used again, not even when its message has gone`() async throws {
        try await Bench.run { bench in
            var journal = try await bench.open { $0.maximumAge = .seconds(60) }
            for number in 0..<3 { _ = try await journal.append(bench.message("\(number)")) }
            await journal.close()
            journal = try await bench.open()
            try await journal.execute("DELETE FROM message")
            await journal.close()
            journal = try await bench.open()
            #expect(try await journal.statistics().entries == 0)
            #expect(await journal.head(of: "roof") == 3)
            #expect(try await journal.append(bench.message("0"))?.sequence == 4)
            await journal.close()
        }
    }

    @Test func `the files are for their owner alone, and only the database is left`() async throws {
        try await Bench.run { bench in
            let journal = try await bench.open()
            _ = try await journal.append(bench.message("hello"))
            #expect(
                try bench.files() == ["journal.db", "journal.db-shm", "journal.db-wal", "journal.db.lock"])
            for name in try bench.files() {
                var facts = stat()
                #expect(stat("\(bench.directory)/\(name)", &facts) == 0)
                #expect(facts.st_mode & 0o777 == 0o600, "\(name)")
            }
            await journal.close()
            #expect(try bench.files() == ["journal.db", "journal.db.lock"])
        }
    }

    @Test func `it is kept as the handbook says`() async throws {
        try await Bench.journal { bench, journal in
            _ = try await journal.append(bench.message("hello", origin: ClientIdentity.app.description))
            try await journal.setCursor(1, of: .app, device: "roof")
            #expect(try await journal.number("PRAGMA user_version") == JournalSchema.version)
            #expect(
                try await journal.number("SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'") == 1)
            let found = """
                SELECT count(*) FROM messages WHERE sequence = 1 AND device = 'roof' AND origin = 'home/app@192.0.2.7#0'
                AND received = '2026-03-01T12:00:00.000Z' AND frame = '68656c6c6f'
                """
            #expect(try await journal.number(found) == 1)
            let cursor = """
                SELECT count(*) FROM cursors WHERE identity = 'home/app@192.0.2.7#0' AND device = 'roof'
                AND sequence = 1 AND head = 1 AND used = '2026-03-01T12:00:00.000Z'
                """
            #expect(try await journal.number(cursor) == 1)
        }
    }

    @Test func `messages wait for the disk, cursors do not`() async throws {
        for durability in JournalSettings.Durability.allCases {
            try await Bench.journal {
                $0.durability = durability
            } _: { bench, journal in
                let (normal, full) = (Int64(1), Int64(2))
                _ = try await journal.append(bench.message("one"))
                #expect(try await journal.number("PRAGMA synchronous") == (durability == .full ? full : normal))
                try await journal.setCursor(1, of: .app, device: "roof")
                #expect(try await journal.number("PRAGMA synchronous") == normal)
                _ = try await journal.append(bench.message("two"))
                #expect(try await journal.number("PRAGMA synchronous") == (durability == .full ? full : normal))
            }
        }
    }

    @Test func `after its end a journal fails, and ends once`() async throws {
        try await Bench.run { bench in
            let journal = try await bench.open()
            await journal.close()
            await journal.close()
            let error = await #expect(throws: MeshError.self) { _ = try await journal.append(bench.message("late")) }
            #expect(error?.code == .cancelled)
            await #expect(throws: MeshError(.cancelled, "")) { _ = try await journal.statistics() }
        }
    }

    // MARK: Damage

    private static let garbage: [String: [UInt8]] = [
        "two bytes": [0, 0], "a text": Array("not a database".utf8),
        "pages of junk": Array(repeating: 0x5A, count: 9_000),
        "a beginning": Array("SQLite format 3\u{0}".utf8),
        "a beginning and junk": Array("SQLite format 3\u{0}".utf8) + Array(repeating: 0xFF, count: 8_176),
    ]

    @Test(arguments: garbage.keys.sorted())
    func `a file that is no database is set aside, loudly, and a new one begins`(_ what: String) async throws {
        try await Bench.run { bench in
            let bytes = try #require(Self.garbage[what])
            try bench.write(bytes)
            let journal = try await bench.open()
            #expect(bench.levels == [.error])
            #expect(try Data(contentsOf: URL(filePath: bench.path + ".corrupt")) == Data(bytes))
            #expect(try await journal.append(bench.message("hello"))?.sequence == 1)
            #expect(try await journal.texts() == ["hello"])
            await journal.close()
        }
    }

    @Test func `an empty file is an empty journal`() async throws {
        try await Bench.run { bench in
            try bench.write([])
            let journal = try await bench.open()
            #expect(try await journal.append(bench.message("hello")) != nil)
            await journal.close()
            #expect(bench.levels.isEmpty)
        }
    }

    @Test func `a file that was cut off is set aside`() async throws {
        try await Bench.run { bench in
            try await fill(bench, 500)
            #expect(truncate(bench.path, 20_480) == 0)
            let journal = try await bench.open()
            #expect(bench.levels == [.error])
            #expect(try await journal.texts() == [])
            await journal.close()
            let files = try bench.files()
            #expect(files == ["journal.db", "journal.db.corrupt", "journal.db.lock"])
        }
    }

    @Test func `one file is set aside at a time, and a log of an older one does not stay with it`() async throws {
        try await Bench.run { bench in
            try Data("an older one".utf8).write(to: URL(filePath: bench.path + ".corrupt"))
            try Data("its log".utf8).write(to: URL(filePath: bench.path + ".corrupt-wal"))
            try bench.write(Array("not a database".utf8))
            await (try bench.open()).close()
            #expect(try Data(contentsOf: URL(filePath: bench.path + ".corrupt")) == Data("not a database".utf8))
            let files = try bench.files()
            #expect(files == ["journal.db", "journal.db.corrupt", "journal.db.lock"])
        }
    }

    @Test func `damage that is found later loses no message that comes, and no number`() async throws {
        try await Bench.run { bench in
            try await fill(bench, 2_000)
            let descriptor = Glibc.open(bench.path, O_RDWR | O_CLOEXEC)
            // Not before the end: closing it would take the journal's locks away.
            defer { Glibc.close(descriptor) }
            let journal = try await bench.open()
            let size = try await journal.statistics().bytes
            let junk = [UInt8](repeating: 0xA5, count: 4_096)
            for page in 40..<off_t(size / 4_096) { #expect(pwrite(descriptor, junk, 4_096, page * 4_096) == 4_096) }
            var texts: [String] = []
            for number in 0..<50 {
                let entry = try #require(try await journal.append(bench.message("new \(number)")))
                #expect(entry.sequence == Int64(2_001 + number))
                texts.append("new \(number)")
            }
            #expect(bench.levels == [.error])
            #expect(try await journal.texts().suffix(30) == texts.suffix(30))
            #expect(await journal.head(of: "roof") == 2_050)
            // The new one takes cursors at numbers of the old one.
            try await journal.setCursor(1_990, of: .app, device: "roof")
            #expect(try await journal.cursor(of: .app, device: "roof") == 1_990)
            await journal.close()
            let again = try await bench.open()
            #expect(await again.head(of: "roof") == 2_050)
            await again.close()
        }
    }

    @Test func `a reader that finds damage gets what is left`() async throws {
        try await Bench.run { bench in
            try await fill(bench, 2_000)
            let descriptor = Glibc.open(bench.path, O_RDWR | O_CLOEXEC)
            defer { Glibc.close(descriptor) }
            let journal = try await bench.open()
            let size = try await journal.statistics().bytes
            let junk = [UInt8](repeating: 0xA5, count: 4_096)
            for page in 1..<off_t(size / 4_096) { #expect(pwrite(descriptor, junk, 4_096, page * 4_096) == 4_096) }
            #expect(try await journal.entries(of: "roof", after: 0, limit: 5_000) == [])
            #expect(bench.levels == [.error])
            #expect(try await journal.append(bench.message("hello"))?.sequence == 2_001)
            await journal.close()
        }
    }

    private func fill(_ bench: Bench, _ count: Int) async throws {
        let journal = try await bench.open { $0.durability = .normal }
        for number in 0..<count {
            var message = bench.message("\(number)")
            message.frame = Data(repeating: 7, count: 160)
            _ = try await journal.append(message)
        }
        await journal.close()
    }

    // MARK: Refusals

    @Test func `what a newer version wrote is refused and not touched`() async throws {
        try await Bench.run { bench in
            let journal = try await bench.open()
            try await journal.execute("PRAGMA user_version = 7")
            await journal.close()
            let before = try Data(contentsOf: URL(filePath: bench.path))
            let error = await #expect(throws: MeshError.self) { _ = try await bench.open() }
            #expect(error?.code == .notSupported)
            #expect(error?.disposition == .permanent)
            #expect(error?.message.contains("schema 7") == true)
            #expect(try Data(contentsOf: URL(filePath: bench.path)) == before)
        }
    }

    @Test(arguments: ["CREATE TABLE t(a)", "PRAGMA user_version = 1", "PRAGMA application_id = 252006674"])
    func `another program's database is refused and not touched`(_ sql: String) async throws {
        try await Bench.run { bench in
            try bench.write([])
            try SQLiteConnection(path: bench.path).execute(sql, "test")
            let before = try Data(contentsOf: URL(filePath: bench.path))
            await #expect(throws: MeshError(.configurationInvalid, "")) { _ = try await bench.open() }
            #expect(try Data(contentsOf: URL(filePath: bench.path)) == before)
        }
    }

    @Test func `what is not a file is refused`() async throws {
        try await Bench.run { bench in
            for make in [
                { mkdir(bench.path, 0o700) }, { mkfifo(bench.path, 0o600) }, { symlink("/nonexistent", bench.path) },
            ] {
                #expect(make() == 0)
                let error = await #expect(throws: MeshError.self) { _ = try await bench.open() }
                #expect(error?.code == .storageFailed)
                #expect(error?.message.contains("is not a file") == true)
                remove(bench.path)
            }
        }
    }

    @Test func `a folder that is missing is named`() async throws {
        try await Bench.run { bench in
            let path = bench.directory + "/none/journal.db"
            let error = await #expect(throws: MeshError.self) {
                _ = try await MessageJournal.open(path: path, settings: JournalSettings(), loop: bench.loop, log: .none)
            }
            #expect(error?.code == .storageFailed)
            #expect(error?.message.contains(path) == true)
            #expect(error?.message.contains("No such file or directory") == true)
        }
    }

    @Test func `a refusal closes no descriptor of anybody else`() async throws {
        try await Bench.journal { bench, _ in
            let refusals = Task {
                for _ in 0..<300 {
                    await #expect(throws: MeshError(.serviceUnavailable, "")) { _ = try await bench.open() }
                }
            }
            // A number that is closed twice was somebody else's the second time.
            for _ in 0..<20_000 {
                let descriptor = Glibc.open("/dev/null", O_RDONLY | O_CLOEXEC)
                try #require(Glibc.close(descriptor) == 0)
            }
            await refusals.value
        }
    }

    @Test func `a journal that is open is not opened again`() async throws {
        try await Bench.journal { bench, journal async throws in
            await #expect(throws: MeshError(.serviceUnavailable, "")) { _ = try await bench.open() }
            // And the attempt has not done it any harm.
            #expect(try await journal.append(bench.message("hello")) != nil)
        }
    }
}
