// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// When a device is paired with, and what a refusal means: a pure part of ``BLELinkStateMachine``.
///
/// A device that protects something refuses it in one of three ways, which a Bluetooth host reports alike
/// (`insufficientSecurity`): there is no bond; the bond does not protect against eavesdroppers (Just Works, where the device
/// wants a passkey); the bond is not the device's any more. The first is cured by pairing, the others by a new bond. A bond
/// is replaced once; until a write has proved it good, a second refusal is final. An ESP32 radio lets anybody subscribe and
/// refuses only writes, so a refusal may come when the link is up: the next attempt then does what is needed.
struct BLESecurityPolicy: Sendable {
    /// What cannot be mended without a person.
    enum Failure: Sendable, Hashable {
        /// The device wants a passkey and there is none.
        case passkeyMissing
        /// The device did not accept the passkey, or refuses to pair.
        case passkeyRefused
        /// Pairing is needed and the settings forbid it.
        case pairingForbidden
        /// The bond was made just now and the device refuses as before.
        case refusedAgain
        /// The device has lost the bond, and repairs are not allowed, or no more today.
        case bondStale(repairsAllowed: Int)
    }

    enum Verdict: Sendable, Hashable {
        case pair
        /// Remove the bond, connect anew, pair: ``removesBondFirst`` is set.
        case replaceBond
        case fail(Failure)
    }

    private static let day = Duration.seconds(86_400)

    private let pairing: BLETransportSettings.Pairing
    private let hasPasskey: Bool
    private let staleBondRepairs: Int
    /// When stale bonds were replaced, within the last day.
    private var repairs: [Duration] = []
    /// Whether the next attempt begins with the removal of the bond.
    private(set) var removesBondFirst = false
    private var mustPair = false
    /// A bond was made and nothing has shown yet that the device honours it.
    private var isBondUnproven = false

    init(pairing: BLETransportSettings.Pairing, hasPasskey: Bool, staleBondRepairs: Int) {
        self.pairing = pairing
        self.hasPasskey = hasPasskey
        self.staleBondRepairs = staleBondRepairs
    }

    /// Whether to pair before the device is used.
    func pairsBeforeUse(isBonded: Bool) -> Bool {
        if isBonded { return false }
        return switch pairing {
        case .automatic: mustPair || hasPasskey
        case .always: true
        case .never: false
        }
    }

    /// The device refused something for lack of security.
    mutating func refused(isBonded: Bool) -> Verdict {
        if pairing == .never { return .fail(.pairingForbidden) }
        guard isBonded else {
            mustPair = true
            return .pair
        }
        guard hasPasskey else { return .fail(.passkeyMissing) }
        guard !isBondUnproven else {
            // Whoever connects after this has changed something.
            isBondUnproven = false
            return .fail(.refusedAgain)
        }
        return replaceBond()
    }

    /// The device says that it does not know the keys, or they do not match.
    mutating func bondFoundStale(now: Duration) -> Verdict {
        repair(now) ?? .fail(.bondStale(repairsAllowed: staleBondRepairs))
    }

    /// The device behaves as if it did not know the keys: nothing follows from that where a repair is not allowed, and not from
    /// the first time after a bond was made.
    mutating func bondSuspected(now: Duration) -> Verdict? {
        repair(now)
    }

    private mutating func repair(_ now: Duration) -> Verdict? {
        repairs.removeAll { now - $0 >= Self.day }
        guard pairing != .never, !isBondUnproven, repairs.count < staleBondRepairs else {
            isBondUnproven = false
            return nil
        }
        repairs.append(now)
        return replaceBond()
    }

    /// Pairing failed for a reason that lies in the pairing.
    mutating func pairingFailed() -> Failure {
        isBondUnproven = false
        return hasPasskey ? .passkeyRefused : .passkeyMissing
    }

    mutating func bondRemoved() {
        removesBondFirst = false
    }

    /// Whether that is worth a warning: a passkey was given, and the device asked for none.
    mutating func paired(_ outcome: PairingOutcome) -> Bool {
        mustPair = false
        guard !outcome.wasBonded else { return false }
        isBondUnproven = true
        return hasPasskey && !outcome.usedPasskey
    }

    /// The device acknowledged a write.
    mutating func proved() {
        isBondUnproven = false
    }

    private mutating func replaceBond() -> Verdict {
        removesBondFirst = true
        mustPair = true
        isBondUnproven = true
        return .replaceBond
    }
}
