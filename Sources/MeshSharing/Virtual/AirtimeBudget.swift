// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials

/// How much a share's clients may send: a part of all time, and so much at once. A bucket that fills with time on air.
struct AirtimeBudget: Sendable {
    private let share: Double
    private let burst: Duration
    /// What may be sent now; less than zero after a packet longer than the whole burst.
    private var level: Duration
    private var filledAt: Duration?

    /// `percent` of all time, 0 for any amount; at most `burst` at once. The bucket begins full.
    init(percent: Double, burst: Duration) {
        share = percent / 100
        self.burst = burst
        level = burst
    }

    /// Whether nothing is ever refused.
    var isUnlimited: Bool { share <= 0 }

    /// Takes what a packet costs, if it is there. A packet that costs more than the burst is sent when the bucket is
    /// full, else it could never be; what is then owed is paid before the next.
    mutating func take(_ cost: Duration, now: Duration) -> Bool {
        if isUnlimited { return true }
        fill(now)
        guard level >= min(cost, burst) else { return false }
        level -= cost
        return true
    }

    /// For how long nothing of this cost can be sent; zero if it can be now.
    func wait(for cost: Duration, now: Duration) -> Duration {
        if isUnlimited { return .zero }
        var later = self
        later.fill(now)
        let missing = min(cost, burst) - later.level
        return missing > .zero ? missing / share : .zero
    }

    private mutating func fill(_ now: Duration) {
        if let filledAt, now > filledAt { level = min(level + (now - filledAt) * share, burst) }
        filledAt = max(filledAt ?? now, now)
    }
}
