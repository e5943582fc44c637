// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import COpenSSL

/// SHA-256 (FIPS 180-4).
public enum SHA256 {
    /// How many bytes a digest has.
    public static let byteCount = 32

    /// The digest of `data`.
    public static func digest(of data: RawSpan) throws(CryptoError) -> [UInt8] {
        let openSSL = try OpenSSL.library()
        return try data.withBytes { (bytes, count) throws(CryptoError) in
            var digest = [UInt8](repeating: 0, count: byteCount)
            guard openSSL.pointee.EVP_Digest(bytes, count, &digest, nil, openSSL.pointee.EVP_sha256(), nil) == 1 else {
                throw .failed(.sha256)
            }
            return digest
        }
    }

    /// The digest of `data`.
    public static func digest(of data: [UInt8]) throws(CryptoError) -> [UInt8] {
        try digest(of: data.span.bytes)
    }
}
