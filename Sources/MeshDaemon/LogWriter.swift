// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc
internal import MeshRuntime
internal import MeshTransportAPI
internal import Synchronization

/// Writes log records to standard error, one line each: `notice: link is up device=roof`.
///
/// A record never waits for its reader: the loop, and with it every link, would wait as well. What finds no room is lost
/// and counted, and the next record that gets through is preceded by the count.
///
/// Under journald (`JOURNAL_STREAM` is set) a line begins with its level as `<5>` (sd-daemon(3)), else with the time.
final class LogWriter: Sendable {
    private let level: Atomic<Int32>
    private let isJournal: Bool
    private let output: Mutex<LogOutput>

    init(level: LogLevel, environment: [String: String], descriptor: Int32 = STDERR_FILENO) {
        output = Mutex(LogOutput(descriptor))
        self.level = Atomic(level.rawValue)
        isJournal = environment["JOURNAL_STREAM"] != nil
    }

    /// From now on records of this level and graver ones are written.
    func setLevel(_ level: LogLevel) {
        self.level.store(level.rawValue, ordering: .relaxed)
    }

    /// The sink to hand to everybody. Its own threshold lets all pass: the level can change while the daemon runs.
    var sink: LogSink {
        LogSink(threshold: .debug) { [self] level, message, fields in
            guard level.rawValue <= self.level.load(ordering: .relaxed) else { return }
            write(level, message, fields)
        }
    }

    private func write(_ level: LogLevel, _ message: String, _ fields: [(String, String)]) {
        let line = line(level, message, fields)
        output.withLock { output in
            if output.lost > 0 {
                output.writeNote(self.line(.warning, "log records were lost", [("count", "\(output.lost)")]))
            }
            output.write(line)
        }
    }

    private func line(_ level: LogLevel, _ message: String, _ fields: [(String, String)]) -> [UInt8] {
        var line: String
        if isJournal {
            line = "<\(level.rawValue)>\(message)"
        } else {
            line = "\(RFC3339.text(sinceEpoch: .sinceEpoch)) \(level.name): \(message)"
        }
        for (name, value) in fields { line += " \(name)=\(Self.quoted(value))" }
        return Array((line + "\n").utf8)
    }

    /// Values may come from the air: nothing in them may look like another field, another line or a terminal command.
    private static func quoted(_ value: String) -> String {
        let isPlain =
            !value.isEmpty
            && value.unicodeScalars.allSatisfy { $0.value > 0x20 && $0 != "\"" && $0 != "=" && !isControl($0) }
        if isPlain { return value }
        var text = "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case let scalar where isControl(scalar): text += "\\u{\(String(scalar.value, radix: 16))}"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + "\""
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format
    }
}

extension Duration {
    /// The wall clock, as the time since 1970-01-01 UTC.
    static var sinceEpoch: Duration { .seconds(Date().timeIntervalSince1970) }
}
