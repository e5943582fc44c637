// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Synchronization
import Testing

@testable import MeshJournal

/// A folder of its own, a loop, a clock that stands still until it is moved, and a log that is kept.
final class Bench: Sendable {
    let directory: String
    let loop: EventLoop
    let clock = Mutex(Duration.seconds(1_772_366_400))
    /// For what a test counts.
    let count = Mutex(0)
    let lines = Mutex<[(level: LogLevel, text: String)]>([])

    /// What the journal's clock says, in milliseconds since 1970.
    var now: Int64 { clock.withLock { $0.milliseconds } }
    var path: String { directory + "/journal.db" }
    /// How grave the lines of the log are.
    var levels: [LogLevel] { lines.withLock { $0.map(\.level) } }

    private init(_ directory: String, _ loop: EventLoop) {
        self.directory = directory
        self.loop = loop
    }

    /// Runs `body` and then checks that it left nothing open on the loop.
    static func run(_ body: (Bench) async throws -> Void) async throws {
        var template = Array("/tmp/meshjournal-XXXXXX".utf8CString)
        try #require(template.withUnsafeMutableBufferPointer { mkdtemp($0.baseAddress!) != nil })
        let directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let thread = LoopThread()
        do {
            try await body(Bench(directory, thread.loop))
        } catch {
            try? await thread.shutDown()
            throw error
        }
        try await thread.shutDown()
    }

    /// Runs `body` with an empty journal, and closes it.
    static func journal(
        _ change: (inout JournalSettings) -> Void = { _ in }, _ body: (Bench, MessageJournal) async throws -> Void
    ) async throws {
        try await run { bench in
            let journal = try await bench.open(change)
            try await body(bench, journal)
            await journal.close()
        }
    }

    func open(_ change: (inout JournalSettings) -> Void = { _ in }) async throws(MeshError) -> MessageJournal {
        var settings = JournalSettings()
        change(&settings)
        let log = LogSink(threshold: .debug) { [self] level, text, _ in
            lines.withLock { $0.append((level, text)) }
        }
        return try await MessageJournal.open(path: path, settings: settings, loop: loop, log: log) { [self] in
            clock.withLock { $0 }
        }
    }

    func pass(_ time: Duration) {
        clock.withLock { $0 += time }
    }

    func set(_ time: Duration) {
        clock.withLock { $0 = time }
    }

    /// A message that was received now, unlike any with another text.
    func message(_ text: String, _ device: String = "roof", origin: String? = nil) -> NewMessage {
        NewMessage(
            device: device, receivedAt: now, key: Data("key of \(text)".utf8), frame: Data(text.utf8), origin: origin)
    }

    /// Writes a file, whole, in the place of the journal.
    func write(_ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(filePath: path))
    }

    func files() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
    }
}

extension ClientIdentity {
    static let app = ClientIdentity(share: "home", name: "app", address: "192.0.2.7")
    static let bot = ClientIdentity(share: "home", name: "bot", address: "192.0.2.8")
}

extension MessageJournal {
    /// The texts that a device's messages were made of.
    func texts(of device: String = "roof", after sequence: Int64 = 0, limit: Int = 1_000) async throws -> [String] {
        try await entries(of: device, after: sequence, limit: limit).map { String(decoding: $0.frame, as: UTF8.self) }
    }

    /// Does something with the database, in its turn.
    func ask<Value: Sendable>(
        _ kind: JournalOperation.Kind = .read,
        _ work: @escaping @Sendable (JournalDatabase) throws(JournalError) -> Value
    ) async throws -> Value {
        try await submit(kind, device: nil) { database, _ throws(JournalError) in try work(database) }.get().get()
    }

    /// Runs a statement behind the journal's back, as somebody with `sqlite3` might.
    func execute(_ sql: String) async throws {
        try await ask { database throws(JournalError) in try database.connected().execute(sql, "test") }
    }

    /// A number that a statement gives.
    func number(_ sql: String) async throws -> Int64 {
        try await ask { database throws(JournalError) in try database.connected().number(sql, "test") }
    }

    /// How many transactions were tried.
    func transactions() async throws -> Int {
        try await ask { $0.transactions }
    }

    /// Keeps its thread busy until the gate is opened.
    func block(_ gate: Gate) async throws {
        try await ask { _ in gate.wait() }
    }
}
