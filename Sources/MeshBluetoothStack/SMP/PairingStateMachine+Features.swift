// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The first phase: what both sides can do and want (Core Specification 5.4, Vol 3 Part H §2.3.1).
extension PairingStateMachine {
    /// What this host asks for. It asks for the protection of a passkey if it can use one.
    var ownFeatures: PairingFeatures {
        var requirements: PairingFeatures.Requirements = .bonding
        if configuration.offersSecureConnections { requirements.insert(.secureConnections) }
        if configuration.capability != .noInputNoOutput { requirements.insert(.authentication) }
        return PairingFeatures(
            capability: configuration.capability, requirements: requirements,
            maximumKeySize: configuration.maximumKeySize, initiatorKeys: [.encryption, .identity],
            responderKeys: [.encryption, .identity])
    }

    mutating func agree(peerResponds peer: PairingFeatures, _ response: [UInt8]) throws(Problem) -> [Action] {
        let own = ownFeatures
        // A response can only take away from what was asked for.
        guard own.initiatorKeys.isSuperset(of: peer.initiatorKeys), own.responderKeys.isSuperset(of: peer.responderKeys)
        else { throw .refused(.invalidParameters) }
        let exchange = try makeExchange(
            own: own, peer: peer, request: SMPPacket.pairingRequest(own).bytes, response: response,
            keys: (peer.initiatorKeys, peer.responderKeys))
        self.exchange = exchange
        if exchange.isSecure {
            state = .waitingForPublicKey
            return [.send(.publicKey(ownWireKey))]
        }
        return try prepareValues()
    }

    mutating func agree(peerRequests peer: PairingFeatures, _ request: [UInt8]) throws(Problem) -> [Action] {
        var own = ownFeatures
        own.initiatorKeys.formIntersection(peer.initiatorKeys)
        own.responderKeys.formIntersection(peer.responderKeys)
        let response = SMPPacket.pairingResponse(own)
        let exchange = try makeExchange(
            own: own, peer: peer, request: request, response: response.bytes,
            keys: (own.initiatorKeys, own.responderKeys))
        self.exchange = exchange
        if exchange.isSecure {
            state = .waitingForPublicKey
            return [.send(response)]
        }
        return [.send(response)] + (try prepareValues())
    }

    private func makeExchange(
        own: PairingFeatures, peer: PairingFeatures, request: [UInt8], response: [UInt8],
        keys: (initiator: PairingFeatures.Keys, responder: PairingFeatures.Keys)
    ) throws(Problem) -> Exchange {
        guard peer.maximumKeySize <= 16 else { throw .refused(.invalidParameters) }
        let size = min(own.maximumKeySize, peer.maximumKeySize)
        guard size >= max(7, configuration.minimumKeySize) else { throw .refused(.encryptionKeySize) }
        let isSecure = own.requirements.intersection(peer.requirements).contains(.secureConnections)
        if configuration.requiresSecureConnections, !isSecure { throw .refused(.authenticationRequirements) }
        // With Secure Connections one side's word is enough to go out of band (table 2.7), and this host has no such
        // data.
        if isSecure, peer.hasOutOfBandData { throw .refused(.outOfBandNotAvailable) }
        let method = PairingMethod.choose(own: own, peer: peer)
        if configuration.requiresAuthentication, method == .justWorks { throw .downgraded }
        // Both find the same long-term key, so none is given away (§2.4.2).
        let given: PairingFeatures.Keys = isSecure ? [.identity] : [.encryption, .identity]
        return Exchange(
            request: request, response: response, own: own, peer: peer, method: method, isSecure: isSecure,
            keySize: size, initiatorKeys: keys.initiator.intersection(given),
            responderKeys: keys.responder.intersection(given))
    }

    var sides: PairingSides {
        configuration.role == .central
            ? PairingSides(initiator: configuration.ownAddress, responder: configuration.peerAddress)
            : PairingSides(initiator: configuration.peerAddress, responder: configuration.ownAddress)
    }

    func current() throws(Problem) -> Exchange {
        guard let exchange else { throw .refused(.unspecified) }
        return exchange
    }

    // MARK: Passkey

    /// Begins to exchange values, as soon as the passkey is there if one is needed.
    mutating func prepareValues() throws(Problem) -> [Action] {
        guard case .passkey(let part) = try current().method, passkey == nil else { return try beginValues() }
        state = .waitingForPasskey(held: nil)
        return [.askForPasskey(part)]
    }

    mutating func goOnWithPasskey() throws(Problem) -> [Action] { try beginValues() }

    private mutating func beginValues() throws(Problem) -> [Action] {
        try current().isSecure ? try beginSecureValues() : try beginLegacyValues()
    }

    mutating func confirmReceived(_ value: [UInt8]) throws(Problem) -> [Action] {
        try current().isSecure ? try secureConfirmReceived(value) : try legacyConfirmReceived(value)
    }

    mutating func randomReceived(_ value: [UInt8], _ confirm: [UInt8]) throws(Problem) -> [Action] {
        try current().isSecure ? try secureRandomReceived(value, confirm) : try legacyRandomReceived(value, confirm)
    }

    /// What OpenSSL computes. That it fails, for lack of memory, ends the pairing.
    func compute<Value>(_ function: () throws -> Value) throws(Problem) -> Value {
        do {
            return try function()
        } catch {
            throw .refused(.unspecified)
        }
    }
}
