// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How long a peer that fails to pair has to wait before it may try again (Core Specification 5.4, Vol 3 Part H
/// §2.3.6): twice as long after each failure, so that a passkey of six digits cannot be found by trying. A success ends
/// the wait.
public struct PairingAttemptPolicy: Sendable {
    public struct Configuration: Sendable {
        public var firstWait: Duration = .seconds(1)
        public var longestWait: Duration = .seconds(600)
        /// How many peers are remembered; of more, those whose wait ends first are forgotten.
        public var limit = 64

        public init() {}
    }

    private struct Failure: Sendable {
        var wait: Duration
        var until: Duration
    }

    private let configuration: Configuration
    private var failures: [DeviceAddress: Failure] = [:]

    public init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// Until when a peer may not pair; nil if it may.
    public func blockedUntil(_ peer: DeviceAddress, now: Duration) -> Duration? {
        failures[peer].flatMap { $0.until > now ? $0.until : nil }
    }

    public mutating func pairingFailed(_ peer: DeviceAddress, now: Duration) {
        let wait = failures[peer].map { min($0.wait * 2, configuration.longestWait) } ?? configuration.firstWait
        failures[peer] = Failure(wait: wait, until: now + wait)
        if failures.count > configuration.limit,
            let oldest = failures.filter({ $0.key != peer }).min(by: { $0.value.until < $1.value.until })
        {
            failures[oldest.key] = nil
        }
    }

    public mutating func pairingSucceeded(_ peer: DeviceAddress) {
        failures[peer] = nil
    }
}
