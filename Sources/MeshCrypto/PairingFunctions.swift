// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The functions that pairing over Bluetooth LE is made of (Core Specification 5.4, Vol 3 Part H §2.2), in the notation
/// of the specification: the most significant byte first. On the wire everything is the other way round.
///
/// Every argument has the length that the specification gives it; another one is `invalidLength`, or gives a value that
/// fits nothing.
public enum PairingFunctions {
    /// The random address hash: 3 bytes of the resolving key and the 3 random bytes of an address (§2.2.2).
    public static func ah(key: [UInt8], random: [UInt8]) throws(CryptoError) -> [UInt8] {
        try require(random, 3)
        let block = [UInt8](repeating: 0, count: 13) + random
        return Array(try AES128.encrypt(block, key: key).suffix(3))
    }

    /// The confirm value of legacy pairing (§2.2.3). The requests have 7 bytes, the addresses 6.
    public static func c1(
        key: [UInt8], random: [UInt8], request: [UInt8], response: [UInt8], initiator: (kind: UInt8, address: [UInt8]),
        responder: (kind: UInt8, address: [UInt8])
    ) throws(CryptoError) -> [UInt8] {
        try require(random, 16)
        let p1 = response + request + [responder.kind, initiator.kind]
        let p2 = [0, 0, 0, 0] + initiator.address + responder.address
        try require(p1, 16)
        try require(p2, 16)
        let first = try AES128.encrypt(xor(random, p1), key: key)
        return try AES128.encrypt(xor(first, p2), key: key)
    }

    /// The short-term key of legacy pairing, of the responder's and the initiator's random value (§2.2.4).
    public static func s1(key: [UInt8], responder: [UInt8], initiator: [UInt8]) throws(CryptoError) -> [UInt8] {
        try require(responder, 16)
        try require(initiator, 16)
        return try AES128.encrypt(Array(responder[8...] + initiator[8...]), key: key)
    }

    /// The confirm value of Secure Connections (§2.2.6): `u` and `v` are first coordinates.
    public static func f4(u: [UInt8], v: [UInt8], x: [UInt8], z: UInt8) throws(CryptoError) -> [UInt8] {
        try require(u, 32)
        try require(v, 32)
        return try AESCMAC.code(for: u + v + [z], key: x)
    }

    /// The keys of Secure Connections (§2.2.7): of the shared secret, both random values, and both addresses of 7
    /// bytes, the kind first.
    public static func f5(
        secret: [UInt8], n1: [UInt8], n2: [UInt8], a1: [UInt8], a2: [UInt8]
    ) throws(CryptoError) -> (macKey: [UInt8], longTermKey: [UInt8]) {
        try require(secret, 32)
        let key = try AESCMAC.code(for: secret, key: f5Salt)
        // The counter, "btle", the values, and the length of the result in bits.
        let tail = [0x62, 0x74, 0x6C, 0x65] + n1 + n2 + a1 + a2 + [0x01, 0x00]
        try require(tail, 52)
        return (try AESCMAC.code(for: [0] + tail, key: key), try AESCMAC.code(for: [1] + tail, key: key))
    }

    /// The check value of Secure Connections (§2.2.8).
    public static func f6(
        macKey: [UInt8], n1: [UInt8], n2: [UInt8], r: [UInt8], capabilities: [UInt8], a1: [UInt8], a2: [UInt8]
    ) throws(CryptoError) -> [UInt8] {
        let message = n1 + n2 + r + capabilities + a1 + a2
        try require(message, 65)
        return try AESCMAC.code(for: message, key: macKey)
    }

    /// The number to compare of Secure Connections (§2.2.9); people see its last six digits.
    public static func g2(u: [UInt8], v: [UInt8], x: [UInt8], y: [UInt8]) throws(CryptoError) -> UInt32 {
        try require(u, 32)
        try require(v, 32)
        try require(y, 16)
        return try AESCMAC.code(for: u + v + y, key: x).suffix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// §2.2.7
    private static let f5Salt: [UInt8] = [
        0x6C, 0x88, 0x83, 0x91, 0xAA, 0xF5, 0xA5, 0x38, 0x60, 0x37, 0x0B, 0xDB, 0x5A, 0x60, 0x83, 0xBE,
    ]

    private static func xor(_ one: [UInt8], _ other: [UInt8]) -> [UInt8] { zip(one, other).map { $0 ^ $1 } }

    private static func require(_ bytes: [UInt8], _ count: Int) throws(CryptoError) {
        guard bytes.count == count else { throw .invalidLength(.data, count: bytes.count) }
    }
}
