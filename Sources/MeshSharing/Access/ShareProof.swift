// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshCrypto

/// What a client and the host say to each other before anything else on a share with tokens. A token's secret does not
/// cross the wire: the client proves that it has it.
///
///     client                                            host
///     7E 00 NAME ────────────────────────────────────▶        the token's name, UTF-8
///            ◀──────────────────────────────────── 7E NONCE   32 random bytes
///     7E 01 CODE ────────────────────────────────────▶        32 bytes
///            ◀──────────────────────────────────── 00         go on: from here it is a radio
///                                               or 01 06      no, and the connection ends
///
/// CODE is HMAC-SHA256 with the secret as its key over `meshhost share v1`, NONCE and NAME, one behind the other. All are
/// companion frames in their usual framing. A share with tokens answers any other first frame with `01 01`, and ends the
/// connection; a share without tokens, or a radio, answers `7E` with `01 01`.
///
/// The firmware's commands are numbered from 1 on, its newest is 66 (0x42, version 1.17.1 and newer clients), and codes with
/// the highest bit set are pushes. 0x7E is the last but one that a command could ever get.
///
/// It proves who the client is, and only that: not who the host is, and nothing of what follows. Both are TLS's.
enum ShareProof {
    /// The first byte of every frame of the proof but the last.
    static let code: UInt8 = 0x7E
    /// How many random bytes the host sends.
    static let nonceByteCount = 32

    /// What begins the bytes that the code is computed over: a code made for something else is none here.
    private static let context = Array("meshhost share v1".utf8)
    private static let nameKind: UInt8 = 0
    private static let codeKind: UInt8 = 1

    /// The code that proves `secret`. `name` is the token's, in the bytes that the client sent.
    static func code(secret: String, nonce: [UInt8], name: [UInt8]) throws(CryptoError) -> [UInt8] {
        try HMACSHA256.code(of: context + nonce + name, key: Array(secret.utf8))
    }

    // MARK: Frames

    /// The client's first frame.
    static func nameFrame(_ name: some Sequence<UInt8>) -> Data { Data([code, nameKind]) + Data(name) }

    /// The host's question.
    static func nonceFrame(_ nonce: [UInt8]) -> Data { Data([code]) + Data(nonce) }

    /// The client's answer.
    static func codeFrame(_ code: [UInt8]) -> Data { Data([self.code, codeKind]) + Data(code) }

    static let accepted = CompanionFrame.reply(.ok)
    static let failed = CompanionFrame.error(.illegalArgument)
    static let notWanted = CompanionFrame.error(.unsupported)

    /// The name in a client's first frame; nil if it is none.
    static func name(in frame: Data) -> [UInt8]? { body(of: frame, after: [code, nameKind]) }

    /// The nonce in the host's question; nil if it is none.
    static func nonce(in frame: Data) -> [UInt8]? {
        body(of: frame, after: [code]).flatMap { $0.count == nonceByteCount ? $0 : nil }
    }

    /// The code in a client's answer; nil if it is none.
    static func code(in frame: Data) -> [UInt8]? {
        body(of: frame, after: [code, codeKind]).flatMap { $0.count == HMACSHA256.byteCount ? $0 : nil }
    }

    private static func body(of frame: Data, after start: [UInt8]) -> [UInt8]? {
        frame.starts(with: start) ? [UInt8](frame.dropFirst(start.count)) : nil
    }
}
