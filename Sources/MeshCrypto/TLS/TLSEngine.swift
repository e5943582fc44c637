// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import COpenSSL

/// One TLS connection without a socket: bytes of the connection go in, plaintext comes out, and the other way round.
///
///                                         the peer's end came ┌────────────▶ inputEnded ───┐ finishWriting()
///                   handshake done                            │                            ▼
///     handshaking ─────────────────▶ open ────────────────────┤                          closed
///                                                             │                            ▲
///                                             finishWriting() └────────────▶ outputEnded ──┘ the peer's end came
///                          (from all states: close(), or an error that was thrown)
///
/// - `handshaking`: nothing can be written yet.
/// - `open`: both ways.
/// - `inputEnded`: the peer sends no more; it may still be written to.
/// - `outputEnded`: the peer was told that nothing more comes; it may still send.
/// - `closed`: no way. After an error there may still be output, which tells the peer of it.
///
/// After every call there may be output for the peer: ``takeOutput(_:)``. Buffers hold one record of the peer at most
/// (16 KiB, RFC 8446 §5.1) and what has not been taken of the output. Used on one thread at a time.
public final class TLSEngine {
    /// How far the connection is.
    public enum Phase: Sendable, Hashable {
        case handshaking
        case open
        case inputEnded
        case outputEnded
        case closed
    }

    /// How many bytes are given to OpenSSL at once, which sets the size of its buffer.
    private static let pieceSize = 16_384

    public private(set) var phase = Phase.handshaking
    private let openSSL: UnsafePointer<mh_tls>
    private let ssl: OpaquePointer
    /// Both belong to `ssl`.
    private let input: OpaquePointer
    private let output: OpaquePointer
    private let pin: [UInt8]?

    init(_ openSSL: UnsafePointer<mh_tls>, taking ssl: OpaquePointer, pin: [UInt8]?) throws(TLSError) {
        self.openSSL = openSSL
        self.ssl = ssl
        self.pin = pin
        guard let input = openSSL.pointee.BIO_new(openSSL.pointee.BIO_s_mem()) else {
            openSSL.pointee.SSL_free(ssl)
            throw .failed(reason: openSSL.takeReason())
        }
        guard let output = openSSL.pointee.BIO_new(openSSL.pointee.BIO_s_mem()) else {
            _ = openSSL.pointee.BIO_free(input)
            openSSL.pointee.SSL_free(ssl)
            throw .failed(reason: openSSL.takeReason())
        }
        self.input = input
        self.output = output
        openSSL.pointee.SSL_set_bio(ssl, input, output)
    }

    deinit {
        openSSL.pointee.SSL_free(ssl)
    }

    /// Such as `TLSv1.3`, once the handshake is done.
    public var version: String { openSSL.pointee.SSL_get_version(ssl).map { String(cString: $0) } ?? "" }

    // MARK: In

    /// Begins: a client has something to say first.
    public func start() throws(TLSError) {
        guard phase == .handshaking else { return }
        try handshake()
    }

    /// Takes bytes that came from the peer. `onPlaintext` gets what they hold, zero or more times; its bytes are valid
    /// during the call only. It may write to this engine and close it.
    ///
    /// Throws when the connection is at its end; ``takeOutput(_:)`` may have a last word for the peer then.
    public func received(
        _ bytes: UnsafeRawBufferPointer, onPlaintext: (UnsafeRawBufferPointer) -> Void
    ) throws(TLSError) {
        var start = 0
        while start < bytes.count {
            guard phase == .handshaking || isReadable else { return }
            let end = min(bytes.count, start + Self.pieceSize)
            let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
            openSSL.pointee.ERR_clear_error()
            guard openSSL.pointee.BIO_write(input, piece.baseAddress, Int32(piece.count)) == piece.count else {
                throw ended(.failed(reason: openSSL.takeReason()))
            }
            start = end
            if phase == .handshaking { try handshake() }
            if isReadable { try read(onPlaintext) }
        }
    }

