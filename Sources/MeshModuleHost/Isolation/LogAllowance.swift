// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How many log records a process may write: a bucket that fills with time, so that a module that talks without end costs
/// neither the log nor the loop. Pure.
struct LogAllowance {
    /// So many at once…
    private static let burst = 200.0
    /// …and so many a second for ever.
    private static let rate = 20.0

    private var left = Self.burst
    private var last: Duration
    /// Records that found no room, since the last that did.
    private var lost = 0

    init(now: Duration) {
        last = now
    }

    /// Whether one more record may be written, and how many before it were not; nil: it may not.
    mutating func take(now: Duration) -> (isAllowed: Bool, lost: Int) {
        left = min(Self.burst, left + max(0, (now - last) / .seconds(1)) * Self.rate)
        last = now
        guard left >= 1 else {
            lost += 1
            return (false, 0)
        }
        left -= 1
        defer { lost = 0 }
        return (true, lost)
    }

    /// How many records were not written since the last that was: no more will be asked for.
    mutating func takeLost() -> Int {
        defer { lost = 0 }
        return lost
    }
}
