// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Why a cryptographic function gave no result.
public enum CryptoError: Error, Sendable, Hashable {
    /// OpenSSL 3 is not installed, or its library lacks this.
    case unavailable(missing: String)
    /// A key, a signature or data of a length that the function does not take.
    case invalidLength(Input, count: Int)
    /// OpenSSL refused to do this, for lack of memory or because its configuration forbids the algorithm.
    case failed(Operation)

    /// What a function takes.
    public enum Input: String, Sendable, Hashable {
        case data
        case key
        case signature
    }

    /// What a function does.
    public enum Operation: String, Sendable, Hashable {
        case sha256 = "SHA-256"
        case hmacSHA256 = "HMAC-SHA-256"
        case aes128 = "AES-128"
        case aesCMAC = "AES-CMAC"
        case ed25519 = "Ed25519"
        case p256 = "P-256"
    }
}

extension CryptoError: CustomStringConvertible {
    /// Such as `a key of 15 bytes`.
    public var description: String {
        switch self {
        case .unavailable(let missing): "OpenSSL 3 is needed and not installed (\(missing) is missing)"
        case .invalidLength(let input, let count):
            input == .data ? "data of \(count) bytes" : "a \(input.rawValue) of \(count) bytes"
        case .failed(let operation): "OpenSSL refuses \(operation.rawValue)"
        }
    }
}