    /// The connection's bytes are at their end. Throws if TLS's own end had not come.
    public func inputEnded() throws(TLSError) {
        switch phase {
        case .handshaking: throw ended(.handshakeFailed(reason: "the peer closed the connection"))
        case .open, .outputEnded: throw ended(.truncated)
        case .inputEnded, .closed: break
        }
    }

    private var isReadable: Bool { phase == .open || phase == .outputEnded }

    private func handshake() throws(TLSError) {
        openSSL.pointee.ERR_clear_error()
        let status = openSSL.pointee.SSL_do_handshake(ssl)
        guard status == 1 else {
            if openSSL.pointee.SSL_get_error(ssl, status) == SSL_ERROR_WANT_READ { return }
            throw ended(openSSL.takeHandshakeError(verification: openSSL.pointee.SSL_get_verify_result(ssl)))
        }
        if let pin, try peerDigest() != pin { throw ended(.pinDiffers) }
        phase = .open
    }

    /// The SHA-256 of the peer's certificate.
    private func peerDigest() throws(TLSError) -> [UInt8] {
        guard let certificate = openSSL.pointee.SSL_get1_peer_certificate(ssl) else { throw ended(.pinDiffers) }
        defer { openSSL.pointee.X509_free(certificate) }
        var digest = [UInt8](repeating: 0, count: SHA256.byteCount)
        guard openSSL.pointee.X509_digest(certificate, openSSL.pointee.EVP_sha256(), &digest, nil) == 1 else {
            throw ended(.failed(reason: openSSL.takeReason()))
        }
        return digest
    }

    private func read(_ onPlaintext: (UnsafeRawBufferPointer) -> Void) throws(TLSError) {
        try withUnsafeTemporaryAllocation(byteCount: Self.pieceSize, alignment: 1) { (buffer) throws(TLSError) in
            while isReadable {
                var count = 0
                openSSL.pointee.ERR_clear_error()
                let status = openSSL.pointee.SSL_read_ex(ssl, buffer.baseAddress, buffer.count, &count)
                if status == 1 {
                    onPlaintext(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                    continue
                }
                switch openSSL.pointee.SSL_get_error(ssl, status) {
                case SSL_ERROR_WANT_READ: return
                case SSL_ERROR_ZERO_RETURN: phase = phase == .open ? .inputEnded : .closed
                default: throw ended(openSSL.takeConnectionError())
                }
            }
        }
    }

    private func ended(_ error: TLSError) -> TLSError {
        phase = .closed
        return error
    }

    // MARK: Out

    /// Encrypts bytes for the peer; nothing before the handshake is done and after
    /// ``finishWriting()``.
    public func write(_ plaintext: UnsafeRawBufferPointer) throws(TLSError) {
        guard phase == .open || phase == .inputEnded, !plaintext.isEmpty else { return }
        var count = 0
        openSSL.pointee.ERR_clear_error()
        // The output takes everything, so it is all or nothing.
        guard openSSL.pointee.SSL_write_ex(ssl, plaintext.baseAddress, plaintext.count, &count) == 1 else {
            throw ended(openSSL.takeConnectionError())
        }
    }

    /// Tells the peer that nothing more comes; it may still send.
    public func finishWriting() {
        guard phase == .open || phase == .inputEnded else { return }
        phase = phase == .open ? .outputEnded : .closed
        openSSL.pointee.ERR_clear_error()
        _ = openSSL.pointee.SSL_shutdown(ssl)
    }

    /// Ends both ways: what the peer still sends is not looked at.
    public func close() {
        finishWriting()
        phase = .closed
    }

    /// Hands over all that is to be sent to the peer, in one piece; nothing is called when there is nothing. The bytes are
    /// valid during the call only.
    public func takeOutput(_ body: (UnsafeRawBufferPointer) -> Void) {
        var start: UnsafeMutablePointer<CChar>?
        let count = openSSL.pointee.BIO_ctrl(output, BIO_CTRL_INFO, 0, &start)
        guard count > 0, let start else { return }
        body(UnsafeRawBufferPointer(start: start, count: count))
        _ = openSSL.pointee.BIO_ctrl(output, BIO_CTRL_RESET, 0, nil)
    }
}
