// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Why there is no TLS connection, or none any more. Texts are OpenSSL's reasons.
public enum TLSError: Error, Sendable, Hashable {
    /// OpenSSL 3 is not installed, or its library lacks this.
    case unavailable(missing: String)
    /// OpenSSL could not do its part, mostly for lack of memory.
    case failed(reason: String)

    // What a context was made of.

    /// The certificates are not PEM, or none is there.
    case certificateUnusable(reason: String)
    /// The private key is not PEM, or needs a passphrase.
    case keyUnusable(reason: String)
    /// The private key is not that of the first certificate.
    case keyOfAnotherCertificate
    /// The certificates of the authorities are not PEM, or none is there.
    case authoritiesUnusable(reason: String)

    // What became of a connection.

    /// The peer does not speak TLS, or none that both sides take.
    case handshakeFailed(reason: String)
    /// The peer's certificate is not accepted.
    case certificateRefused(reason: String)
    /// The peer's certificate is not the pinned one.
    case pinDiffers
    /// The peer ended the connection and said why: it does not accept this side's certificate, for one.
    case endedByPeer(reason: String)
    /// What came is not what the peer sent.
    case corrupted(reason: String)
    /// The connection ended without TLS's own end: something may be missing.
    case truncated
}

extension TLSError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unavailable(let missing): "OpenSSL 3 is needed and not installed (\(missing) is missing)"
        case .failed(let reason): "OpenSSL: \(reason)"
        case .certificateUnusable(let reason): "no usable certificate: \(reason)"
        case .keyUnusable(let reason): "no usable private key: \(reason)"
        case .keyOfAnotherCertificate: "the private key is not that of the first certificate"
        case .authoritiesUnusable(let reason): "no usable certificate of an authority: \(reason)"
        case .handshakeFailed(let reason): "the TLS handshake failed: \(reason)"
        case .certificateRefused(let reason): "the peer's certificate is not accepted: \(reason)"
        case .pinDiffers: "the peer's certificate is not the pinned one"
        case .endedByPeer(let reason): "the peer ended the connection: \(reason)"
        case .corrupted(let reason): "the TLS connection is corrupted: \(reason)"
        case .truncated: "the TLS connection was cut off"
        }
    }
}
