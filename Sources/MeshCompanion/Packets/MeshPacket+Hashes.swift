// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshCrypto

extension MeshPacket {
    /// Eight bytes by which nodes know a packet again, whatever way it took: the start of the SHA-256 of its type and
    /// payload, and for a trace, which may pass a node twice, of the length of its path in between (firmware
    /// src/Packet.cpp, `calculatePacketHash`; the length has two bytes there).
    public func hash() throws(CryptoError) -> Data {
        var bytes = [payloadType.rawValue]
        if payloadType == .trace { bytes += [path.byte.rawValue, 0] }
        return Data(try SHA256.digest(of: bytes + payload).prefix(8))
    }

    /// What ``TransportCodes-swift.struct/first`` is for a region with this key: two bytes of an HMAC-SHA-256 of type and
    /// payload, but neither 0 nor 0xFFFF, which mean something else (companion-protocol §1.8).
    public func transportCode(regionKey: Data) throws(CryptoError) -> UInt16 {
        guard regionKey.count == RegionKey.byteCount else { throw .invalidLength(.key, count: regionKey.count) }
        let code = try HMACSHA256.code(of: [payloadType.rawValue] + payload, key: [UInt8](regionKey))
        return min(max(UInt16(code[0]) | UInt16(code[1]) << 8, 1), 0xFFFE)
    }

    /// The most bytes that a node says of itself (`MAX_ADVERT_DATA_SIZE`, firmware src/MeshCore.h).
    static let maximumAdvertData = 32

    /// Whether the owner of the key that an advert names has signed it: over key, clock and what the node says of itself.
    /// Nil for packets that are no adverts, or too short to be signed.
    public func isAdvertSignatureValid() throws(CryptoError) -> Bool? {
        let (keyEnd, clockEnd, signatureEnd) = (PublicKey.length, PublicKey.length + 4, PublicKey.length + 4 + 64)
        guard payloadType == .advert, version == 0, payload.count >= signatureEnd else { return nil }
        let bytes = [UInt8](payload)
        // Like the firmware, which reads no more.
        let said = bytes[signatureEnd...].prefix(Self.maximumAdvertData)
        return try Ed25519.isValid(
            signature: Array(bytes[clockEnd..<signatureEnd]), of: Array(bytes[..<clockEnd]) + said,
            publicKey: Array(bytes[..<keyEnd]))
    }
}
