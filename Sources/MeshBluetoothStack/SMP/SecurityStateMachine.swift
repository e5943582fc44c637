// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// How secure one link is, and what makes it more so (Core Specification 5.4, Vol 3 Part H §2.4.6, Part C §10.3).
///
///                 bond there: encrypt                    Encryption Change
///     ┌──────┐ ───────────────────────▶ ┌────────────┐ ────────────────────▶ ┌─────────┐
///     │ open │                          │ encrypting │  keys lost: open      │ secured │
///     └──┬───┘ ◀─────────────────────── └────────────┘                       └────┬────┘
///        │ no bond, or one that is not good enough                                │ a better one is asked for
///        ▼                                                                        ▼
///     ┌───────────┐ material there ┌─────────┐ finished: secured, failed: open
///     │ preparing │ ─────────────▶ │ pairing │ ─────────────────────────────────▶
///     └───────────┘                └────┬────┘
///                                       └─ timed out: closed; no other pairing on this link (§3.4)
///
/// A central begins when it is told to, or when the peripheral asks for it (Security Request). A peripheral can only
/// ask. That a link is encrypted does not make it authenticated: that is the bond's word, or the pairing's.
public struct SecurityStateMachine: ~Copyable {
    public struct Configuration: Sendable {
        public var role: LinkRole
        /// The keys of this peer, if there are any.
        public var bond: Bond?
        /// What the link must become.
        public var requiresAuthentication: Bool
        /// No pairing that the peer begins, or asks for, is taken before: it has failed too often
        /// (``PairingAttemptPolicy``).
        public var blockedUntil: Duration?
        /// Whether the peer may begin a pairing, or ask for one. This host may in any case.
        public var takesPairing = true

        public init(role: LinkRole, bond: Bond?, requiresAuthentication: Bool, blockedUntil: Duration? = nil) {
            self.role = role
            self.bond = bond
            self.requiresAuthentication = requiresAuthentication
            self.blockedUntil = blockedUntil
        }
    }

    public enum Action: Sendable, Hashable {
        case send(SMPPacket)
        case encrypt(LongTermKey)
        case answerKeyRequest(LongTermKey?)
        /// Call ``pairingPrepared(_:now:)`` with a machine of fresh material.
        case preparePairing
        case askForPasskey(PairingMethod.OwnPart)
        /// The link is encrypted.
        case secured(AttributeDatabase.Protection)
        /// Keep this bond, in the place of any other of the peer.
        case storeBond(Bond)
        /// The peer has lost its keys, or they differ: remove the bond. The link is open, and may be paired anew (R30).
        case forgetBond
        case fail(PairingFailure)
        /// The link is of no use any more.
        case closeLink
    }

    private enum State {
        /// Waits for somebody to want security.
        case open
        /// Waits for Encryption Change with the bond's keys.
        case encrypting
        /// Waits for the material of a pairing; the packet is the peer's request.
        case preparing(request: [UInt8]?)
        /// Waits for ``pairing``, which is there in this state only.
        case pairing
        /// Waits for somebody to want more.
        case secured
        /// A pairing was left unfinished, or the link has ended.
        case closed
    }

    private let configuration: Configuration
    private var state = State.open
    private var pairing: PairingStateMachine?
    private var bond: Bond?
    /// The peer has not got the keys that this host has: whether it is paired anew is the host's to say, not the peer's.
    private var hasLostBond = false
    private var blockedUntil: Duration?
    /// What the link is now.
    public private(set) var protection = AttributeDatabase.Protection.open

    public init(_ configuration: Configuration) {
        self.configuration = configuration
        bond = configuration.bond
        blockedUntil = configuration.blockedUntil
    }

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? {
        switch pairing {
        case .some(let machine): machine.nextDeadline
        case .none: nil
        }
    }

    // MARK: Inputs

    /// The link has to be secure: encrypts with the bond's keys, or pairs.
    public mutating func secureRequested() -> [Action] {
        switch state {
        case .open: return begin()
        case .secured:
            let isEnough = protection == .authenticated || !configuration.requiresAuthentication
            return isEnough ? [.secured(protection)] : begin()
        case .encrypting, .preparing, .pairing: return []
        case .closed: return [.closeLink]
        }
    }

    /// A pairing has failed, and the peer has to wait before it may begin another (``PairingAttemptPolicy``).
    public mutating func pairingBlocked(until: Duration?) { blockedUntil = until }

    /// The machine of the pairing that ``Action/preparePairing`` asked for.
    public mutating func pairingPrepared(_ machine: consuming PairingStateMachine, now: Duration) -> [Action] {
        guard case .preparing(let request) = state else { return [] }
        state = .pairing
        let actions: [PairingStateMachine.Action]
        if let request {
            actions = machine.packetReceived(request, now: now)
        } else {
            actions = machine.pairRequested(now: now)
        }
        pairing = consume machine
        return follow(actions)
    }

    /// The payload of a frame on channel 6 came.
    public mutating func packetReceived(_ bytes: [UInt8], now: Duration) -> [Action] {
        switch state {
        case .pairing: return follow(pairing?.packetReceived(bytes, now: now))
        case .open, .secured: return unexpected(bytes, now)
        case .encrypting, .preparing, .closed: return []
        }
    }

    public mutating func passkeyEntered(_ passkey: UInt32?, now: Duration) -> [Action] {
        follow(pairing?.passkeyEntered(passkey, now: now))
    }

