// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// When a call was made.
struct JournalMoment: Sendable {
    /// Milliseconds since 1970-01-01 UTC. Whatever the machine believes: it may jump.
    var wallClock: Int64
    /// Monotonic time.
    var uptime: Duration
}

/// One call of the journal, waiting for its turn.
struct JournalOperation: Sendable {
    /// What a call needs of the file.
    enum Kind: Sendable {
        case read
        case write(isDurable: Bool)
    }

    let kind: Kind
    /// Does it; gives what resumes the caller.
    let run: @Sendable (JournalDatabase) throws(JournalError) -> (@Sendable () -> Void)
    /// Resumes the caller with an error.
    let fail: @Sendable (JournalError) -> Void

    var isWrite: Bool { if case .write = kind { true } else { false } }
    var isDurable: Bool { if case .write(true) = kind { true } else { false } }
}
