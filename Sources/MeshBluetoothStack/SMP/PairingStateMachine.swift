// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshCrypto
import MeshWire

/// One pairing, of either side (Core Specification 5.4, Vol 3 Part H §2.3, Appendix C).
///
///     central, initiator                                       peripheral, responder
///
///     pairRequested                                            request: features agreed
///         │ request                                                │ response
///     waitingForResponse ── features agreed                        │
///         │                                                        │
///         ├─ legacy:  confirm ▶ waitingForConfirm ▶ random ▶ waitingForRandom ▶ short-term key
///         │                                                        │
///         └─ secure:  public key ▶ waitingForPublicKey             │
///                       ├─ Just Works: the responder's confirm, both random values
///                       ├─ passkey:    confirm and random of both, 20 times, a bit of the passkey in each
///                       └─ check ▶ waitingForCheck ▶ long-term key
///         │                                                        │
///     waitingForEncryption ◀── link encrypted with the new key ──▶ waitingForEncryption
///         │                                                        │
///     waitingForKeys ◀────────── keys of the responder ────────── waitingForKeys
///         └───────────────────── keys of the initiator ──────────────▶ both done
///
///     any state ── a check fails, the peer fails it, 30 s without a packet, the link ends ──▶ over
///
/// Random values, the key pair and keys to give away come in with ``Material``, so the same inputs give the same
/// packets. Numbers are never compared by people here, and nothing goes out of band. Left open by the specification,
/// and chosen: a public key that is no point of the curve, or is the own one (CVE-2020-26558), fails with the check's
/// reason, as other hosts do it; a key that comes a second time or was not agreed on is ignored; an identity that the
/// address of the link does not bear out is ignored, and the pairing goes on (§3.6.5 leaves open what becomes of it). A pairing that fails
/// after the link was encrypted leaves no bond (R32).
public struct PairingStateMachine: ~Copyable {
    public struct Configuration: Sendable {
        public var role: LinkRole
        /// The addresses that the link was made with.
        public var ownAddress: DeviceAddress
        public var peerAddress: DeviceAddress
        /// What this host is known by later: the address it connects with, unless that is a private one.
        public var identity: DeviceAddress
        /// `keyboardOnly`, `displayOnly` or `noInputNoOutput`.
        public var capability: PairingFeatures.Capability
        /// A pairing without a passkey is refused: somebody in the middle could have made it so.
        public var requiresAuthentication: Bool
        public var minimumKeySize: UInt8 = 16
        public var maximumKeySize: UInt8 = 16
        /// Legacy pairing, where the peer knows no other, is refused.
        public var requiresSecureConnections = false
        /// Offer Secure Connections.
        public var offersSecureConnections = true
        public var timeout: Duration = .seconds(30)

        public init(
            role: LinkRole, ownAddress: DeviceAddress, peerAddress: DeviceAddress, identity: DeviceAddress,
            capability: PairingFeatures.Capability, requiresAuthentication: Bool
        ) {
            precondition(capability != .displayYesNo && capability != .keyboardDisplay)
            self.role = role
            self.ownAddress = ownAddress
            self.peerAddress = peerAddress
            self.identity = identity
            self.capability = capability
            self.requiresAuthentication = requiresAuthentication
        }

        /// For a link of this host, whose address is `own`.
        public init(
            _ connection: ConnectionComplete, own: DeviceAddress, capability: PairingFeatures.Capability,
            requiresAuthentication: Bool
        ) {
            self.init(
                role: connection.role, ownAddress: connection.ownOnAir(own), peerAddress: connection.peerOnAir,
                identity: own, capability: capability, requiresAuthentication: requiresAuthentication)
        }
    }

    /// What must be random, and what is secret. Made anew for every pairing.
    public struct Material: Sendable {
        public var keyPair: P256.KeyPair
        /// At least 20 values of 16 random bytes.
        public var nonces: [[UInt8]]
        /// What legacy pairing gives to the peer, as peripheral.
        public var longTermKey: LongTermKey
        /// What resolves this host's private addresses; all zeros where it has none.
        public var resolvingKey: [UInt8]

