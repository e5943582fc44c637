// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import COpenSSL

/// The functions of OpenSSL 3 (`shim.h` lists them), loaded when they are first asked for and then kept for as long as the
/// process lives.
///
/// Sendable: the table is written once, before anybody has it, and OpenSSL's functions may be called from any thread.
struct OpenSSL: @unchecked Sendable {
    private static let loaded: Result<OpenSSL, CryptoError> = load()

    let functions: UnsafePointer<mh_crypto>

    /// The functions, or ``CryptoError/unavailable(missing:)``.
    static func library() throws(CryptoError) -> UnsafePointer<mh_crypto> {
        try loaded.get().functions
    }

    private static func load() -> Result<OpenSSL, CryptoError> {
        let table = UnsafeMutablePointer<mh_crypto>.allocate(capacity: 1)
        if let missing = mh_crypto_load(table) {
            table.deallocate()
            return .failure(.unavailable(missing: String(cString: missing)))
        }
        return .success(OpenSSL(functions: UnsafePointer(table)))
    }
}

extension RawSpan {
    /// Calls `body` with the bytes and their count as OpenSSL takes them.
    func withBytes<Value>(
        _ body: (UnsafePointer<UInt8>?, Int) throws(CryptoError) -> Value
    ) throws(CryptoError) -> Value {
        try withUnsafeBytes { (buffer) throws(CryptoError) in
            try body(buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), buffer.count)
        }
    }
}
