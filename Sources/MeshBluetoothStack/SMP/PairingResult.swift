// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What a pairing led to.
public struct PairingResult: Sendable, Hashable {
    /// What is to be kept; nil if a side did not want to bond: the keys then end with the link.
    public var bond: Bond?
    public var method: PairingMethod
    public var isSecureConnections: Bool

    /// A passkey protects the link.
    public var isAuthenticated: Bool { method != .justWorks }
}

/// Why a pairing failed.
public enum PairingFailure: Sendable, Hashable {
    /// The peer says so.
    case failedByPeer(SMPFailureReason)
    /// This host has told the peer so.
    case failedByHost(SMPFailureReason)
    /// The peer would have paired without the passkey that is required; it may have none set.
    case downgraded
    /// The peer stopped answering. This link is of no use for another pairing: close it.
    case timedOut
    /// The link could not be encrypted with the new key.
    case encryptionFailed(HCIStatus)
    case linkEnded

    /// Whether the passkeys of both sides differ, as far as the failure tells.
    public var isWrongPasskey: Bool {
        self == .failedByPeer(.confirmValueFailed) || self == .failedByHost(.confirmValueFailed)
    }
}
