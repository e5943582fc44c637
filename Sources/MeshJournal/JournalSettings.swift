// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How a journal keeps what it is given.
public struct JournalSettings: Sendable, Hashable {
    /// What a message has survived when ``MessageJournal/append(_:)`` returns.
    public enum Durability: String, Sendable, Hashable, CaseIterable {
        /// A power cut: each message is synced to the disk (`fdatasync`).
        case full
        /// A crash of the process. A power cut can take the messages since the last checkpoint.
        case normal
    }

    /// The most messages of one device; the oldest go.
    public var maximumEntries = 100_000
    /// Messages that were received longer ago go, a few with each message that comes.
    public var maximumAge: Duration = .seconds(30 * 86_400)
    /// Identities that were not used for so long are forgotten.
    public var cursorAge: Duration = .seconds(180 * 86_400)
    /// The most cursors, of all devices together: a client can call itself what it likes, and must not fill the disk by it.
    /// Beyond it one goes where the most are: on the share with the most, of the address with the most there, the one that
    /// was used longest ago.
    public var maximumCursors = 4_096
    public var durability = Durability.full
    /// Two messages with the same key, received no further apart than this, are the same one.
    public var duplicateWindow: Duration = .seconds(3_600)
    /// How long a statement waits, on its own thread, for another program that has the file locked.
    var busyTimeout: Duration = .seconds(2)

    public init() {}
}
