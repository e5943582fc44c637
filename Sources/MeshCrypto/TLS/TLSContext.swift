// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import COpenSSL

/// What the TLS connections of one listener, or those to one kind of server, have in common: TLS 1.2 or 1.3, this side's
/// certificate, what is asked of the peer's. A connection keeps what it was made with; a renewed certificate is a new context.
///
/// Nothing of OpenSSL is loaded before the first context is made. Used on one thread at a time.
public final class TLSContext {
    /// What is asked of a server's certificate.
    public enum Trust: Sendable, Hashable {
        /// An authority that the system trusts vouches for it, and it has the server's name.
        case system
        /// One of these authorities (PEM) vouches for it, and it has the server's name.
        case authorities([UInt8])
        /// Its SHA-256 is this. Neither its name nor its dates are looked at.
        case pinned(sha256: [UInt8])
    }

    let openSSL: UnsafePointer<mh_tls>
    private let context: OpaquePointer
    private let side: Side

    private enum Side {
        case server
        case client(pin: [UInt8]?)
    }

    /// For connections that clients make. Both texts are PEM: the server's certificate and then those that vouch for it, and
    /// the key without a passphrase.
    public init(serverCertificates certificates: [UInt8], key: [UInt8]) throws(TLSError) {
        openSSL = try OpenSSLTLS.library()
        context = try Self.makeContext(openSSL)
        side = .server
        try useCertificates(certificates)
        try useKey(key)
    }

