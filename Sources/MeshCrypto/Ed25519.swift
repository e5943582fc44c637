// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import COpenSSL

/// Signatures on Edwards25519 (RFC 8032).
public enum Ed25519 {
    /// How many bytes a public key has.
    public static let publicKeyByteCount = 32
    /// How many bytes a signature has.
    public static let signatureByteCount = 64

    /// Whether the owner of a public key of 32 bytes made a signature of 64 bytes for `message`. False for bytes that
    /// are no key, too: anybody can send those.
    public static func isValid(
        signature: RawSpan, of message: RawSpan, publicKey: RawSpan
    ) throws(CryptoError) -> Bool {
        let openSSL = try OpenSSL.library()
        // What is wrong with a peer's bytes stays in this thread's list of errors otherwise.
        defer { openSSL.pointee.ERR_clear_error() }
        let key = try publicKey.withBytes { (bytes, count) throws(CryptoError) in
            guard count == publicKeyByteCount else { throw .invalidLength(.key, count: count) }
            return openSSL.pointee.EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, bytes, count)
        }
        guard let key else { throw .failed(.ed25519) }
        defer { openSSL.pointee.EVP_PKEY_free(key) }
        guard let context = openSSL.pointee.EVP_MD_CTX_new() else { throw .failed(.ed25519) }
        defer { openSSL.pointee.EVP_MD_CTX_free(context) }
        guard openSSL.pointee.EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1 else { throw .failed(.ed25519) }
        return try signature.withBytes { (signatureBytes, signatureCount) throws(CryptoError) in
            guard signatureCount == signatureByteCount else { throw .invalidLength(.signature, count: signatureCount) }
            return try message.withBytes { (bytes, count) throws(CryptoError) in
                openSSL.pointee.EVP_DigestVerify(context, signatureBytes, signatureCount, bytes, count) == 1
            }
        }
    }

    /// Whether the owner of a public key of 32 bytes made a signature of 64 bytes for `message`.
    public static func isValid(
        signature: [UInt8], of message: [UInt8], publicKey: [UInt8]
    ) throws(CryptoError) -> Bool {
        try isValid(signature: signature.span.bytes, of: message.span.bytes, publicKey: publicKey.span.bytes)
    }
}
