// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import COpenSSL

/// Message authentication with AES and keys of 128 bits (NIST SP 800-38B, RFC 4493).
public enum AESCMAC {
    /// How many bytes a code has, and a key.
    public static let byteCount = 16

    /// The code of `message` under a key of 16 bytes.
    public static func code(for message: RawSpan, key: RawSpan) throws(CryptoError) -> [UInt8] {
        let openSSL = try OpenSSL.library()
        return try key.withBytes { (keyBytes, keyCount) throws(CryptoError) in
            guard keyCount == byteCount else { throw .invalidLength(.key, count: keyCount) }
            return try message.withBytes { (bytes, count) throws(CryptoError) in
                var result = [UInt8](repeating: 0, count: byteCount)
                var written = 0
                let code = openSSL.pointee.EVP_Q_mac(
                    nil, "CMAC", nil, "AES-128-CBC", nil, keyBytes, keyCount, bytes, count, &result, byteCount, &written
                )
                guard code != nil, written == byteCount else { throw .failed(.aesCMAC) }
                return result
            }
        }
    }

    /// The code of `message` under a key of 16 bytes.
    public static func code(for message: [UInt8], key: [UInt8]) throws(CryptoError) -> [UInt8] {
        try code(for: message.span.bytes, key: key.span.bytes)
    }
}
