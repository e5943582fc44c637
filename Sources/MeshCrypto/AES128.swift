// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import COpenSSL

/// AES with keys of 128 bits (FIPS 197), block by block and without padding: the mode ECB (NIST SP 800-38A), which hides
/// nothing of equal blocks. It is what protocols ask for that are what they are.
public enum AES128 {
    /// How many bytes a block has, and a key.
    public static let blockByteCount = 16

    /// Encrypts a whole number of blocks with a key of 16 bytes.
    public static func encrypt(_ blocks: RawSpan, key: RawSpan) throws(CryptoError) -> [UInt8] {
        try run(blocks, key, encrypts: true)
    }

    /// Encrypts a whole number of blocks with a key of 16 bytes.
    public static func encrypt(_ blocks: [UInt8], key: [UInt8]) throws(CryptoError) -> [UInt8] {
        try run(blocks.span.bytes, key.span.bytes, encrypts: true)
    }

    /// Decrypts a whole number of blocks with a key of 16 bytes.
    public static func decrypt(_ blocks: RawSpan, key: RawSpan) throws(CryptoError) -> [UInt8] {
        try run(blocks, key, encrypts: false)
    }

    /// Decrypts a whole number of blocks with a key of 16 bytes.
    public static func decrypt(_ blocks: [UInt8], key: [UInt8]) throws(CryptoError) -> [UInt8] {
        try run(blocks.span.bytes, key.span.bytes, encrypts: false)
    }

    private static func run(_ blocks: RawSpan, _ key: RawSpan, encrypts: Bool) throws(CryptoError) -> [UInt8] {
        let openSSL = try OpenSSL.library()
        return try key.withBytes { (keyBytes, keyCount) throws(CryptoError) in
            guard keyCount == blockByteCount else { throw .invalidLength(.key, count: keyCount) }
            return try blocks.withBytes { (bytes, count) throws(CryptoError) in
                // `EVP_CipherUpdate` counts in Int32.
                guard count.isMultiple(of: blockByteCount), let length = Int32(exactly: count) else {
                    throw .invalidLength(.data, count: count)
                }
                if count == 0 { return [] }
                guard let context = openSSL.pointee.EVP_CIPHER_CTX_new() else { throw .failed(.aes128) }
                defer { openSSL.pointee.EVP_CIPHER_CTX_free(context) }
                var result = [UInt8](repeating: 0, count: count)
                var written: Int32 = 0
                var rest: Int32 = 0
                guard
                    openSSL.pointee.EVP_CipherInit_ex2(
                        context, openSSL.pointee.EVP_aes_128_ecb(), keyBytes, nil, encrypts ? 1 : 0, nil) == 1,
                    openSSL.pointee.EVP_CIPHER_CTX_set_padding(context, 0) == 1,
                    openSSL.pointee.EVP_CipherUpdate(context, &result, &written, bytes, length) == 1,
                    // Without padding it writes nothing, and is what finds blocks that are not whole.
                    openSSL.pointee.EVP_CipherFinal_ex(context, nil, &rest) == 1, written == length
                else { throw .failed(.aes128) }
                return result
            }
        }
    }
}
