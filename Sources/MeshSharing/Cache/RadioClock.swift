// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials

/// The radio's clock, from the last time that it told.
struct RadioClock: Sendable {
    /// How long a clock that was told is good for an answer. A crystal of 20 ppm is 12 ms off by then, one of 500 ppm
    /// (nRF52 without crystal, `LFCLK` RC) 0.3 s; the clock counts seconds.
    static let goodFor: Duration = .seconds(600)

    /// By how many seconds a clock that ran on may seem to have jumped: it counts seconds, and an answer takes its
    /// time.
    static let tolerance: Int64 = 4

    private var told: (time: UInt32, at: Duration)?
    /// Whether it is still the same link: after a restart the clock may be another.
    private var isSameLink = false
    /// Whether somebody else may have set it.
    private var isDoubted = false

    /// The radio told its time. Whether its clock did not just run on since the last time.
    mutating func told(_ time: UInt32, now: Duration) -> Bool {
        defer { keep(time, now) }
        guard let told else { return false }
        let elapsed = (now - told.at).components.seconds
        let difference = Int64(time) - Int64(told.time) - elapsed
        return abs(difference) > Self.tolerance + elapsed / 1000
    }

    /// The radio took this time. Whether its clock went back: old firmware lets it.
    mutating func set(_ time: UInt32, now: Duration) -> Bool {
        defer { keep(time, now) }
        guard let passed = passed(now: now) else { return false }
        return Int64(time) < Int64(passed) - Self.tolerance
    }

    private mutating func keep(_ time: UInt32, _ now: Duration) {
        told = (time, now)
        isSameLink = true
        isDoubted = false
    }

    /// The link is gone: the radio may start again meanwhile.
    mutating func linkLost() {
        isSameLink = false
    }

    /// Somebody else may have set it. The firmware lets it go forward only, so what it has passed it still has.
    mutating func doubt() {
        isDoubted = true
    }

    /// The time now, seconds since 1970, if it was told less than ten minutes ago and on this link.
    func time(now: Duration) -> UInt32? {
        guard isSameLink, !isDoubted, let told, now - told.at < Self.goodFor else { return nil }
        return guess(now: now)
    }

    /// Whether a time that the radio tells is behind the one that it told or took last: it has restarted then. Nil if there was
    /// none on this link.
    func wentBack(to time: UInt32) -> Bool? {
        guard isSameLink, let told else { return nil }
        return Int64(time) < Int64(told.time) - Self.tolerance
    }

    /// The time now by what was told last, however long ago; nil if it never was.
    func guess(now: Duration) -> UInt32? {
        told.map { $0.time &+ UInt32(clamping: (now - $0.at).components.seconds) }
    }

    /// A time that the radio's clock has passed by now: a thousandth slow and a second late; nil if it was not
    /// told on this link.
    func passed(now: Duration) -> UInt32? {
        guard isSameLink, let told else { return nil }
        let elapsed = (now - told.at).components.seconds
        let time = Int64(told.time) + elapsed - elapsed / 1000 - 1
        return UInt32(clamping: time)
    }
}
