// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshJournal
import MeshLoop
import MeshTransportAPI
import Synchronization

/// Figures of a journal: what it costs, and that the loop does not wait for it.
struct Measurement {
    let folder: String
    let loop: EventLoop
    private let entries = 100_000
    private let appends = 2_000

    init(folder: String, loop: EventLoop) {
        self.folder = folder
        self.loop = loop
    }

    func run(isolation: isolated (any Actor)? = #isolation) async throws {
        // The pool's threads and the program's own first steps are not the journal's.
        await loop.blocking {}
        let before = Memory.now
        let journal = try await open("empty.db")
        let opened = Memory.now
        say("open, empty", "resident \(opened - before) more")
        for number in 0..<100 { try await use(journal, number) }
        let used = Memory.now
        say("after 100 messages", "\(used - before) more")
        await journal.close()

        try await many(before)
        for durability in JournalSettings.Durability.allCases { try await latency(durability) }
    }

    /// One message after the other, and how long others have to wait for the loop meanwhile.
    private func latency(
        _ durability: JournalSettings.Durability, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let journal = try await open("\(durability).db", durability)
        var times: [Duration] = []
        let quiet = LoopProbe(loop)
        try await loop.sleep(for: .seconds(1))
        let idle = await quiet.stop()
        let probe = LoopProbe(loop)
        for number in 0..<appends {
            let begin = loop.now
            _ = try await journal.append(message(number))
            times.append(loop.now - begin)
        }
        let delays = await probe.stop()
        say("append, \(durability)", "\(Spread(times)) of \(appends)")
        say("loop delay meanwhile", "\(Spread(delays)); of a loop with nothing to do: \(Spread(idle))")
        await journal.close()
    }

    /// A journal as full as it gets.
    private func many(_ before: Memory, isolation: isolated (any Actor)? = #isolation) async throws {
        let filling = try await open("many.db", .normal)
        let begin = loop.now
        for number in 0..<entries { _ = try await filling.append(message(number)) }
        say("\(entries) messages, one after the other", "\((loop.now - begin) / entries) each")
        let full = Memory.now
        say("after \(entries) messages", "\(full - before) more")
        await filling.close()

        let start = loop.now
        let journal = try await open("many.db")
        say("open with \(entries) messages", "\(loop.now - start)")
        let first = loop.now
        _ = try await journal.append(message(entries))
        say("first message after it", "\(loop.now - first)")
        var times: [Duration] = []
        for other in 1..<500 {
            let begin = loop.now
            _ = try await journal.append(message(entries + other))
            times.append(loop.now - begin)
        }
        say("append to a full journal", "\(Spread(times)) of \(times.count)")
        let reading = loop.now
        var read = 0
        var after: Int64 = 0
        while true {
            let page = try await journal.entries(of: "roof", after: after, limit: 64)
            guard let last = page.last else { break }
            read += page.count
            after = last.sequence
        }
        say("reading \(read) messages, 64 at a time", "\((loop.now - reading) / read) each")
        let asking = loop.now
        let statistics = try await journal.statistics()
        say("statistics", "\(loop.now - asking), \(statistics.entries) messages in \(statistics.bytes / 1_000) kB")
        let end = Memory.now
        say("resident at the end", "\(end - before) more")
        await journal.close()
    }

    private func open(
        _ name: String, _ durability: JournalSettings.Durability = .full,
        isolation: isolated (any Actor)? = #isolation
    ) async throws(MeshError) -> MessageJournal {
        var settings = JournalSettings()
        settings.durability = durability
        return try await MessageJournal.open(path: "\(folder)/\(name)", settings: settings, loop: loop, log: .none)
    }

    private func use(
        _ journal: MessageJournal, _ number: Int, isolation: isolated (any Actor)? = #isolation
    ) async throws(MeshError) {
        let entry = try await journal.append(message(number))
        let identity = ClientIdentity(share: "home", name: "client \(number % 8)", address: "192.0.2.1")
        try await journal.setCursor(entry?.sequence ?? 0, of: identity, device: "roof")
        _ = try await journal.entries(of: "roof", after: 0, limit: 1)
    }

