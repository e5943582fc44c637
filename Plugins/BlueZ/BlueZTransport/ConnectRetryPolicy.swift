// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What one connection attempt does after `Device1.Connect` has failed, until its caller gives up: bluetoothd fails for many
/// reasons that pass at once, and an attempt that ended there would cost a whole backoff. Pure.
///
/// Numbers: BlueZ in use by bleak-retry-connector 4.6.3 (9 tries after transient errors, the pauses between them).
struct ConnectRetryPolicy: Sendable {
    enum Step: Sendable, Hashable {
        /// Wait until the device is told as not connected, then this long, and try again.
        case retry(after: Duration)
        /// Wait this long, and look whether the device is connected by then.
        case wait(Duration)
        /// The same as `retry` after a `Device1.Disconnect`, which ends the attempt of whoever began it.
        case disconnectThenRetry(after: Duration)
        /// Remove the device, which has no keys, look for it and try again.
        case forgetThenRetry
        /// Look for the device again.
        case searchThenRetry
        /// It is connected.
        case useLink
        case fail
    }

    /// A link aborted by this side's kernel comes up at one of the next tries (R9).
    private static let abortLimit = 9
    /// The same for a device that seems to have lost its bond: what bad luck there may have been is tried again, briefly.
    private static let suspectAbortLimit = 2
    private static let searchLimit = 3

    /// What may be done about the attempt of another program (R12). bluetoothd does not say whose it is: one that a program
    /// left behind when it died looks like one that is waited for.
    enum Takeover: Sendable, Hashable {
        /// It has been ended once. Whoever has begun another since is alive.
        case none
        /// It is ended, once.
        case once
        /// It is ended as often as it takes, and a device without keys is forgotten for it.
        case always
    }

    private var aborts = 0
    private var inProgress = 0
    private var searches = 0

    mutating func connectFailed(
        _ failure: BlueZFailure, isBonded: Bool, isBondSuspected: Bool = false, takeover: Takeover = .once
    ) -> Step {
        switch failure {
        case .alreadyDone: return .useLink
        case .linkAborted:
            aborts += 1
            let limit = isBondSuspected ? Self.suspectAbortLimit : Self.abortLimit
            return aborts > limit ? .fail : .retry(after: .milliseconds(aborts == 1 ? 0 : 100))
        case .inProgress:
            inProgress += 1
            switch inProgress {
            // Most attempts of others are over soon, and what they connect is used.
            case 1: return .wait(.milliseconds(500))
            case 2 where takeover != .none: return .disconnectThenRetry(after: .milliseconds(500))
            case 3 where takeover == .always && !isBonded: return .forgetThenRetry
            default: return .fail
            }
        case .objectGone:
            searches += 1
            return searches > Self.searchLimit ? .fail : .searchThenRetry
        case .cancelled, .serviceGone, .serviceSilent, .accessDenied, .adapterOff, .adapterBlocked, .peerSilent,
            .noSlots, .adapterNotReady, .bondSuspect, .agentNotTaken,
            .bondStale, .securityInsufficient, .acquiredElsewhere, .notAllowed, .unsupported, .notConnected,
            .valueTooLong, .att, .passkeyWrong, .agentNotAsked, .pairingTimeout, .pairingRejected, .pairingInterrupted,
            .other:
            return .fail
        }
    }
}
