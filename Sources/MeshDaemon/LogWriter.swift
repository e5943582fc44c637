// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc
internal import MeshRuntime
internal import MeshTransportAPI
internal import Synchronization

/// Writes log records to standard error, one line each: `notice: link is up device=roof`.
///
/// Under journald (`JOURNAL_STREAM` is set) a line begins with its level as `<5>` (sd-daemon(3)), else with the time.
final class LogWriter: Sendable {
    private let level: Atomic<Int32>
    private let isJournal: Bool

    init(level: LogLevel, environment: [String: String]) {
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
        var line: String
        if isJournal {
            line = "<\(level.rawValue)>\(message)"
        } else {
            line = "\(RFC3339.text(sinceEpoch: .sinceEpoch)) \(level.name): \(message)"
        }
        for (name, value) in fields { line += " \(name)=\(Self.quoted(value))" }
        line += "\n"
        let bytes = Array(line.utf8)
        // One write call, so that lines of several threads do not mix.
        _ = Glibc.write(STDERR_FILENO, bytes, bytes.count)
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
