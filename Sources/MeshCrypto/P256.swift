// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import COpenSSL

/// Key agreement on the curve P-256 (FIPS 186-4 D.1.2.3, SEC 1 §3.3.1). Numbers have 32 bytes, the most significant
/// first.
public enum P256 {
    /// How many bytes a coordinate has, a private key, and a shared secret.
    public static let numberByteCount = 32

    /// A point of the curve: its coordinates one after the other, 64 bytes.
    public struct PublicKey: Sendable, Hashable {
        public let bytes: [UInt8]

        /// Nil for another length. Whether the point lies on the curve is found out when it is used.
        public init?(_ bytes: [UInt8]) {
            guard bytes.count == 2 * numberByteCount else { return nil }
            self.bytes = bytes
        }

        /// The first coordinate.
        public var x: [UInt8] { Array(bytes.prefix(numberByteCount)) }
    }

    /// Both keys of one side.
    public struct KeyPair: Sendable {
        let privateKey: [UInt8]
        public let publicKey: PublicKey

        /// Keys that belong together, from where they are kept; nil for a private key of another length.
        public init?(privateKey: [UInt8], publicKey: PublicKey) {
            guard privateKey.count == numberByteCount else { return nil }
            self.privateKey = privateKey
            self.publicKey = publicKey
        }

        /// New keys, from OpenSSL's generator.
        public static func generate() throws(CryptoError) -> KeyPair {
            let openSSL = try OpenSSL.library()
            defer { openSSL.pointee.ERR_clear_error() }
            guard let context = openSSL.pointee.EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { throw .failed(.p256) }
            defer { openSSL.pointee.EVP_PKEY_CTX_free(context) }
            let parameters = [mh_curve_parameter(openSSL), openSSL.pointee.OSSL_PARAM_construct_end()]
            var key: OpaquePointer?
            guard openSSL.pointee.EVP_PKEY_keygen_init(context) == 1,
                openSSL.pointee.EVP_PKEY_CTX_set_params(context, parameters) == 1,
                openSSL.pointee.EVP_PKEY_generate(context, &key) == 1, let key
            else { throw .failed(.p256) }
            defer { openSSL.pointee.EVP_PKEY_free(key) }
            return try read(key, openSSL)
        }

        private static func read(
            _ key: OpaquePointer, _ openSSL: UnsafePointer<mh_crypto>
        ) throws(CryptoError) -> KeyPair {
            // 0x04, then both coordinates (SEC 1 §2.3.3).
            var point = [UInt8](repeating: 0, count: 1 + 2 * numberByteCount)
            var written = 0
            var number: OpaquePointer?
            guard
                openSSL.pointee.EVP_PKEY_get_octet_string_param(
                    key, OSSL_PKEY_PARAM_PUB_KEY, &point, point.count, &written) == 1,
                written == point.count, point[0] == 0x04,
                openSSL.pointee.EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PRIV_KEY, &number) == 1, let number
            else { throw .failed(.p256) }
            defer { openSSL.pointee.BN_clear_free(number) }
            var privateKey = [UInt8](repeating: 0, count: numberByteCount)
            guard
                openSSL.pointee.BN_bn2binpad(number, &privateKey, Int32(numberByteCount)) == Int32(numberByteCount),
                let publicKey = PublicKey(Array(point.dropFirst())),
                let pair = KeyPair(privateKey: privateKey, publicKey: publicKey)
            else { throw .failed(.p256) }
            return pair
        }
    }

    /// The secret that both sides find: the first coordinate of the product. Nil if the peer's key is no point of the
    /// curve, which would tell it the private key bit by bit (CVE-2018-5383); anybody can send such a key.
    public static func sharedSecret(_ own: KeyPair, with peer: PublicKey) throws(CryptoError) -> [UInt8]? {
        let openSSL = try OpenSSL.library()
        // What is wrong with a peer's bytes stays in this thread's list of errors otherwise.
        defer { openSSL.pointee.ERR_clear_error() }
        guard let peerKey = publicKey(peer, openSSL) else { return nil }
        defer { openSSL.pointee.EVP_PKEY_free(peerKey) }
        guard let ownKey = privateKey(own, openSSL) else { throw .failed(.p256) }
        defer { openSSL.pointee.EVP_PKEY_free(ownKey) }
        guard let context = openSSL.pointee.EVP_PKEY_CTX_new_from_pkey(nil, ownKey, nil) else { throw .failed(.p256) }
        defer { openSSL.pointee.EVP_PKEY_CTX_free(context) }
        guard openSSL.pointee.EVP_PKEY_derive_init(context) == 1 else { throw .failed(.p256) }
        // Checks the peer's key in full.
        guard openSSL.pointee.EVP_PKEY_derive_set_peer(context, peerKey) == 1 else { return nil }
        var secret = [UInt8](repeating: 0, count: numberByteCount)
        var count = secret.count
        guard openSSL.pointee.EVP_PKEY_derive(context, &secret, &count) == 1, count == numberByteCount else {
            throw .failed(.p256)
        }
        return secret
    }

    private static func publicKey(_ key: PublicKey, _ openSSL: UnsafePointer<mh_crypto>) -> OpaquePointer? {
        var point = [0x04] + key.bytes
        return point.withUnsafeMutableBytes { bytes in
            make(mh_public_key, mh_public_key_parameter(openSSL, bytes.baseAddress, bytes.count), openSSL)
        }
    }

    private static func privateKey(_ pair: KeyPair, _ openSSL: UnsafePointer<mh_crypto>) -> OpaquePointer? {
        // A number in a parameter has the byte order of the machine.
        #if _endian(little)
        var number: [UInt8] = pair.privateKey.reversed()
        #else
        var number = pair.privateKey
        #endif
        return number.withUnsafeMutableBufferPointer { bytes in
            defer { openSSL.pointee.OPENSSL_cleanse(bytes.baseAddress, bytes.count) }
            return make(mh_key_pair, mh_private_key_parameter(openSSL, bytes.baseAddress, bytes.count), openSSL)
        }
    }

    private static func make(
        _ selection: Int32, _ number: OSSL_PARAM, _ openSSL: UnsafePointer<mh_crypto>
    ) -> OpaquePointer? {
        guard let context = openSSL.pointee.EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { return nil }
        defer { openSSL.pointee.EVP_PKEY_CTX_free(context) }
        var parameters = [mh_curve_parameter(openSSL), number, openSSL.pointee.OSSL_PARAM_construct_end()]
        var key: OpaquePointer?
        guard openSSL.pointee.EVP_PKEY_fromdata_init(context) == 1,
            openSSL.pointee.EVP_PKEY_fromdata(context, &key, selection, &parameters) == 1
        else { return nil }
        return key
    }
}
