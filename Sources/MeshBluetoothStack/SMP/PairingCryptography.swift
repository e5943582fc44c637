// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshCrypto

/// The functions of pairing with values in the order of the wire.
enum PairingCryptography {
    /// A side's address as c1 takes it.
    private static func part(_ address: DeviceAddress) -> (kind: UInt8, address: [UInt8]) {
        (address.kind.rawValue, address.wireBytes.reversed())
    }

    /// A side's address as f5 and f6 take it: the kind first, then the address as people write it.
    private static func longForm(_ address: DeviceAddress) -> [UInt8] {
        [address.kind.rawValue] + address.wireBytes.reversed()
    }

    static func legacyConfirm(
        temporaryKey: [UInt8], random: [UInt8], request: [UInt8], response: [UInt8], _ sides: PairingSides
    ) throws(CryptoError) -> [UInt8] {
        try PairingFunctions.c1(
            key: temporaryKey.reversed(), random: random.reversed(), request: request.reversed(),
            response: response.reversed(), initiator: part(sides.initiator), responder: part(sides.responder)
        ).reversed()
    }

    static func shortTermKey(
        temporaryKey: [UInt8], responderRandom: [UInt8], initiatorRandom: [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        try PairingFunctions.s1(
            key: temporaryKey.reversed(), responder: responderRandom.reversed(), initiator: initiatorRandom.reversed()
        ).reversed()
    }

    /// The confirm value of one side, whose first coordinate is `own`.
    static func confirm(own: [UInt8], other: [UInt8], random: [UInt8], bit: UInt8) throws(CryptoError) -> [UInt8] {
        try PairingFunctions.f4(u: own.reversed(), v: other.reversed(), x: random.reversed(), z: bit).reversed()
    }

    /// `secret` is in the notation of the specification, as the agreement gives it.
    static func keys(
        secret: [UInt8], initiatorRandom: [UInt8], responderRandom: [UInt8], _ sides: PairingSides
    ) throws(CryptoError) -> (macKey: [UInt8], longTermKey: [UInt8]) {
        let keys = try PairingFunctions.f5(
            secret: secret, n1: initiatorRandom.reversed(), n2: responderRandom.reversed(),
            a1: longForm(sides.initiator), a2: longForm(sides.responder))
        return (keys.macKey.reversed(), keys.longTermKey.reversed())
    }

    /// The check value of the side whose random value, capabilities and address come first.
    static func check(
        macKey: [UInt8], first: (random: [UInt8], features: PairingFeatures, address: DeviceAddress),
        second: (random: [UInt8], address: DeviceAddress), passkey: UInt32
    ) throws(CryptoError) -> [UInt8] {
        try PairingFunctions.f6(
            macKey: macKey.reversed(), n1: first.random.reversed(), n2: second.random.reversed(),
            r: temporaryKey(passkey).reversed(), capabilities: first.features.checkInput, a1: longForm(first.address),
            a2: longForm(second.address)
        ).reversed()
    }

    /// A passkey in 16 bytes in the order of the wire (§2.3.5.3).
    static func temporaryKey(_ passkey: UInt32) -> [UInt8] {
        (0..<16).map { $0 < 4 ? UInt8(truncatingIfNeeded: passkey >> (8 * $0)) : 0 }
    }

    /// A key with its upper bytes zero, as both sides have agreed (§2.3.4).
    static func shortened(_ key: [UInt8], to size: UInt8) -> [UInt8] {
        key.enumerated().map { $0.offset < Int(size) ? $0.element : 0 }
    }

    /// Whether two secrets are equal; how long it takes tells nothing of where they differ.
    static func areEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one.count == other.count && zip(one, other).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
    }
}

/// The addresses that a link was made with, by role; not the identities behind them.
struct PairingSides: Sendable {
    var initiator: DeviceAddress
    var responder: DeviceAddress
}
