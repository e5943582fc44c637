// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshCrypto
import Testing

struct CipherTests {
    // FIPS 197 appendix C.1; NIST SP 800-38A F.1.1; four blocks computed with pycryptodome.
    @Test(arguments: [
        (
            "000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff",
            "69c4e0d86a7b0430d8cdb78070b4c55a"
        ),
        (
            "2b7e151628aed2a6abf7158809cf4f3c", "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51",
            "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf"
        ),
        (
            "000102030405060708090a0b0c0d0e0f",
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031323334"
                + "35363738393a3b3c3d3e3f",
            "0a940bb5416ef045f1c39458c653ea5a07feef74e1d5036e900eee118e9492935be87e2e5b447c944b21c9af7756c0d803f2c3bdca"
                + "826bf082d7cfb035cdb8c1"
        ),
    ])
    func `AES with 128 bits, block by block`(key: String, plain: String, cipher: String) throws {
        #expect(try AES128.encrypt(hex(plain), key: hex(key)) == hex(cipher))
        #expect(try AES128.decrypt(hex(cipher), key: hex(key)) == hex(plain))
    }

    @Test func `nothing stays nothing`() throws {
        #expect(try AES128.encrypt([], key: hex("000102030405060708090a0b0c0d0e0f")) == [])
        #expect(try AES128.decrypt([], key: hex("000102030405060708090a0b0c0d0e0f")) == [])
    }

    @Test(arguments: [0, 1, 15, 17, 24, 32]) func `a key has 16 bytes`(count: Int) {
        let key = [UInt8](repeating: 1, count: count)
        let block = [UInt8](repeating: 0, count: 16)
        #expect(throws: CryptoError.invalidLength(.key, count: count)) { try AES128.encrypt(block, key: key) }
        #expect(throws: CryptoError.invalidLength(.key, count: count)) { try AES128.decrypt(block, key: key) }
    }

    @Test(arguments: [1, 15, 17, 31]) func `blocks are whole`(count: Int) {
        let key = [UInt8](repeating: 1, count: 16)
        let data = [UInt8](repeating: 0, count: count)
        #expect(throws: CryptoError.invalidLength(.data, count: count)) { try AES128.encrypt(data, key: key) }
        #expect(throws: CryptoError.invalidLength(.data, count: count)) { try AES128.decrypt(data, key: key) }
    }

    @Test func `errors say what was wrong`() {
        #expect("\(CryptoError.invalidLength(.key, count: 15))" == "a key of 15 bytes")
        #expect("\(CryptoError.invalidLength(.data, count: 3))" == "data of 3 bytes")
        #expect(
            "\(CryptoError.unavailable(missing: "libcrypto.so.3"))"
                == "OpenSSL 3 is needed and not installed (libcrypto.so.3 is missing)")
        #expect("\(CryptoError.failed(.aes128))" == "OpenSSL refuses AES-128")
    }
}
