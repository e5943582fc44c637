// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import COpenSSL

/// A SHA-256 digest of data that comes in pieces, such as a file's.
public struct SHA256Stream: ~Copyable {
    private let openSSL: UnsafePointer<mh_crypto>
    private let context: OpaquePointer

    /// The digest of nothing yet.
    public init() throws(CryptoError) {
        let library = try OpenSSL.library()
        let begun = try Self.begin(library.pointee)
        openSSL = library
        context = begun
    }

    private static func begin(_ openSSL: mh_crypto) throws(CryptoError) -> OpaquePointer {
        guard let context = openSSL.EVP_MD_CTX_new() else { throw .failed(.sha256) }
        guard openSSL.EVP_DigestInit_ex(context, openSSL.EVP_sha256(), nil) == 1 else {
            openSSL.EVP_MD_CTX_free(context)
            throw .failed(.sha256)
        }
        return context
    }

    deinit {
        openSSL.pointee.EVP_MD_CTX_free(context)
    }

    /// Takes the next piece.
    public mutating func append(_ data: RawSpan) throws(CryptoError) {
        try data.withBytes { (bytes, count) throws(CryptoError) in
            guard openSSL.pointee.EVP_DigestUpdate(context, bytes, count) == 1 else { throw .failed(.sha256) }
        }
    }

    /// The digest of all that was taken.
    public consuming func finish() throws(CryptoError) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: SHA256.byteCount)
        guard openSSL.pointee.EVP_DigestFinal_ex(context, &digest, nil) == 1 else { throw .failed(.sha256) }
        return digest
    }
}
