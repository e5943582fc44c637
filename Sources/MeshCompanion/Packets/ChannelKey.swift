// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshCrypto

/// What a node has to know to read a channel: a secret that all who use the channel share. Whoever knows it can also
/// write under any name.
public struct ChannelKey: Sendable, Hashable {
    /// The name of the channel that every radio has (firmware `MyMesh.cpp`, `PUBLIC_GROUP_PSK`).
    public static let publicName = "Public"
    /// The secret of the channel that every radio has: no secret, that is (companion-protocol §1.8).
    static let publicSecret = Data([
        0x8B, 0x33, 0x87, 0xE9, 0xC5, 0xCD, 0xEA, 0x6A, 0xC9, 0xE5, 0xED, 0xBA, 0xA1, 0x15, 0xCD, 0x72,
    ])

    /// What people call the channel. It is not on the air.
    public let name: String
    /// 16 bytes, or 32, of which radios of firmware v1.17.1 take none by SET_CHANNEL.
    public let secret: Data
    /// What a packet says which channel it is for: the first byte of the SHA-256 of the secret. Others may have the same.
    public let hash: UInt8

    /// A key from a secret of 16 or 32 bytes.
    public init(name: String, secret: Data) throws(CryptoError) {
        guard secret.count == 16 || secret.count == 32 else { throw .invalidLength(.key, count: secret.count) }
        self.name = name
        self.secret = Data(secret)
        // A secret whose second half is zeros is one of 16 bytes (firmware `BaseChatMesh::setChannel`).
        let isShort = secret.dropFirst(16).allSatisfy { $0 == 0 }
        hash = try SHA256.digest(of: [UInt8](isShort ? secret.prefix(16) : secret))[0]
    }

    /// The key of the channel that every radio has.
    public static func `public`() throws(CryptoError) -> ChannelKey {
        try ChannelKey(name: publicName, secret: publicSecret)
    }

    /// The key of a channel that has it from its name, such as `#bot`: the first 16 bytes of the SHA-256 of the name with
    /// its `#`, which may be left out here.
    public static func hashtag(_ name: String) throws(CryptoError) -> ChannelKey {
        let name = name.hasPrefix("#") ? name : "#" + name
        return try ChannelKey(name: name, secret: try RegionKey.derived(from: name))
    }

    /// Of AES-128: the secret's first 16 bytes.
    var cipherKey: [UInt8] { Array(secret.prefix(AES128.blockByteCount)) }

    /// Of the HMAC: the secret with zeros up to 32 bytes (firmware `Utils::encryptThenMAC`).
    var authenticationKey: [UInt8] { Array(secret) + [UInt8](repeating: 0, count: 32 - secret.count) }
}

extension PacketContents.Group {
    /// Encrypts `plainText` for a channel: AES-128 block by block, filled with zeros, then two bytes of an HMAC-SHA-256 of
    /// the result (companion-protocol §1.8).
    public init(sealing plainText: Data, for channel: ChannelKey) throws(CryptoError) {
        var blocks = [UInt8](plainText)
        while !blocks.count.isMultiple(of: AES128.blockByteCount) { blocks.append(0) }
        let cipherText = try AES128.encrypt(blocks, key: channel.cipherKey)
        self.init(
            channelHash: channel.hash, mac: Data(try Self.mac(cipherText, channel)), cipherText: Data(cipherText))
    }

    /// The plain text, filled with zeros to whole blocks; nil if the packet is not of this channel, or damaged. Two bytes
    /// of a MAC say yes to one of 65,536 that are not.
    public func opened(with channel: ChannelKey) throws(CryptoError) -> Data? {
        guard channelHash == channel.hash, !cipherText.isEmpty, cipherText.count.isMultiple(of: AES128.blockByteCount)
        else { return nil }
        let bytes = [UInt8](cipherText)
        guard try Self.mac(bytes, channel).elementsEqual(mac) else { return nil }
        return Data(try AES128.decrypt(bytes, key: channel.cipherKey))
    }

    private static func mac(_ cipherText: [UInt8], _ channel: ChannelKey) throws(CryptoError) -> ArraySlice<UInt8> {
        try HMACSHA256.code(of: cipherText, key: channel.authenticationKey).prefix(2)
    }
}

extension ChannelKey: CustomStringConvertible {
    /// The name, and not the secret.
    public var description: String { name }
}
