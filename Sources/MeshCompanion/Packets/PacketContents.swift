// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// The parts of a packet's payload of version 0: hashes of one byte, MACs of two (firmware src/Mesh.cpp,
/// `Mesh::onRecvPacket`).
public enum PacketContents: Sendable, Hashable {
    /// REQ, RESPONSE, TXT_MSG and PATH: between two nodes.
    case addressed(Addressed)
    /// ACK: the four bytes a sender waits for, and what newer firmware adds.
    case acknowledgement(tag: UInt32, extra: Data)
    case advert(Advert)
    /// GRP_TXT and GRP_DATA: for all who know the channel's key.
    case group(Group)
    /// ANON_REQ: from a node that the other may not know.
    case anonymousRequest(AnonymousEnvelope)
    case trace(Trace)
    /// MULTIPART: one of several, how many are to come, and the type of all.
    case multipart(remaining: UInt8, type: PayloadType, payload: Data)
    /// CONTROL, RAW_CUSTOM, and types and versions of another firmware.
    case opaque(Data)

    /// An encrypted payload from one node to another.
    public struct Addressed: Sendable, Hashable {
        /// The first byte of the recipient's key.
        public var destination: UInt8
        /// The first byte of the sender's key.
        public var source: UInt8
        /// Two bytes.
        public var mac: Data
        public var cipherText: Data

        public init(destination: UInt8, source: UInt8, mac: Data, cipherText: Data) {
            self.destination = destination
            self.source = source
            self.mac = mac
            self.cipherText = cipherText
        }
    }

    /// An encrypted payload for a channel.
    public struct Group: Sendable, Hashable {
        /// The first byte of the SHA-256 of the channel's key.
        public var channelHash: UInt8
        /// Two bytes.
        public var mac: Data
        public var cipherText: Data

        public init(channelHash: UInt8, mac: Data, cipherText: Data) {
            self.channelHash = channelHash
            self.mac = mac
            self.cipherText = cipherText
        }
    }

    /// An encrypted payload with the sender's whole key.
    public struct AnonymousEnvelope: Sendable, Hashable {
        /// The first byte of the recipient's key.
        public var destination: UInt8
        public var sender: PublicKey
        /// Two bytes.
        public var mac: Data
        public var cipherText: Data

        public init(destination: UInt8, sender: PublicKey, mac: Data, cipherText: Data) {
            self.destination = destination
            self.sender = sender
            self.mac = mac
            self.cipherText = cipherText
        }
    }

    /// A trace under way. The ratios noted so far are the packet's path.
    public struct Trace: Sendable, Hashable {
        public var tag: UInt32
        public var authCode: UInt32
        /// The low two bits are the binary logarithm of the bytes of each hash.
        public var flags: UInt8
        /// The hashes of the nodes to visit.
        public var hashes: Data

        public init(tag: UInt32, authCode: UInt32, flags: UInt8, hashes: Data) {
            self.tag = tag
            self.authCode = authCode
            self.flags = flags
            self.hashes = hashes
        }
    }

    /// The contents of a packet of this type, with nothing filled in yet.
    static func prototype(_ type: PayloadType) -> PacketContents {
        switch type {
        case .request, .response, .text, .path:
            .addressed(Addressed(destination: 0, source: 0, mac: Data(), cipherText: Data()))
        case .acknowledgement: .acknowledgement(tag: 0, extra: Data())
        case .advert: .advert(.empty)
        case .groupText, .groupData: .group(Group(channelHash: 0, mac: Data(), cipherText: Data()))
        case .anonymousRequest:
            .anonymousRequest(AnonymousEnvelope(destination: 0, sender: .zero, mac: Data(), cipherText: Data()))
        case .trace: .trace(Trace(tag: 0, authCode: 0, flags: 0, hashes: Data()))
        case .multipart: .multipart(remaining: 0, type: .request, payload: Data())
        default: .opaque(Data())
        }
    }

    /// The payload's bytes.
    public func encoded() throws(FieldError) -> Data { try WireFieldWriter.encode(self) }
}

extension PacketContents: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        switch self {
        case .addressed(var fields):
            try visitor.integer("destination", &fields.destination)
            try visitor.integer("source", &fields.source)
            try visitor.bytes("mac", &fields.mac, count: 2)
            try visitor.rest("cipher_text", &fields.cipherText)
            self = .addressed(fields)
        case .acknowledgement(var tag, var extra):
            try visitor.tag("ack", &tag)
            try visitor.rest("extra", &extra)
            self = .acknowledgement(tag: tag, extra: extra)
        case .advert(var advert):
            try advert.visit(&visitor)
            self = .advert(advert)
        case .group(var fields):
            try visitor.integer("channel_hash", &fields.channelHash)
            try visitor.bytes("mac", &fields.mac, count: 2)
            try visitor.rest("cipher_text", &fields.cipherText)
            self = .group(fields)
        case .anonymousRequest(var fields):
            try visitor.integer("destination", &fields.destination)
            try visitor.key(&fields.sender, as: "sender")
            try visitor.bytes("mac", &fields.mac, count: 2)
            try visitor.rest("cipher_text", &fields.cipherText)
            self = .anonymousRequest(fields)
        case .trace(var fields):
            try visitor.tag("tag", &fields.tag)
            try visitor.tag("auth", &fields.authCode)
            try visitor.integer("flags", &fields.flags)
            try visitor.rest("hashes", &fields.hashes)
            self = .trace(fields)
        case .multipart(let remaining, let type, var payload):
            // The high four bits count, the low four are the type.
            if remaining > 0xF || type.rawValue > 0xF { throw visitor.invalid("part") }
            var part = remaining << 4 | type.rawValue
            try visitor.integer("part", &part)
            try visitor.rest("payload", &payload)
            self = .multipart(remaining: part >> 4, type: PayloadType(rawValue: part & 0xF), payload: payload)
        case .opaque(var bytes):
            try visitor.rest("bytes", &bytes)
            self = .opaque(bytes)
        }
    }
}
