// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshCrypto
import Testing

/// Published sample data: Core Specification 5.4 Vol 3 Part H §2.2 and Appendix D, Vol 2 Part G §7.1.2, RFC 4493 §4.
struct PairingFunctionTests {
    // RFC 4493 §4; Part H D.1.
    @Test(arguments: [
        (0, "bb1d6929e95937287fa37d129b756746"), (16, "070a16b46b4d4144f79bdd9dd04a287c"),
        (40, "dfa66747de9ae63030ca32611497c827"), (64, "51f0bebf7e3b9d92fc49741779363cfe"),
    ])
    func `AES-CMAC`(count: Int, code: String) throws {
        let message = hex(
            "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
                + "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710")
        let key = hex("2b7e151628aed2a6abf7158809cf4f3c")
        #expect(try AESCMAC.code(for: Array(message.prefix(count)), key: key) == hex(code))
    }

    @Test(arguments: [0, 15, 17]) func `a key of a code has 16 bytes`(count: Int) {
        let key = [UInt8](repeating: 0, count: count)
        #expect(throws: CryptoError.invalidLength(.key, count: count)) { try AESCMAC.code(for: [1], key: key) }
    }

    // Part H §2.2.3, §2.2.4.
    @Test func `confirm value and short-term key of legacy pairing`() throws {
        let zero = [UInt8](repeating: 0, count: 16)
        let confirm = try PairingFunctions.c1(
            key: zero, random: hex("5783d52156ad6f0e6388274ec6702ee0"), request: hex("07071000000101"),
            response: hex("05000800000302"), initiator: (1, hex("a1a2a3a4a5a6")), responder: (0, hex("b1b2b3b4b5b6")))
        #expect(confirm == hex("1e1e3fef878988ead2a74dc5bef13b86"))
        let key = try PairingFunctions.s1(
            key: zero, responder: hex("000f0e0d0c0b0a091122334455667788"),
            initiator: hex("010203040506070899aabbccddeeff00"))
        #expect(key == hex("9a1fe1f0e8b0f49b5b4216ae796da062"))
    }

    // Part H D.7: the address 70:81:94:0D:FB:AA.
    @Test func `hash of a private address`() throws {
        let key = hex("ec0234a357c8ad05341010a60a397d9b")
        #expect(try PairingFunctions.ah(key: key, random: hex("708194")) == hex("0dfbaa"))
    }

    private let u = hex("20b003d2f297be2c5e2c83a7e9f9a5b9eff49111acf4fddbcc0301480e359de6")
    private let v = hex("55188b3d32f6bb9a900afcfbeed4e72a59cb9ac2f19d7cfb6b4fdd49f47fc5fd")
    private let n1 = hex("d5cb8454d177733effffb2ec712baeab")
    private let n2 = hex("a6e8e7cc25a75f6e216583f7ff3dc4cf")
    private let a1 = hex("0056123737bfce")
    private let a2 = hex("00a713702dcfc1")
    private let secret = hex("ec0234a357c8ad05341010a60a397d9b99796b13b4f866f1868d34f373bfa698")

    // Part H D.2 to D.5.
    @Test func `functions of Secure Connections`() throws {
        #expect(
            try PairingFunctions.f4(u: u, v: v, x: n1, z: 0) == hex("f2c916f107a9bd1cf1eda1bea974872d"))
        let keys = try PairingFunctions.f5(secret: secret, n1: n1, n2: n2, a1: a1, a2: a2)
        #expect(keys.macKey == hex("2965f176a1084a02fd3f6a20ce636e20"))
        #expect(keys.longTermKey == hex("6986791169d7cd23980522b594750a38"))
        let check = try PairingFunctions.f6(
            macKey: keys.macKey, n1: n1, n2: n2, r: hex("12a3343bb453bb5408da42d20c2d0fc8"),
            capabilities: hex("010102"), a1: a1, a2: a2)
        #expect(check == hex("e3c473989cd0e8c5d26c0b09da958f61"))
        #expect(try PairingFunctions.g2(u: u, v: v, x: n1, y: n2) == 0x2f9e_d5ba)
    }

    // Vol 2 Part G §7.1.2.1, first set.
    private let privateA = hex("3f49f6d4a3c55f3874c9b3e3d2103f504aff607beb40b7995899b8a6cd3c1abd")
    private let privateB = hex("55188b3d32f6bb9a900afcfbeed4e72a59cb9ac2f19d7cfb6b4fdd49f47fc5fd")
    private let publicA = hex(
        "20b003d2f297be2c5e2c83a7e9f9a5b9eff49111acf4fddbcc0301480e359de6"
            + "dc809c49652aeb6d63329abf5a52155c766345c28fed3024741c8ed01589d28b")
    private let publicB = hex(
        "1ea1f0f01faf1d9609592284f19e4c0047b58afd8615a69f559077b22faaa190"
            + "4c55f33e429dad377356703a9ab85160472d1130e28e36765f89aff915b1214a")

    @Test func `both sides of an agreement on P-256 find the published secret`() throws {
        let (keyA, keyB) = try (#require(P256.PublicKey(publicA)), #require(P256.PublicKey(publicB)))
        let a = try #require(P256.KeyPair(privateKey: privateA, publicKey: keyA))
        let b = try #require(P256.KeyPair(privateKey: privateB, publicKey: keyB))
        #expect(try P256.sharedSecret(a, with: keyB) == secret)
        #expect(try P256.sharedSecret(b, with: keyA) == secret)
    }

    @Test func `new key pairs differ and agree`() throws {
        let (one, other) = try (P256.KeyPair.generate(), P256.KeyPair.generate())
        #expect(one.publicKey != other.publicKey)
        let secret = try P256.sharedSecret(one, with: other.publicKey)
        #expect(secret != nil)
        #expect(try P256.sharedSecret(other, with: one.publicKey) == secret)
    }

    @Test func `a point off the curve is refused`() throws {
        let pair = try P256.KeyPair.generate()
        var moved = publicA
        moved[63] ^= 1
        for bytes in [moved, [UInt8](repeating: 0, count: 64), [UInt8](repeating: 0xFF, count: 64)] {
            let key = try #require(P256.PublicKey(bytes))
            #expect(try P256.sharedSecret(pair, with: key) == nil)
        }
        // CVE-2018-5383: the second coordinate set to 0.
        let invalid = try #require(P256.PublicKey(Array(publicA.prefix(32)) + [UInt8](repeating: 0, count: 32)))
        #expect(try P256.sharedSecret(pair, with: invalid) == nil)
    }

    @Test func `keys of another length are no keys`() throws {
        #expect(P256.PublicKey([UInt8](repeating: 1, count: 63)) == nil)
        let key = try #require(P256.PublicKey(publicA))
        #expect(P256.KeyPair(privateKey: [1], publicKey: key) == nil)
    }
}
