// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Who wants a command sent: the host itself, or a client by its number.
public struct LaneRequester: Sendable, Hashable, ExpressibleByIntegerLiteral {
    /// The client's number; 0 for the host.
    public let client: UInt64

    /// A client's numbers begin at 1.
    public init(client: UInt64) {
        self.client = client
    }

    /// The same as ``init(client:)``.
    public init(integerLiteral value: UInt64) {
        client = value
    }

    /// The host, on its own behalf.
    public static let host = LaneRequester(client: 0)
}

/// Times and limits of a ``CommandLaneStateMachine``.
public struct CommandLaneConfiguration: Sendable {
    /// How long a reply may take; also between two frames of a series. (Five seconds: the firmware's documentation.)
    public var replyTimeout: Duration = .seconds(5)
    /// How many frames a series may have before its last one. (No firmware is built for more than 3,000 contacts.)
    public var seriesLimit = 10_000
    /// Silence needed before the fence is sent (nRF52 radios merge writes that come within one loop).
    public var fenceSilence: Duration = .milliseconds(100)
    /// How long that silence may take to come. (No radio has so much to answer: what is late are a few replies.)
    public var silenceLimit: Duration = .seconds(3)
    /// How long a command that makes the radio go away may wait for an OK or ERR that normally does not come.
    public var departureTimeout: Duration = .seconds(2)
    /// How long the fence's answer may take.
    public var fenceTimeout: Duration = .seconds(3)
    /// How many fences may be tried before the link is given up, 1 or 2: each must be of a kind whose answer cannot be
    /// one to what was sent before it.
    public var fenceAttempts = 2
    /// How many turns in a row may pass over what waits with a lower priority. (A read costs the radio a moment, a send
    /// air time: one read to four sends delays nobody who sends.)
    public var passLimit = 4
    /// Entries that may wait per requester.
    public var queueLimit = 128

    public init() {}
}
