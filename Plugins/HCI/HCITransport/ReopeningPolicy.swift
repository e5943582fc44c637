// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// When a controller that was lost is opened again, and whether there is anything new to tell about it.
///
/// A dongle that was plugged in again is used soon; one that stays away, or that another program keeps, is asked for more
/// and more rarely, and only a reason that is not the last one's is told.
struct ReopeningPolicy {
    static let first = Duration.seconds(1)
    static let longest = Duration.seconds(16)

    private let bounds: ClosedRange<Duration>
    /// How long to wait before the next attempt.
    private(set) var delay: Duration
    /// Why it cannot be used; nil once it can, and before the first attempt.
    private(set) var failure: MeshError?

    init(bounds: ClosedRange<Duration> = ReopeningPolicy.first...ReopeningPolicy.longest) {
        self.bounds = bounds
        delay = bounds.lowerBound
    }

    /// It was opened and set up.
    mutating func becameReady() {
        failure = nil
        delay = bounds.lowerBound
    }

    /// It cannot be used. Returns whether that is news.
    mutating func failed(_ error: MeshError) -> Bool {
        let isNews = failure?.message != error.message
        delay = failure == nil ? bounds.lowerBound : min(delay * 2, bounds.upperBound)
        failure = error
        return isNews
    }
}
