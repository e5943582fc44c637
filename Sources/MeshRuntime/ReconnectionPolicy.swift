// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// When a device is tried again: every number of the reconnection machine.
public struct ReconnectionPolicy: Sendable, Hashable {
    /// The upper end of the first random delay; each further failure doubles it.
    public var firstDelay: Duration = .milliseconds(250)
    /// No random delay is longer.
    public var maximumDelay: Duration = .seconds(30)
    /// How many failures in a row may be answered by another attempt; nil, the default, means for ever.
    public var maximumRetries: Int?
    /// How long a link must have been ready before earlier failures are forgotten.
    public var stableAfter: Duration = .seconds(30)
    /// The last resort for `connect`. Longer than any transport's own deadlines (BLE: connect 10 s + discovery 40 s), so
    /// that normally the transport says what was too slow.
    public var connectTimeout: Duration = .seconds(60)
    /// How long the device may take to answer the session's first questions.
    public var handshakeTimeout: Duration = .seconds(10)
    /// After so many failures in a row the breaker opens: one attempt per ``maximumDelay``. At least 1.
    public var breakerThreshold = 10
    /// How often the peer must close young links before that is taken for another host; 0 turns the rule off.
    public var contentionCloses = 3
    /// Within which time.
    public var contentionWindow: Duration = .seconds(60)
    /// A link is young for this long after it became ready.
    public var contentionUptime: Duration = .seconds(10)
    /// How long the device is left to the other host.
    public var contentionDelay: Duration = .seconds(300)
    /// How often an adapter is tried though it is away, where nobody may tell that it is back.
    public var adapterRetryInterval: Duration = .seconds(30)
    /// A cancelled attempt that has not ended by then is reported.
    public var endWarningAfter: Duration = .seconds(10)

    public init() {}
}

extension ReconnectionPolicy {
    /// The shortest delay: a quarter of the first window. Without it full jitter draws delays near zero, and a peer that
    /// refuses at once would be called several times within a millisecond.
    var shortestDelay: Duration { min(firstDelay, maximumDelay) / 4 }

    /// A random delay after this many failures in a row: full jitter, evenly between ``shortestDelay`` and the window,
    /// which doubles with each failure after the first.
    func delay(afterFailures failures: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        var window = firstDelay
        var doublings = failures - 1
        // Stops at the maximum, so 10,000 failures cost no more than a dozen rounds and nothing overflows.
        while doublings > 0 && window < maximumDelay && window > .zero {
            window *= 2
            doublings -= 1
        }
        return .random(from: shortestDelay, through: min(window, maximumDelay), using: &generator)
    }

    /// How long an open breaker waits: a whole ``maximumDelay`` and up to a quarter more, so that devices that failed
    /// together do not come back together.
    func breakerDelay(using generator: inout some RandomNumberGenerator) -> Duration {
        .random(from: maximumDelay, through: maximumDelay + maximumDelay / 4, using: &generator)
    }

    /// The delay after the peer closed a young link. Short whatever came before: only a prompt attempt tells a server that
    /// restarts (it refuses) from another host that took the device (it accepts). At most ``contentionCloses`` of
    /// these follow each other.
    func probeDelay(using generator: inout some RandomNumberGenerator) -> Duration {
        .random(from: shortestDelay, through: shortestDelay * 2, using: &generator)
    }
}

extension Duration {
    /// An even choice, in nanoseconds. `low` if the range is empty.
    fileprivate static func random(
        from low: Duration, through high: Duration, using generator: inout some RandomNumberGenerator
    ) -> Duration {
        let width = (high - low).components
        guard width.seconds >= 0, width.attoseconds >= 0 else { return low }
        let nanoseconds = width.seconds * 1_000_000_000 + width.attoseconds / 1_000_000_000
        return low + .nanoseconds(Int64.random(in: 0...nanoseconds, using: &generator))
    }
}
