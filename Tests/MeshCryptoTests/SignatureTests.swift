// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshCrypto
import Testing

struct SignatureTests {
    // RFC 8032 §7.1, tests 1 to 3; the last two were made with PyNaCl from the seed 00 01 … 1f.
    static let vectors: [(key: String, message: [UInt8], signature: String)] = [
        (
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", [],
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595b"
                + "be24655141438e7a100b"
        ),
        (
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", hex("72"),
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb430"
                + "2aeeb00d291612bb0c00"
        ),
        (
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", hex("af82"),
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716e"
                + "d28dc027beceea1ec40a"
        ),
        (
            "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8", [],
            "9ca53579530654d5c3df77089ef45eda613e2fedf670e96bedac4639504e5845ef4b95d5793077233dd16817b2532e9c5525872a73a4"
                + "ad74b759369a9e05c102"
        ),
        (
            "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",
            (0..<100).map { $0.isMultiple(of: 2) ? 0 : 0xFF },
            "ab6a7d44ae5d1651a9a61855b4dd8ab745b28a13332556b9c08843582b80a2a7d27b7e8de60c9aad33ab27950f401da173756db916a8"
                + "39c1f24aa9b46f7c0603"
        ),
    ]

    @Test(arguments: vectors)
    func `a signature is for one message of one owner`(key: String, message: [UInt8], signature: String) throws {
        #expect(try Ed25519.isValid(signature: hex(signature), of: message, publicKey: hex(key)))
        #expect(try !Ed25519.isValid(signature: hex(signature), of: message + [0], publicKey: hex(key)))
        for bit in stride(from: 0, to: 512, by: 37) {
            var changed = hex(signature)
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(try !Ed25519.isValid(signature: changed, of: message, publicKey: hex(key)), "bit \(bit)")
        }
        for bit in stride(from: 0, to: 256, by: 37) {
            var other = hex(key)
            other[bit / 8] ^= 1 << (bit % 8)
            #expect(try !Ed25519.isValid(signature: hex(signature), of: message, publicKey: other), "bit \(bit)")
        }
    }

    @Test func `bytes that are no key have signed nothing`() throws {
        // Its y is 2, and no point of the curve has that.
        let key = [2] + [UInt8](repeating: 0, count: 31)
        let signature = [UInt8](repeating: 0, count: 64)
        #expect(try !Ed25519.isValid(signature: signature, of: [], publicKey: key))
    }

    @Test func `keys have 32 bytes and signatures 64`() {
        let key = hex(Self.vectors[0].key)
        #expect(throws: CryptoError.invalidLength(.key, count: 31)) {
            try Ed25519.isValid(signature: hex(Self.vectors[0].signature), of: [], publicKey: Array(key.dropLast()))
        }
        #expect(throws: CryptoError.invalidLength(.signature, count: 65)) {
            try Ed25519.isValid(signature: hex(Self.vectors[0].signature) + [0], of: [], publicKey: key)
        }
        #expect(throws: CryptoError.invalidLength(.signature, count: 0)) {
            try Ed25519.isValid(signature: [], of: [], publicKey: key)
        }
    }
}
