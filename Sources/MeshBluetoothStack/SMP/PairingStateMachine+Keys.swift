// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The third phase: each side gives its keys, the responder first (Core Specification 5.4, Vol 3 Part H §2.4.3,
/// §3.6.1).
extension PairingStateMachine {
    /// The link is encrypted.
    mutating func beginKeys() throws(Problem) -> [Action] {
        state = .waitingForKeys
        let given: [Action] = configuration.role == .peripheral ? try ownKeys() : []
        return given + (try finishIfComplete())
    }

    mutating func keyReceived(_ packet: SMPPacket) throws(Problem) -> [Action] {
        let wanted = try peerKeys
        switch packet {
        case .encryptionInformation(let key) where wanted.contains(.encryption):
            // A key that everybody knows protects nothing.
            if key.allSatisfy({ $0 == 0 }) { throw .refused(.invalidParameters) }
            received.longTermKey = received.longTermKey ?? key
        case .centralIdentification(let diversifier, let random) where wanted.contains(.encryption):
            received.identification = received.identification ?? (diversifier, random)
        case .identityInformation(let key) where wanted.contains(.identity):
            received.resolvingKey = received.resolvingKey ?? key
        case .identityAddress(let address) where wanted.contains(.identity):
            // Only a public or a static random address is an identity (§3.6.5).
            guard address.kind == .public || address.isStaticRandom else { throw .refused(.invalidParameters) }
            received.identity = received.identity ?? address
        case .encryptionInformation, .centralIdentification, .identityInformation, .identityAddress,
            .signingInformation:
            return []
        case .securityRequest, .keypress: return []
        case .pairingRequest, .pairingResponse, .confirm, .random, .failed, .publicKey, .dhKeyCheck:
            throw .refused(.unspecified)
        }
        return try finishIfComplete()
    }

    private var peerKeys: PairingFeatures.Keys {
        get throws(Problem) {
            let exchange = try current()
            return configuration.role == .central ? exchange.responderKeys : exchange.initiatorKeys
        }
    }

    private func hasAll(_ keys: PairingFeatures.Keys) -> Bool {
        let hasEncryption = received.longTermKey != nil && received.identification != nil
        let hasIdentity = received.resolvingKey != nil && received.identity != nil
        return (!keys.contains(.encryption) || hasEncryption) && (!keys.contains(.identity) || hasIdentity)
    }

    private func ownKeys() throws(Problem) -> [Action] {
        let exchange = try current()
        let keys = configuration.role == .central ? exchange.initiatorKeys : exchange.responderKeys
        var actions: [Action] = []
        if keys.contains(.encryption) {
            let key = givenKey(exchange.keySize)
            actions += [
                .send(.encryptionInformation(key.key)),
                .send(.centralIdentification(diversifier: key.diversifier, random: key.random)),
            ]
        }
        if keys.contains(.identity) {
            actions += [
                .send(.identityInformation(material.resolvingKey)), .send(.identityAddress(configuration.identity)),
            ]
        }
        return actions
    }

    /// The key that this host gives away, as short as agreed.
    private func givenKey(_ size: UInt8) -> LongTermKey {
        var key = material.longTermKey
        key.key = PairingCryptography.shortened(key.key, to: size)
        key.size = size
        return key
    }

    private mutating func finishIfComplete() throws(Problem) -> [Action] {
        guard hasAll(try peerKeys) else { return [] }
        let given: [Action] = configuration.role == .central ? try ownKeys() : []
        let exchange = try current()
        state = .over
        let isBonded = exchange.own.requirements.intersection(exchange.peer.requirements).contains(.bonding)
        let outcome = PairingResult(
            bond: isBonded ? bond(exchange) : nil, method: exchange.method, isSecureConnections: exchange.isSecure)
        return given + [.finish(outcome)]
    }

    private func bond(_ exchange: Exchange) -> Bond {
        let isCentral = configuration.role == .central
        var ownKey: LongTermKey?
        var peerKey: LongTermKey?
        if exchange.isSecure {
            (ownKey, peerKey) = (exchange.key, exchange.key)
        } else {
            // Each side's key is for the links on which that side is the peripheral (§2.4.4).
            let isGiven = (isCentral ? exchange.initiatorKeys : exchange.responderKeys).contains(.encryption)
            ownKey = isGiven ? givenKey(exchange.keySize) : nil
            if let key = received.longTermKey, let identification = received.identification {
                peerKey = LongTermKey(
                    key: key, random: identification.random, diversifier: identification.diversifier,
                    size: exchange.keySize)
            }
        }
        let (identity, resolvingKey) = provenIdentity
        return Bond(
            peer: identity, peerResolvingKey: resolvingKey, centralKey: peerKey, peripheralKey: ownKey,
            isAuthenticated: exchange.method != .justWorks,
            isSecureConnections: exchange.isSecure)
    }

    /// What the peer is known by from here on, and the key of its private addresses. Anybody can say that it is another: an
    /// identity counts if it is the address that the link was made with, or if its key made that address.
    private var provenIdentity: (DeviceAddress, resolvingKey: [UInt8]?) {
        let onAir = configuration.peerAddress
        // A key of zeros says that the device has no private addresses.
        guard let identity = received.identity, let key = received.resolvingKey, !key.allSatisfy({ $0 == 0 }) else {
            return (onAir, nil)
        }
        if identity == onAir { return (onAir, key) }
        // A hash that cannot be computed proves nothing.
        let isProven = (try? ResolvableAddress.matches(onAir, key: key)) ?? false
        return isProven ? (identity, key) : (onAir, nil)
    }
}
