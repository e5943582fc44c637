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
        /// The last failure is hoped to pass by itself.
        var isToPass = false
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

    /// Returns whether to try it again with all as it is. That is so when the peer wants it later, and the first time in a row
    /// when it does not say why: a radio may be busy, or have had a bad moment.
    @discardableResult
    public mutating func pairingFailed(
        _ peer: DeviceAddress, _ failure: PairingFailure? = nil, now: Duration
    ) -> Bool {
        let isToPass =
            switch failure {
            case .failedByPeer(.repeatedAttempts): true
            case .failedByPeer(.unspecified), .failedByHost(.unspecified): failures[peer]?.isToPass != true
            case .failedByPeer, .failedByHost, .downgraded, .timedOut, .encryptionFailed, .linkEnded, nil: false
            }
        let wait = failures[peer].map { min($0.wait * 2, configuration.longestWait) } ?? configuration.firstWait
        failures[peer] = Failure(wait: wait, until: now + wait, isToPass: isToPass)
        if failures.count > configuration.limit,
            let oldest = failures.filter({ $0.key != peer }).min(by: { $0.value.until < $1.value.until })
        {
            failures[oldest.key] = nil
        }
        return isToPass
    }

    public mutating func pairingSucceeded(_ peer: DeviceAddress) {
        failures[peer] = nil
    }
}
