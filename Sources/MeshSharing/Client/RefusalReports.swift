// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// When to tell of clients that were refused: the first at once, further ones together, a second apart at least. Pure.
struct RefusalReports {
    private static let interval = Duration.seconds(1)

    private var untold = 0
    private var last: Duration?

    /// A client was refused. How many to tell of now; nil while the last report is too recent.
    mutating func refused(now: Duration) -> Int? {
        untold += 1
        if let last, now - last < Self.interval { return nil }
        last = now
        defer { untold = 0 }
        return untold
    }
}
