// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import COpenSSL

/// HMAC with SHA-256 (RFC 2104, FIPS 198-1).
public enum HMACSHA256 {
    /// How many bytes a code has.
    public static let byteCount = 32

    /// The code of `data` under a key of any length.
    public static func code(of data: RawSpan, key: RawSpan) throws(CryptoError) -> [UInt8] {
        let openSSL = try OpenSSL.library()
        return try key.withBytes { (keyBytes, keyCount) throws(CryptoError) in
            guard let keyLength = Int32(exactly: keyCount) else { throw .invalidLength(.key, count: keyCount) }
            return try data.withBytes { (bytes, count) throws(CryptoError) in
                var code = [UInt8](repeating: 0, count: byteCount)
                guard
                    openSSL.pointee.HMAC(
                        openSSL.pointee.EVP_sha256(), keyBytes, keyLength, bytes, count, &code, nil) != nil
                else { throw .failed(.hmacSHA256) }
                return code
            }
        }
    }

    /// The code of `data` under a key of any length.
    public static func code(of data: [UInt8], key: [UInt8]) throws(CryptoError) -> [UInt8] {
        try code(of: data.span.bytes, key: key.span.bytes)
    }
}
