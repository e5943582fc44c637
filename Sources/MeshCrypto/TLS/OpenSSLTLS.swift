// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import COpenSSL

/// The functions of OpenSSL 3 that TLS needs, loaded when they are first asked for and then kept for as long as the process
/// lives. A host without TLS has none of it in its memory.
///
/// Sendable: the table is written once, before anybody has it, and OpenSSL's functions may be called from any thread.
struct OpenSSLTLS: @unchecked Sendable {
    private static let loaded: Result<OpenSSLTLS, TLSError> = load()

    let functions: UnsafePointer<mh_tls>

    /// The functions, or ``TLSError/unavailable(missing:)``.
    static func library() throws(TLSError) -> UnsafePointer<mh_tls> {
        try loaded.get().functions
    }

    private static func load() -> Result<OpenSSLTLS, TLSError> {
        let table = UnsafeMutablePointer<mh_tls>.allocate(capacity: 1)
        if let missing = mh_tls_load(table) {
            table.deallocate()
            return .failure(.unavailable(missing: String(cString: missing)))
        }
        return .success(OpenSSLTLS(functions: UnsafePointer(table)))
    }
}
