// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The second phase of legacy pairing (Core Specification 5.4, Vol 3 Part H §2.3.5.5).
extension PairingStateMachine {
    private var temporaryKey: [UInt8] { PairingCryptography.temporaryKey(passkey(of: exchange?.method)) }

    /// 0 where no passkey is used.
    func passkey(of method: PairingMethod?) -> UInt32 {
        switch method {
        case .passkey: passkey ?? 0
        case .justWorks, nil: 0
        }
    }

    private func legacyConfirm(_ random: [UInt8]) throws(Problem) -> [UInt8] {
        let exchange = try current()
        let (temporaryKey, sides) = (temporaryKey, sides)
        return try compute {
            try PairingCryptography.legacyConfirm(
                temporaryKey: temporaryKey, random: random, request: exchange.request, response: exchange.response,
                sides)
        }
    }

    mutating func beginLegacyValues() throws(Problem) -> [Action] {
        state = .waitingForConfirm
        if configuration.role == .peripheral { return [] }
        return [.send(.confirm(try legacyConfirm(material.nonces[0])))]
    }

    mutating func legacyConfirmReceived(_ value: [UInt8]) throws(Problem) -> [Action] {
        let own = try legacyConfirm(material.nonces[0])
        // The own value sent back proves nothing.
        if value == own { throw .refused(.confirmValueFailed) }
        state = .waitingForRandom(peerConfirm: value)
        return [.send(configuration.role == .central ? .random(material.nonces[0]) : .confirm(own))]
    }

    mutating func legacyRandomReceived(_ value: [UInt8], _ confirm: [UInt8]) throws(Problem) -> [Action] {
        guard PairingCryptography.areEqual(try legacyConfirm(value), confirm) else {
            throw .refused(.confirmValueFailed)
        }
        var exchange = try current()
        let isCentral = configuration.role == .central
        let (own, temporaryKey) = (material.nonces[0], temporaryKey)
        let key = try compute {
            try PairingCryptography.shortTermKey(
                temporaryKey: temporaryKey, responderRandom: isCentral ? value : own,
                initiatorRandom: isCentral ? own : value)
        }
        exchange.key = LongTermKey(
            key: PairingCryptography.shortened(key, to: exchange.keySize), size: exchange.keySize)
        self.exchange = exchange
        state = isCentral ? .waitingForEncryption : .waitingForKeyRequest
        return isCentral ? [.encrypt(exchange.key)] : [.send(.random(own))]
    }
}
