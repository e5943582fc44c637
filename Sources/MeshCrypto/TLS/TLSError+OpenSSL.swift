// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import COpenSSL

// OpenSSL's list of errors of this thread, translated once. It is cleared before each call whose failure is looked at.

extension UnsafePointer<mh_tls> {
    /// Why the last call failed, in OpenSSL's words; the first of what it lists is the cause.
    func takeReason() -> String { takeError().reason }

    /// The same, and whether it is an alert that the peer sent (RFC 8446 §6; OpenSSL numbers them from 1000 on).
    func takeError() -> (reason: String, isAlert: Bool) {
        let code = pointee.ERR_get_error()
        defer { pointee.ERR_clear_error() }
        guard code != 0 else { return ("unexpected end", false) }
        let reason = pointee.ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
        return (reason, ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) >= SSL_AD_REASON_OFFSET)
    }

    /// Why a handshake failed. `verification` is what the check of the peer's certificate came to.
    func takeHandshakeError(verification: Int) -> TLSError {
        let (reason, isAlert) = takeError()
        if isAlert { return .endedByPeer(reason: reason) }
        guard verification == X509_V_OK else { return .certificateRefused(reason: text(verification)) }
        return .handshakeFailed(reason: reason)
    }

    /// Why reading or writing failed.
    func takeConnectionError() -> TLSError {
        let (reason, isAlert) = takeError()
        return isAlert ? .endedByPeer(reason: reason) : .corrupted(reason: reason)
    }

    /// Whether a reader of PEM failed only because there is nothing more.
    func isAtEndOfPEM() -> Bool {
        let code = pointee.ERR_peek_last_error()
        return ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE
    }

    private func text(_ verification: Int) -> String {
        pointee.X509_verify_cert_error_string(verification).map { String(cString: $0) } ?? "error \(verification)"
    }
}
