// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshCrypto

/// What acknowledges a text: four bytes that only who could read it can compute. As everywhere here, a little-endian
/// number: compare it with ``SentReceipt/tag`` and ``SendConfirmation/acknowledgement``.
///
/// The recipient is not part of it: the same text in the same second to two nodes has one acknowledgement
/// (companion-protocol §1.8).
public enum AcknowledgementHash {
    /// For a plain text: with the key of its sender (firmware src/helpers/BaseChatMesh.cpp, `composeMsgPacket`).
    public static func plain(
        timestamp: UInt32, attempt: UInt8, text: String, sender: PublicKey
    ) throws(CryptoError) -> UInt32 {
        try hash(timestamp, TextType.plain, attempt, Data(), text, sender)
    }

    /// For a text that a room server passes on, with the first four bytes of its author's key: with the key of who reads
    /// it (firmware src/helpers/BaseChatMesh.cpp, `onPeerDataRecv`).
    public static func signed(
        timestamp: UInt32, attempt: UInt8, author: Data, text: String, reader: PublicKey
    ) throws(CryptoError) -> UInt32 {
        guard author.count == 4 else { throw .invalidLength(.key, count: author.count) }
        return try hash(timestamp, TextType.signed, attempt, author, text, reader)
    }

    private static func hash(
        _ timestamp: UInt32, _ type: TextType, _ attempt: UInt8, _ author: Data, _ text: String, _ key: PublicKey
    ) throws(CryptoError) -> UInt32 {
        var bytes = (0..<4).map { UInt8(truncatingIfNeeded: timestamp >> ($0 * 8)) }
        bytes.append(type.rawValue << 2 | attempt & 3)
        bytes += author
        bytes += text.utf8.prefix { $0 != 0 }
        bytes += key.data
        return try SHA256.digest(of: bytes).prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }
}
