// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshJournal
import MeshLoop
import MeshTransportAPI

/// A process that uses a journal, for tests that need another one: to be killed, to be in the way, to run out of space.
///
///     JournalProgram append PATH COUNT [--file-limit BYTES] [--nobody]
///     JournalProgram hold PATH
///     JournalProgram measure FOLDER
///
/// `append` prints each number that it was given, before it asks for the next; COUNT 0 goes on for ever. `hold` prints
/// `open` and closes the journal when its input ends. `measure` prints figures. A failure prints `error SLUG MESSAGE` and
/// ends with status 1.
@main
struct Program {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let loop = EventLoop()
        Task(executorPreference: loop.taskExecutor) {
            let status = await LoopActor(loop).run { _ in await run(arguments, loop) }
            if status != 0 { exit(status) }
            loop.stop()
        }
        loop.run()
        do {
            try loop.shutDown()
        } catch {
            say("error leak \(error)")
            exit(1)
        }
    }

    private static func run(
        _ arguments: [String], _ loop: EventLoop, isolation: isolated (any Actor)? = #isolation
    ) async -> Int32 {
        do {
            switch (arguments.first, arguments.count) {
            case ("append", 3...): try await append(arguments[1], Array(arguments[2...]), loop)
            case ("hold", 2): try await hold(arguments[1], loop)
            case ("measure", 2): try await Measurement(folder: arguments[1], loop: loop).run()
            default:
                say("error usage")
                return 64
            }
            return 0
        } catch let error as MeshError {
            say("error \(error.code.slug) \(error.message)")
        } catch {
            say("error \(error)")
        }
        return 1
    }

    private static func append(
        _ path: String, _ options: [String], _ loop: EventLoop, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        if let index = options.firstIndex(of: "--file-limit"), let limit = rlim_t(options[index + 1]) {
            // Without this a write beyond the limit ends the process.
            signal(SIGXFSZ, SIG_IGN)
            var limits = rlimit(rlim_cur: limit, rlim_max: limit)
            setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limits)
        }
        if options.contains("--nobody"), getuid() == 0 {
            setgid(65_534)
            setuid(65_534)
        }
        let journal = try await MessageJournal.open(path: path, settings: JournalSettings(), loop: loop, log: .none)
        let count = Int(options[0]) ?? 0
        var number = 0
        while count == 0 || number < count {
            // Unlike those of earlier runs.
            let key = Data("\(getpid()) \(number)".utf8)
            let message = NewMessage(
                device: "roof", receivedAt: Int64(Date().timeIntervalSince1970 * 1_000), key: key,
                frame: Data(repeating: UInt8(truncatingIfNeeded: number), count: 160))
            guard let entry = try await journal.append(message) else {
                say("error duplicate")
                exit(1)
            }
            say("\(entry.sequence)")
            number += 1
        }
        await journal.close()
    }

    private static func hold(
        _ path: String, _ loop: EventLoop, isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let journal = try await MessageJournal.open(path: path, settings: JournalSettings(), loop: loop, log: .none)
        say("open")
        await loop.blocking {
            var byte: UInt8 = 0
            while read(0, &byte, 1) > 0 {}
        }
        await journal.close()
    }

    /// One line, with nothing kept back in a buffer.
    static func say(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        _ = write(1, bytes, bytes.count)
    }
}
