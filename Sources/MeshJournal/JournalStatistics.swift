// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What one journal holds, for people and for `status`.
public struct JournalStatistics: Sendable, Hashable {
    /// One device that the journal has ever heard of.
    public struct Device: Sendable, Hashable {
        /// The configured device name.
        public var name: String
        /// Messages kept.
        public var entries: Int
        /// The newest sequence number, kept or not; 0 if there was never a message.
        public var head: Int64
        /// When the oldest message that is kept was received, in milliseconds since 1970-01-01 UTC; nil if there is none.
        public var oldest: Int64?
    }

    /// How far one identity has read.
    public struct Cursor: Sendable, Hashable {
        public var identity: ClientIdentity
        /// The configured device name.
        public var device: String
        /// The last message it has had.
        public var sequence: Int64
        /// When it was last used, in milliseconds since 1970-01-01 UTC, to within a day.
        public var usedAt: Int64
    }

    /// By name.
    public var devices: [Device]
    /// The one that was used last comes first.
    public var cursors: [Cursor]
    /// The size of the files.
    public var bytes: Int64

    /// Messages kept, of all devices.
    public var entries: Int { devices.reduce(0) { $0 + $1.entries } }
    /// When the oldest message that is kept was received, in milliseconds since 1970-01-01 UTC; nil if there is none.
    public var oldest: Int64? { devices.compactMap(\.oldest).min() }
}
