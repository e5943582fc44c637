// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
public import MeshTransportAPI

/// What a ``MeshCoreSession`` has from outside: time, chance, where to run and where to log. The defaults are those of
/// a program; a test gives its own.
public struct MeshSessionEnvironment: Sendable {
    /// For timeouts.
    public var clock: any Clock<Duration>
    /// The time of day, seconds since 1970: for the radio's clock and for the messages that are sent.
    public var date: @Sendable () -> UInt32
    /// For the tags of traces and requests.
    public var random: @Sendable () -> UInt32
    /// Where the session's own tasks run; nil for the default. A host that runs on one loop gives the loop's, and a clock
    /// that does not need threads.
    public var executor: (any TaskExecutor)?
    public var log: LogSink

    public init(
        clock: any Clock<Duration> = ContinuousClock(),
        date: @escaping @Sendable () -> UInt32 = MeshSessionEnvironment.systemDate,
        random: @escaping @Sendable () -> UInt32 = { .random(in: 0 ... .max) },
        executor: (any TaskExecutor)? = nil, log: LogSink = .none
    ) {
        self.clock = clock
        self.date = date
        self.random = random
        self.executor = executor
        self.log = log
    }

    /// The system's time of day, seconds since 1970.
    public static func systemDate() -> UInt32 { UInt32(clamping: Int(Date().timeIntervalSince1970)) }
}

/// A clock as machines want it: the time since the session was made.
struct SessionClock: Sendable {
    let now: @Sendable () -> Duration
    /// Throws when the task is cancelled.
    let sleep: @Sendable (_ until: Duration) async throws -> Void

    init(_ clock: some Clock<Duration>) {
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
    }
}