    /// The controller asks for a key, as peripheral.
    public mutating func keyRequested(random: UInt64, diversifier: UInt16, now: Duration) -> [Action] {
        switch state {
        case .pairing: return follow(pairing?.keyRequested(random: random, diversifier: diversifier, now: now))
        case .open, .secured, .encrypting, .preparing:
            let key = bond?.key(random: random, diversifier: diversifier)
            if key != nil { state = .encrypting }
            return [.answerKeyRequest(key)]
        case .closed: return [.answerKeyRequest(nil)]
        }
    }

    /// Encryption Change or Key Refresh came.
    public mutating func encryptionChanged(_ status: HCIStatus, isEncrypted: Bool, now: Duration) -> [Action] {
        switch state {
        case .pairing: return follow(pairing?.encryptionChanged(status, isEncrypted: isEncrypted, now: now))
        case .encrypting:
            guard status == .success, isEncrypted else {
                state = .open
                return encryptionFailed(status)
            }
            state = .secured
            return settle(isAuthenticated: bond?.isAuthenticated ?? false)
        case .open, .preparing, .secured, .closed: return []
        }
    }

    public mutating func linkEnded() -> [Action] {
        let actions = follow(pairing?.linkEnded())
        state = .closed
        return actions
    }

    /// Early calls change nothing.
    public mutating func deadlineReached(now: Duration) -> [Action] {
        follow(pairing?.deadlineReached(now: now))
    }

    // MARK: Steps

    /// Encrypts, pairs, or asks the central to.
    private mutating func begin() -> [Action] {
        guard configuration.role == .central else {
            var requirements: PairingFeatures.Requirements = [.bonding, .secureConnections]
            if configuration.requiresAuthentication { requirements.insert(.authentication) }
            return [.send(.securityRequest(requirements))]
        }
        if let key = bond?.centralKey, canEncrypt {
            state = .encrypting
            return [.encrypt(key)]
        }
        state = .preparing(request: nil)
        return [.preparePairing]
    }

    /// Whether the stored keys make the link as secure as it has to be.
    private var canEncrypt: Bool {
        guard let bond, bond.centralKey != nil, protection == .open else { return false }
        return bond.isAuthenticated || !configuration.requiresAuthentication
    }

    /// A packet while nothing is under way.
    private mutating func unexpected(_ bytes: [UInt8], _ now: Duration) -> [Action] {
        let packet: SMPPacket
        do {
            packet = try SMPPacket.decode(bytes.span.bytes)
        } catch {
            if case .unknownCode(_) = error.reason { return [.send(.failed(.commandNotSupported))] }
            return [.send(.failed(.invalidParameters))]
        }
        switch (configuration.role, packet) {
        case (.central, .securityRequest(let wanted)):
            if let blockedUntil, now < blockedUntil { return [] }
            if hasLostBond { return [.send(.failed(.pairingNotSupported))] }
            // What the link already is need not be made again. Without a passkey it cannot be made better, whatever the
            // peer wants, which could have one pairing follow the other: it is told so, and need not wait for an answer.
            if protection == .authenticated { return [] }
            if protection == .encrypted, !configuration.requiresAuthentication {
                return wanted.contains(.authentication) ? [.send(.failed(.pairingNotSupported))] : []
            }
            guard configuration.takesPairing || canEncrypt else { return [.send(.failed(.pairingNotSupported))] }
            return begin()
        case (.peripheral, .pairingRequest):
            guard configuration.takesPairing else { return [.send(.failed(.pairingNotSupported))] }
            if let blockedUntil, now < blockedUntil { return [.send(.failed(.repeatedAttempts))] }
            state = .preparing(request: bytes)
            return [.preparePairing]
        case (_, .failed), (_, .keypress): return []
        default: return [.send(.failed(.commandNotSupported))]
        }
    }

    private mutating func encryptionFailed(_ status: HCIStatus) -> [Action] {
        // The link is up still when the peer has no key; with another key it is about to end (0x3D).
        guard status == .keyMissing || status == .integrityFailure else { return [.fail(.encryptionFailed(status))] }
        bond = nil
        hasLostBond = true
        return [.forgetBond]
    }

    private mutating func settle(isAuthenticated: Bool) -> [Action] {
        protection = isAuthenticated ? .authenticated : .encrypted
        return [.secured(protection)]
    }

    /// Nil: there is no pairing.
    private mutating func follow(_ actions: [PairingStateMachine.Action]?) -> [Action] {
        var result: [Action] = []
        for action in actions ?? [] {
            switch action {
            case .send(let packet): result.append(.send(packet))
            case .encrypt(let key): result.append(.encrypt(key))
            case .answerKeyRequest(let key): result.append(.answerKeyRequest(key))
            case .askForPasskey(let part): result.append(.askForPasskey(part))
            case .finish(let outcome):
                pairing = nil
                state = .secured
                if let stored = outcome.bond {
                    bond = stored
                    result.append(.storeBond(stored))
                }
                result += settle(isAuthenticated: outcome.isAuthenticated)
            case .fail(let failure):
                pairing = nil
                state = failure == .timedOut || failure == .linkEnded ? .closed : .open
                result.append(.fail(failure))
                if failure == .timedOut { result.append(.closeLink) }
            }
        }
        return result
    }
}