    /// For connections to servers.
    public init(trusting trust: Trust) throws(TLSError) {
        openSSL = try OpenSSLTLS.library()
        context = try Self.makeContext(openSSL)
        switch trust {
        case .system:
            side = .client(pin: nil)
            openSSL.pointee.SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
            guard openSSL.pointee.SSL_CTX_set_default_verify_paths(context) == 1 else {
                throw .authoritiesUnusable(reason: openSSL.takeReason())
            }
        case .authorities(let certificates):
            side = .client(pin: nil)
            openSSL.pointee.SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
            try useAuthorities(certificates)
        case .pinned(let digest):
            side = .client(pin: digest)
            // The digest is looked at after the handshake, and before anything else is.
            openSSL.pointee.SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nil)
        }
    }

    deinit {
        openSSL.pointee.SSL_CTX_free(context)
    }

    /// One connection. `serverName` is the host that a client wants to speak with, a name or an address; a server has none.
    public func makeEngine(serverName: String? = nil) throws(TLSError) -> TLSEngine {
        openSSL.pointee.ERR_clear_error()
        guard let ssl = openSSL.pointee.SSL_new(context) else { throw .failed(reason: openSSL.takeReason()) }
        switch side {
        case .server:
            openSSL.pointee.SSL_set_accept_state(ssl)
            return try TLSEngine(openSSL, taking: ssl, pin: nil)
        case .client(let pin):
            openSSL.pointee.SSL_set_connect_state(ssl)
            guard let serverName, setName(serverName, of: ssl, isChecked: pin == nil) else {
                defer { openSSL.pointee.SSL_free(ssl) }
                throw .failed(reason: openSSL.takeReason())
            }
            return try TLSEngine(openSSL, taking: ssl, pin: pin)
        }
    }

    // MARK: Making

    private static func makeContext(_ openSSL: UnsafePointer<mh_tls>) throws(TLSError) -> OpaquePointer {
        openSSL.pointee.ERR_clear_error()
        guard let context = openSSL.pointee.SSL_CTX_new(openSSL.pointee.TLS_method()) else {
            throw .failed(reason: openSSL.takeReason())
        }
        // RFC 8996: older versions are not to be used.
        guard openSSL.pointee.SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil) == 1
        else {
            openSSL.pointee.SSL_CTX_free(context)
            throw .failed(reason: openSSL.takeReason())
        }
        _ = openSSL.pointee.SSL_CTX_set_options(context, mh_tls_options)
        // An idle connection keeps no buffers (34 KiB less).
        _ = openSSL.pointee.SSL_CTX_ctrl(context, SSL_CTRL_MODE, Int(SSL_MODE_RELEASE_BUFFERS), nil)
        // Clients stay for days: nothing is worth keeping for their next time.
        _ = openSSL.pointee.SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
        _ = openSSL.pointee.SSL_CTX_set_num_tickets(context, 0)
        return context
    }

    private func useCertificates(_ text: [UInt8]) throws(TLSError) {
        let chain: CertificateList
        do throws(PEMProblem) {
            chain = try CertificateList(pem: text, openSSL)
        } catch {
            throw .certificateUnusable(reason: error.reason)
        }
        guard openSSL.pointee.SSL_CTX_use_certificate(context, chain.certificates[0]) == 1 else {
            throw .certificateUnusable(reason: openSSL.takeReason())
        }
        for certificate in chain.certificates.dropFirst() {
            // 1: with a reference of its own.
            guard
                openSSL.pointee.SSL_CTX_ctrl(context, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(certificate)) == 1
            else { throw .certificateUnusable(reason: openSSL.takeReason()) }
        }
    }

    private func useKey(_ text: [UInt8]) throws(TLSError) {
        openSSL.pointee.ERR_clear_error()
        guard let source = openSSL.pointee.BIO_new_mem_buf(text, Int32(clamping: text.count)) else {
            throw .failed(reason: openSSL.takeReason())
        }
        defer { _ = openSSL.pointee.BIO_free(source) }
        // An empty passphrase: without any, OpenSSL asks the terminal for one.
        var passphrase: UInt8 = 0
        guard let key = openSSL.pointee.PEM_read_bio_PrivateKey(source, nil, nil, &passphrase) else {
            throw .keyUnusable(reason: openSSL.takeReason())
        }
        defer { openSSL.pointee.EVP_PKEY_free(key) }
        guard openSSL.pointee.SSL_CTX_use_PrivateKey(context, key) == 1,
            openSSL.pointee.SSL_CTX_check_private_key(context) == 1
        else {
            openSSL.pointee.ERR_clear_error()
            throw .keyOfAnotherCertificate
        }
    }

    private func useAuthorities(_ text: [UInt8]) throws(TLSError) {
        let authorities: CertificateList
        do throws(PEMProblem) {
            authorities = try CertificateList(pem: text, openSSL)
        } catch {
            throw .authoritiesUnusable(reason: error.reason)
        }
        let store = openSSL.pointee.SSL_CTX_get_cert_store(context)
        // An intermediate authority is trusted without its root, and a server's own certificate without either.
        _ = openSSL.pointee.X509_STORE_set_flags(store, UInt(X509_V_FLAG_PARTIAL_CHAIN))
        for certificate in authorities.certificates {
            guard openSSL.pointee.X509_STORE_add_cert(store, certificate) == 1 else {
                throw .authoritiesUnusable(reason: openSSL.takeReason())
            }
        }
    }

    /// Tells the server whom the client wants to speak with, and has its certificate looked at for that name.
    private func setName(_ name: String, of ssl: OpaquePointer, isChecked: Bool) -> Bool {
        // A link-local address carries its interface.
        let address = String(name.prefix { $0 != "%" })
        let parameters = openSSL.pointee.SSL_get0_param(ssl)
        // It also tells whether this is an address: a server is not told one (RFC 6066 §3).
        if openSSL.pointee.X509_VERIFY_PARAM_set1_ip_asc(parameters, address) == 1 { return true }
        openSSL.pointee.ERR_clear_error()
        let isTold = name.withCString {
            openSSL.pointee.SSL_ctrl(
                ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), UnsafeMutableRawPointer(mutating: $0)
            )
                == 1
        }
        return isTold && (!isChecked || openSSL.pointee.SSL_set1_host(ssl, name) == 1)
    }
}

/// Why a PEM text could not be read.
private struct PEMProblem: Error {
    var reason: String
}

/// The certificates in a PEM text, one at least.
private final class CertificateList {
    private(set) var certificates: [OpaquePointer] = []
    private let openSSL: UnsafePointer<mh_tls>

    init(pem text: [UInt8], _ openSSL: UnsafePointer<mh_tls>) throws(PEMProblem) {
        self.openSSL = openSSL
        openSSL.pointee.ERR_clear_error()
        guard let source = openSSL.pointee.BIO_new_mem_buf(text, Int32(clamping: text.count)) else {
            throw PEMProblem(reason: openSSL.takeReason())
        }
        defer { _ = openSSL.pointee.BIO_free(source) }
        while let certificate = openSSL.pointee.PEM_read_bio_X509(source, nil, nil, nil) {
            certificates.append(certificate)
        }
        let isWhole = openSSL.isAtEndOfPEM()
        let reason = openSSL.takeReason()
        guard isWhole, !certificates.isEmpty else { throw PEMProblem(reason: reason) }
    }

    deinit {
        for certificate in certificates { openSSL.pointee.X509_free(certificate) }
    }
}
