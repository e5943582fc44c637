// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshCrypto

/// The second phase of Secure Connections (Core Specification 5.4, Vol 3 Part H §2.3.5.6).
extension PairingStateMachine {
    /// Each coordinate in the order of the wire.
    var ownWireKey: [UInt8] {
        let key = material.keyPair.publicKey.bytes
        return key[..<32].reversed() + key[32...].reversed()
    }

    private var ownX: [UInt8] { Array(ownWireKey.prefix(32)) }

    mutating func publicKeyReceived(_ wireKey: [UInt8]) throws(Problem) -> [Action] {
        var exchange = try current()
        guard let key = P256.PublicKey(wireKey[..<32].reversed() + wireKey[32...].reversed()),
            // The own key sent back would make the peer's values equal to the own ones. Its mirror image has the same
            // first coordinate, which is all that the values depend on.
            key.x != material.keyPair.publicKey.x
        else { throw .refused(.dhKeyCheckFailed) }
        let pair = material.keyPair
        guard let secret = try compute({ try P256.sharedSecret(pair, with: key) }) else {
            throw .refused(.dhKeyCheckFailed)
        }
        exchange.peerPublicKey = key
        exchange.secret = secret
        self.exchange = exchange
        let answer: [Action] = configuration.role == .peripheral ? [.send(.publicKey(ownWireKey))] : []
        return answer + (try prepareValues())
    }

    private var ownNonce: [UInt8] { material.nonces[exchange?.round ?? 0] }

    /// The bit of the passkey that this round is about, with the upper bit set; 0 without a passkey.
    private var roundBit: UInt8 {
        guard let exchange, exchange.method != .justWorks else { return 0 }
        return 0x80 | UInt8(passkey(of: exchange.method) >> UInt32(exchange.round) & 1)
    }

    private func ownConfirm() throws(Problem) -> [UInt8] {
        try secureConfirm(own: ownX, other: peerX, random: ownNonce)
    }

    private var peerX: [UInt8] { (exchange?.peerPublicKey?.x ?? []).reversed() }

    private func secureConfirm(own: [UInt8], other: [UInt8], random: [UInt8]) throws(Problem) -> [UInt8] {
        let bit = roundBit
        return try compute { try PairingCryptography.confirm(own: own, other: other, random: random, bit: bit) }
    }

    /// Begins the first round, and each further one.
    mutating func beginSecureValues() throws(Problem) -> [Action] {
        switch (try current().method, configuration.role) {
        // Only the responder commits itself to its value (§2.3.5.6.2).
        case (.justWorks, .peripheral):
            state = .waitingForRandom(peerConfirm: [])
            return [.send(.confirm(try ownConfirm()))]
        case (.justWorks, .central), (.passkey, .peripheral):
            state = .waitingForConfirm
            return []
        case (.passkey, .central):
            state = .waitingForConfirm
            return [.send(.confirm(try ownConfirm()))]
        }
    }

    mutating func secureConfirmReceived(_ value: [UInt8]) throws(Problem) -> [Action] {
        state = .waitingForRandom(peerConfirm: value)
        return [.send(configuration.role == .central ? .random(ownNonce) : .confirm(try ownConfirm()))]
    }

    mutating func secureRandomReceived(_ value: [UInt8], _ confirm: [UInt8]) throws(Problem) -> [Action] {
        var exchange = try current()
        let isCentral = configuration.role == .central
        // The initiator of Just Works has committed itself to nothing that could be compared.
        if isCentral || exchange.method != .justWorks {
            let expected = try secureConfirm(own: peerX, other: ownX, random: value)
            guard PairingCryptography.areEqual(expected, confirm) else { throw .refused(.confirmValueFailed) }
        }
        exchange.peerRandom = value
        let answer: [Action] = isCentral ? [] : [.send(.random(ownNonce))]
        let isLast = exchange.method == .justWorks || exchange.round == 19
        if !isLast { exchange.round += 1 }
        self.exchange = exchange
        return answer + (isLast ? try beginChecks() : try beginSecureValues())
    }

    // MARK: Checks (§2.3.5.6.5)

    private mutating func beginChecks() throws(Problem) -> [Action] {
        var exchange = try current()
        let (initiator, responder) =
            configuration.role == .central ? (ownNonce, exchange.peerRandom) : (exchange.peerRandom, ownNonce)
        let (secret, sides) = (exchange.secret, sides)
        let keys = try compute {
            try PairingCryptography.keys(
                secret: secret, initiatorRandom: initiator, responderRandom: responder, sides)
        }
        exchange.macKey = keys.macKey
        exchange.key = LongTermKey(
            key: PairingCryptography.shortened(keys.longTermKey, to: exchange.keySize), size: exchange.keySize)
        self.exchange = exchange
        state = .waitingForCheck
        return configuration.role == .central ? [.send(.dhKeyCheck(try ownCheck()))] : []
    }

    private func ownCheck() throws(Problem) -> [UInt8] {
        let exchange = try current()
        let first = (random: ownNonce, features: exchange.own, address: configuration.ownAddress)
        let second = (random: exchange.peerRandom, address: configuration.peerAddress)
        let passkey = passkey(of: exchange.method)
        return try compute {
            try PairingCryptography.check(macKey: exchange.macKey, first: first, second: second, passkey: passkey)
        }
    }

    private func peerCheck() throws(Problem) -> [UInt8] {
        let exchange = try current()
        let first = (random: exchange.peerRandom, features: exchange.peer, address: configuration.peerAddress)
        let second = (random: ownNonce, address: configuration.ownAddress)
        let passkey = passkey(of: exchange.method)
        return try compute {
            try PairingCryptography.check(macKey: exchange.macKey, first: first, second: second, passkey: passkey)
        }
    }

    mutating func checkReceived(_ value: [UInt8]) throws(Problem) -> [Action] {
        guard PairingCryptography.areEqual(try peerCheck(), value) else { throw .refused(.dhKeyCheckFailed) }
        if configuration.role == .central {
            state = .waitingForEncryption
            return [.encrypt(try current().key)]
        }
        state = .waitingForKeyRequest
        return [.send(.dhKeyCheck(try ownCheck()))]
    }
}
