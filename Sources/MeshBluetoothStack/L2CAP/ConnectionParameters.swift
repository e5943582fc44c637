// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How often both ends of a link meet, and how long a silence ends it (Core Specification 5.4, Vol 6 Part B §4.5.1).
public struct ConnectionParameters: Sendable, Hashable {
    /// In units of 1.25 ms.
    public var minimumInterval: UInt16
    /// In units of 1.25 ms.
    public var maximumInterval: UInt16
    /// How many meetings in a row the peripheral may miss.
    public var latency: UInt16
    /// In units of 10 ms.
    public var supervisionTimeout: UInt16

    public init(minimumInterval: UInt16, maximumInterval: UInt16, latency: UInt16, supervisionTimeout: UInt16) {
        self.minimumInterval = minimumInterval
        self.maximumInterval = maximumInterval
        self.latency = latency
        self.supervisionTimeout = supervisionTimeout
    }

    /// For setting a link up: 7.5 to 15 ms, 5 s.
    public static let fast = ConnectionParameters(
        minimumInterval: 6, maximumInterval: 12, latency: 0, supervisionTimeout: 500)
    /// For keeping one: 15 to 30 ms, 5 s.
    public static let relaxed = ConnectionParameters(
        minimumInterval: 12, maximumInterval: 24, latency: 0, supervisionTimeout: 500)
    /// 4 s. What ends sooner ends in noise: kernels choose 420 ms, and their users see links drop (R24).
    public static let supervisionFloor: UInt16 = 400
    /// 10 s. A peer that goes out of range costs its place in the controller for so long, and its user the time until the
    /// next attempt; the specification allows 32 s.
    public static let supervisionCeiling: UInt16 = 1000

    /// Whether these lie in the ranges of Vol 3 Part A §4.20, and a silence of the latency's length does not end the
    /// link.
    public var isValid: Bool {
        guard (6...3200).contains(minimumInterval), (minimumInterval...3200).contains(maximumInterval),
            latency <= 499, (10...3200).contains(supervisionTimeout)
        else { return false }
        // The timeout is more than (1 + latency) * interval * 2; both sides in quarters of a millisecond.
        return Int(supervisionTimeout) * 40 > (1 + Int(latency)) * Int(maximumInterval) * 5 * 2
    }

    /// The same with a supervision timeout of at least 4 s, and at most 10 s where interval and latency allow that.
    public var withSupervisionInBounds: ConnectionParameters {
        var parameters = self
        parameters.supervisionTimeout = max(supervisionTimeout, Self.supervisionFloor)
        guard parameters.supervisionTimeout > Self.supervisionCeiling else { return parameters }
        // In units of 10 ms, rounded up, and more than (1 + latency) * interval * 2.
        let least = (1 + Int(latency)) * Int(maximumInterval) * 10 / 40 + 1
        parameters.supervisionTimeout = UInt16(
            min(Int(supervisionTimeout), max(Int(Self.supervisionCeiling), least)))
        return parameters
    }
}
