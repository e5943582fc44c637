// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How grave a log record is; raw values are those of syslog (RFC 5424 §6.2.1).
public enum LogLevel: Int32, Sendable, Hashable, Comparable, CaseIterable {
    case error = 3
    case warning = 4
    case notice = 5
    case info = 6
    case debug = 7

    /// The graver level is the smaller one, as in syslog.
    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }

    /// The name a config uses.
    public var name: String { "\(self)" }

    /// The level with that name.
    public init?(name: String) {
        guard let level = LogLevel.allCases.first(where: { $0.name == name }) else { return nil }
        self = level
    }
}

/// Where a library's log records go. Passed in, never made by the library. The message is constant text; what varies
/// stands in the fields. Never payloads, keys, PINs or coordinates.
public struct LogSink: Sendable {
    /// The least grave level that is written.
    public var threshold: LogLevel
    private let write: @Sendable (LogLevel, String, [(String, String)]) -> Void

    /// `write` may be called from any thread.
    public init(
        threshold: LogLevel, write: @escaping @Sendable (LogLevel, String, [(String, String)]) -> Void
    ) {
        self.threshold = threshold
        self.write = write
    }

    /// Drops everything.
    public static var none: LogSink { LogSink(threshold: .error) { _, _, _ in } }

    /// Writes one record, if its level is wanted. The fields are evaluated only then.
    public func callAsFunction(
        _ level: LogLevel, _ message: String, _ fields: @autoclosure () -> [(String, String)] = []
    ) {
        if level <= threshold {
            write(level, message, fields())
        }
    }

    /// A sink that adds these fields to every record.
    public func adding(_ fields: [(String, String)]) -> LogSink {
        LogSink(threshold: threshold) { [write] level, message, more in write(level, message, fields + more) }
    }
}
