// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// When the radio's clock has to be looked at again, and what to make of one that went back. Pure.
struct ClockWatch {
    /// A crystal of 500 ppm (nRF52 without crystal, `LFCLK` RC) is 1.8 s off by then, as much as is put up with.
    static let interval = Duration.seconds(3_600)
    /// A host's clock that moved by no more than this against its uptime was adjusted; by more, it was set.
    static let jump = Duration.seconds(2)

    /// The host's uptime and the time that its clock told with it, when the radio's clock was looked at last.
    private var checked: (uptime: Duration, wallClock: Duration)?
    /// Whether the radio's clock has ever been seen to keep what it was set to, since it was last seen not to.
    private var isTrusted = true
    private var isAhead = false

    /// The radio is asked for its time.
    mutating func began(uptime: Duration, wallClock: Duration) {
        checked = (uptime, wallClock)
    }

    /// Whether it is time to ask again, or the host's clock was set since: by the network after a start without, for one.
    func isDue(uptime: Duration, wallClock: Duration) -> Bool {
        guard let checked else { return false }
        let passed = uptime - checked.uptime
        let moved = wallClock - checked.wallClock - passed
        return passed >= Self.interval || moved > Self.jump || moved < .zero - Self.jump
    }

    /// The radio's clock has run on.
    mutating func ranOn() { isTrusted = true }

    /// The radio's clock is behind what it told or took before. Whether the radio has restarted; one that takes each new time
    /// and keeps none is not greeted again and again.
    mutating func wentBack() -> Bool {
        defer { isTrusted = false }
        return isTrusted
    }

    /// How the radio's clock is; whether it is ahead and was not before.
    mutating func noteAhead(_ isAhead: Bool) -> Bool {
        defer { self.isAhead = isAhead }
        return isAhead && !self.isAhead
    }
}
