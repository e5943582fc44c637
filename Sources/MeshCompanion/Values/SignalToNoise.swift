// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A signal-to-noise ratio in quarters of a dB, as radios write it (companion-protocol §1.8).
public struct SignalToNoise: Sendable, Hashable, Comparable {
    /// Quarters of a dB.
    public var quarters: Int8

    public init(quarters: Int8) {
        self.quarters = quarters
    }

    /// The ratio in dB.
    public var decibels: Double { Double(quarters) / 4 }

    /// By strength.
    public static func < (left: SignalToNoise, right: SignalToNoise) -> Bool { left.quarters < right.quarters }
}

extension SignalToNoise: CustomStringConvertible {
    /// Such as `-2.25 dB`.
    public var description: String { "\(decibels) dB" }
}
