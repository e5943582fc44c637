// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How both sides make sure of each other (Core Specification 5.4, Vol 3 Part H §2.3.5.1).
public enum PairingMethod: Sendable, Hashable {
    /// Not at all: protects against listening only, and with legacy pairing not even against that.
    case justWorks
    /// By a number of six digits that one side shows, or both are given.
    case passkey(OwnPart)

    /// What this host does with the passkey.
    public enum OwnPart: Sendable, Hashable {
        case shows
        case enters
    }

    /// Table 2.8, for a host that never compares numbers: it says so by its capability, which is not `displayYesNo` or
    /// `keyboardDisplay`.
    static func choose(own: PairingFeatures, peer: PairingFeatures) -> PairingMethod {
        guard own.requirements.union(peer.requirements).contains(.authentication) else { return .justWorks }
        if own.capability.hasKeyboard, peer.capability.hasDisplay || peer.capability.hasKeyboard {
            return .passkey(.enters)
        }
        if own.capability.hasDisplay, peer.capability.hasKeyboard { return .passkey(.shows) }
        return .justWorks
    }
}