        public init(
            keyPair: P256.KeyPair, nonces: [[UInt8]], longTermKey: LongTermKey,
            resolvingKey: [UInt8] = [UInt8](repeating: 0, count: 16)
        ) {
            precondition(nonces.count >= 20 && nonces.allSatisfy { $0.count == 16 })
            precondition(longTermKey.key.count == 16 && resolvingKey.count == 16)
            self.keyPair = keyPair
            self.nonces = nonces
            self.longTermKey = longTermKey
            self.resolvingKey = resolvingKey
        }
    }

    public enum Action: Sendable, Hashable {
        case send(SMPPacket)
        /// Encrypt the link, as central.
        case encrypt(LongTermKey)
        /// Answer the key request, as peripheral; nil: there is no such key.
        case answerKeyRequest(LongTermKey?)
        /// Ask for the passkey, or show the one that is given then.
        case askForPasskey(PairingMethod.OwnPart)
        case finish(PairingResult)
        case fail(PairingFailure)
    }

    /// What is waited for.
    enum State: Sendable, Equatable {
        case idle
        case waitingForResponse
        /// The person, or the settings. The packet is the peer's, who was faster.
        case waitingForPasskey(held: SMPPacket?)
        case waitingForConfirm
        case waitingForRandom(peerConfirm: [UInt8])
        case waitingForPublicKey
        case waitingForCheck
        /// As peripheral: the controller, which the central asked to encrypt.
        case waitingForKeyRequest
        case waitingForEncryption
        case waitingForKeys
        case over
    }

    let configuration: Configuration
    let material: Material
    var state = State.idle
    var deadline: Duration?
    var passkey: UInt32?
    var exchange: Exchange?
    var received = ReceivedKeys()

    /// What both sides have agreed on, and how far they are.
    struct Exchange: Sendable {
        /// The packets of 7 bytes, as they went over the air.
        var request: [UInt8]
        var response: [UInt8]
        var own: PairingFeatures
        var peer: PairingFeatures
        var method: PairingMethod
        var isSecure: Bool
        var keySize: UInt8
        var initiatorKeys: PairingFeatures.Keys
        var responderKeys: PairingFeatures.Keys
        /// 0...19 for a passkey of Secure Connections, else 0.
        var round = 0
        var peerPublicKey: P256.PublicKey?
        var secret: [UInt8] = []
        var macKey: [UInt8] = []
        var peerRandom: [UInt8] = []
        /// What encrypts the link.
        var key = LongTermKey(key: [])
    }

    /// What the peer gave.
    struct ReceivedKeys: Sendable {
        var longTermKey: [UInt8]?
        var identification: (diversifier: UInt16, random: UInt64)?
        var resolvingKey: [UInt8]?
        var identity: DeviceAddress?
    }

    /// `passkey` is the one that the settings know; else it is asked for when it is needed.
    public init(_ configuration: Configuration, material: Material, passkey: UInt32?) {
        self.configuration = configuration
        self.material = material
        self.passkey = passkey.flatMap { $0 <= 999_999 ? $0 : nil }
    }

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? { deadline }

    /// The pairing has ended, well or not.
    public var isOver: Bool { state == .over }

    // MARK: Inputs

    /// The central begins.
    public mutating func pairRequested(now: Duration) -> [Action] {
        guard state == .idle, configuration.role == .central else { return [] }
        state = .waitingForResponse
        return moved([.send(.pairingRequest(ownFeatures))], now)
    }

    /// The payload of a frame on channel 6 came.
    public mutating func packetReceived(_ bytes: [UInt8], now: Duration) -> [Action] {
        if state == .over { return [] }
        do {
            let packet = try SMPPacket.decode(bytes.span.bytes)
            return moved(try respond(packet), now)
        } catch let problem as Problem {
            return fail(problem)
        } catch let error as DecodeError {
            if case .unknownCode(_) = error.reason { return fail(.refused(.commandNotSupported)) }
            return fail(.refused(.invalidParameters))
        } catch {
            return fail(.refused(.unspecified))
        }
    }