    private func message(_ number: Int) -> NewMessage {
        // Spread like the hashes that a key is made of (SplitMix's constant).
        let key = UInt64(truncatingIfNeeded: number) &* 0x9E37_79B9_7F4A_7C15
        return NewMessage(
            device: "roof", receivedAt: Int64(Date().timeIntervalSince1970 * 1_000),
            key: Data(withUnsafeBytes(of: (key, ~key)) { Array($0) }), frame: Data(repeating: 0x5A, count: 120))
    }

    private func say(_ what: String, _ figure: String) {
        Program.say("\(what): \(figure)")
    }
}

/// A thread that asks the loop for a turn, every half millisecond, and how long it waits for it.
private final class LoopProbe: Sendable {
    private let loop: EventLoop
    private let delays = Mutex<[Duration]>([])
    private let isOver = Mutex(false)
    private let ended = Mutex<CheckedContinuation<Void, Never>?>(nil)

    init(_ loop: EventLoop) {
        self.loop = loop
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { context in
                Unmanaged<LoopProbe>.fromOpaque(context!).takeRetainedValue().body()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        pthread_detach(thread)
    }

    private func body() {
        while !isOver.withLock({ $0 }) {
            let begin = loop.now
            loop.perform { self.delays.withLock { $0.append(self.loop.now - begin) } }
            usleep(500)
        }
        loop.perform { self.ended.withLock { $0 }?.resume() }
    }

    func stop(isolation: isolated (any Actor)? = #isolation) async -> [Duration] {
        await withCheckedContinuation(isolation: isolation) { continuation in
            ended.withLock { $0 = continuation }
            isOver.withLock { $0 = true }
        }
        return delays.withLock { $0 }
    }
}

private struct Spread: CustomStringConvertible {
    private let sorted: [Duration]

    init(_ times: [Duration]) {
        sorted = times.sorted()
    }

    var description: String {
        guard !sorted.isEmpty else { return "none" }
        func microseconds(_ part: Double) -> Int64 {
            let time = sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
            return time.components.seconds * 1_000_000 + time.components.attoseconds / 1_000_000_000_000
        }
        return "median \(microseconds(0.5)) µs, p99 \(microseconds(0.99)) µs, most \(microseconds(1)) µs"
    }
}

/// Resident memory in kB, from `/proc/self/smaps`.
private struct Memory {
    /// The heap, stacks and what programs and libraries have written to.
    var anonymous = 0
    /// SQLite's own code and constants.
    var library = 0
    /// All other files: the program, its libraries, the index of the log (`-shm`).
    var files = 0

    static var now: Memory {
        var memory = Memory()
        var isLibrary = false
        var resident = 0
        for line in contents("/proc/self/smaps").split(separator: "\n") {
            let words = line.split(separator: " ")
            switch words[0] {
            case "Rss:":
                resident = Int(words[1]) ?? 0
            case "Anonymous:":
                let anonymous = Int(words[1]) ?? 0
                memory.anonymous += anonymous
                if isLibrary { memory.library += resident - anonymous } else { memory.files += resident - anonymous }
            case let word where !word.hasSuffix(":"):
                isLibrary = words.last?.contains("libsqlite3") ?? false
            default:
                break
            }
        }
        return memory
    }

    /// A file of `/proc` does not say how long it is.
    private static func contents(_ path: String) -> String {
        let descriptor = open(path, O_RDONLY)
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &chunk, chunk.count)
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes += chunk[..<count]
        }
    }

    static func - (left: Memory, right: Memory) -> String {
        """
        anonymous \(left.anonymous - right.anonymous) kB, libsqlite3 \(left.library - right.library) kB, \
        other files \(left.files - right.files) kB
        """
    }
}
