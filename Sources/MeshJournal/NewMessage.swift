// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// A message that the journal is to keep.
public struct NewMessage: Sendable, Hashable {
    /// The configured device name, such as `roof`.
    public var device: String
    /// Milliseconds since 1970-01-01 UTC.
    public var receivedAt: Int64
    /// What makes two messages the same; the caller composes it.
    public var key: Data
    /// As the radio gave it, or as the host made it.
    public var frame: Data
    /// The identity of the client whose own send this echoes; nil: from the radio.
    public var origin: String?
    /// How far apart two messages with this key may have been received and still be the same one; nil: as far as the
    /// journal's settings say. For a key that tells less: two messages that have it may well be two.
    public var duplicateWindow: Duration?

    public init(
        device: String, receivedAt: Int64, key: Data, frame: Data, origin: String? = nil,
        duplicateWindow: Duration? = nil
    ) {
        self.device = device
        self.receivedAt = receivedAt
        self.key = key
        self.frame = frame
        self.origin = origin
        self.duplicateWindow = duplicateWindow
    }
}
