// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// A message in the journal.
public struct JournalEntry: Sendable, Hashable {
    /// Its number. Rises with each message of the journal, whatever its device, and is never used again.
    public var sequence: Int64
    /// The configured device name.
    public var device: String
    /// Milliseconds since 1970-01-01 UTC.
    public var receivedAt: Int64
    /// As the radio gave it, or as the host made it.
    public var frame: Data
    /// The identity of the client whose own send this echoes; nil: from the radio.
    public var origin: String?

    public init(sequence: Int64, device: String, receivedAt: Int64, frame: Data, origin: String? = nil) {
        self.sequence = sequence
        self.device = device
        self.receivedAt = receivedAt
        self.frame = frame
        self.origin = origin
    }
}