    /// The passkey that was asked for; nil if there is none.
    public mutating func passkeyEntered(_ passkey: UInt32?, now: Duration) -> [Action] {
        guard case .waitingForPasskey(let held) = state else { return [] }
        guard let passkey, passkey <= 999_999 else { return fail(.refused(.passkeyEntryFailed)) }
        self.passkey = passkey
        return attempt(now) { machine throws(Problem) in
            let actions = try machine.goOnWithPasskey()
            guard let held else { return actions }
            return actions + (try machine.respond(held))
        }
    }

    /// The controller asks for a key, as peripheral.
    public mutating func keyRequested(random: UInt64, diversifier: UInt16, now: Duration) -> [Action] {
        guard state == .waitingForKeyRequest, random == 0, diversifier == 0, let exchange else {
            return [.answerKeyRequest(nil)]
        }
        state = .waitingForEncryption
        return moved([.answerKeyRequest(exchange.key)], now)
    }

    /// Encryption Change, or Key Refresh, came.
    public mutating func encryptionChanged(_ status: HCIStatus, isEncrypted: Bool, now: Duration) -> [Action] {
        guard state == .waitingForEncryption else { return [] }
        guard status == .success, isEncrypted else { return end(.encryptionFailed(status)) }
        return attempt(now) { machine throws(Problem) in try machine.beginKeys() }
    }

    /// The link has ended.
    public mutating func linkEnded() -> [Action] {
        state == .over ? [] : end(.linkEnded)
    }

    /// Early calls change nothing. After it no other pairing may begin on this link (§3.4).
    public mutating func deadlineReached(now: Duration) -> [Action] {
        guard let deadline, deadline <= now else { return [] }
        return end(.timedOut)
    }

    // MARK: Steps

    /// What ends a pairing on this side.
    enum Problem: Error {
        case refused(SMPFailureReason)
        /// A passkey was required, and the peer can do without only.
        case downgraded
        case peerFailed(SMPFailureReason)
    }

    mutating func attempt(
        _ now: Duration, _ step: (inout PairingStateMachine) throws(Problem) -> [Action]
    ) -> [Action] {
        do throws(Problem) {
            return moved(try step(&self), now)
        } catch {
            return fail(error)
        }
    }

    /// Every packet, sent or received, restarts the timer (§3.4).
    private mutating func moved(_ actions: [Action], _ now: Duration) -> [Action] {
        deadline = state == .over || state == .idle ? nil : now + configuration.timeout
        return actions
    }

    private mutating func fail(_ problem: Problem) -> [Action] {
        switch problem {
        case .peerFailed(let reason): end(.failedByPeer(reason))
        case .downgraded: [.send(.failed(.authenticationRequirements))] + end(.downgraded)
        case .refused(let reason): [.send(.failed(reason))] + end(.failedByHost(reason))
        }
    }

    private mutating func end(_ failure: PairingFailure) -> [Action] {
        state = .over
        deadline = nil
        return [.fail(failure)]
    }

    private mutating func respond(_ packet: SMPPacket) throws(Problem) -> [Action] {
        if case .failed(let reason) = packet {
            // Before anything has begun there is nothing to fail.
            if state == .idle { return [] }
            throw .peerFailed(reason)
        }
        switch (state, packet) {
        case (.idle, .pairingRequest(let features)) where configuration.role == .peripheral:
            return try agree(peerRequests: features, packet.bytes)
        case (.waitingForResponse, .pairingResponse(let features)):
            return try agree(peerResponds: features, packet.bytes)
        // A peripheral may ask for what is under way already; once is enough (§2.4.6).
        case (_, .securityRequest) where configuration.role == .central: return []
        case (.waitingForPasskey(nil), .confirm):
            state = .waitingForPasskey(held: packet)
            return []
        case (.waitingForPublicKey, .publicKey(let key)): return try publicKeyReceived(key)
        case (.waitingForConfirm, .confirm(let value)): return try confirmReceived(value)
        case (.waitingForRandom(let confirm), .random(let value)): return try randomReceived(value, confirm)
        case (.waitingForCheck, .dhKeyCheck(let value)): return try checkReceived(value)
        case (.waitingForKeys, _): return try keyReceived(packet)
        // Tells how far the other person is with typing; nothing depends on it.
        case (_, .keypress): return []
        case (_, .pairingRequest), (_, .securityRequest): throw .refused(.commandNotSupported)
        default: throw .refused(.unspecified)
        }
    }
}
