// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Pauses between attempts of a link that is made anew by itself: full jitter within a window that doubles with each
/// failure, so that many links lost at once do not come back at once.
struct BLEReconnectPolicy: Sendable {
    private let bounds: ClosedRange<Duration>
    /// State of SplitMix64 (Steele, Lea and Flood 2014).
    private var random: UInt64
    private var failures = 0

    init(bounds: ClosedRange<Duration>, seed: UInt64) {
        self.bounds = bounds
        random = seed
    }

    /// The link is up.
    mutating func reset() {
        failures = 0
    }

    mutating func nextDelay() -> Duration {
        failures += 1
        let window = min(bounds.lowerBound * (1 << min(failures, 20)), bounds.upperBound)
        let share = Double(draw() >> 11) / Double(1 << 53)
        return bounds.lowerBound + (window - bounds.lowerBound) * share
    }

    private mutating func draw() -> UInt64 {
        random &+= 0x9E37_79B9_7F4A_7C15
        var z = random
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
