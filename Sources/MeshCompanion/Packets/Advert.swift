// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// What a node tells of itself: the payload of an ADVERT (firmware src/Mesh.cpp, `createAdvert`;
/// src/helpers/AdvertDataHelpers.h). The signature covers all but itself:
/// ``MeshPacket/isAdvertSignatureValid()``.
public struct Advert: Sendable, Hashable {
    public var publicKey: PublicKey
    /// The node's clock, seconds since 1970.
    public var timestamp: UInt32
    /// 64 bytes.
    public var signature: Data
    public var type: NodeType
    public var location: Coordinates?
    /// For later (`ADV_FEAT1_MASK`).
    public var firstFeature: UInt16?
    /// For later (`ADV_FEAT2_MASK`).
    public var secondFeature: UInt16?
    public var name: String?

    public init(
        publicKey: PublicKey, timestamp: UInt32, signature: Data, type: NodeType, location: Coordinates? = nil,
        firstFeature: UInt16? = nil, secondFeature: UInt16? = nil, name: String? = nil
    ) {
        self.publicKey = publicKey
        self.timestamp = timestamp
        self.signature = signature
        self.type = type
        self.location = location
        self.firstFeature = firstFeature
        self.secondFeature = secondFeature
        self.name = name
    }

    static let empty = Advert(publicKey: .zero, timestamp: 0, signature: Data(), type: .unknown)

    /// The bits of the flags byte above the type (`ADV_*_MASK`).
    private enum Flag {
        static let type: UInt8 = 0x0F
        static let location: UInt8 = 0x10
        static let firstFeature: UInt8 = 0x20
        static let secondFeature: UInt8 = 0x40
        static let name: UInt8 = 0x80
    }

    private var flags: UInt8 {
        type.rawValue & Flag.type | (location == nil ? 0 : Flag.location)
            | (firstFeature == nil ? 0 : Flag.firstFeature) | (secondFeature == nil ? 0 : Flag.secondFeature)
            | (name == nil ? 0 : Flag.name)
    }
}

extension Advert: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        if type.rawValue > Flag.type { throw visitor.invalid("type") }
        try visitor.key(&publicKey)
        try visitor.integer("timestamp", &timestamp)
        try visitor.bytes("signature", &signature, count: 64)
        // A node with nothing to say of itself sends no flags either.
        var flags = flags
        guard try visitor.begin("flags", isSet: true) else { return }
        try visitor.integer("flags", &flags)
        type = NodeType(rawValue: flags & Flag.type)
        if flags & Flag.location != 0 {
            var place = location ?? .zero
            try visitor.coordinates(&place)
            location = place
        }
        if flags & Flag.firstFeature != 0 {
            var feature = firstFeature ?? 0
            try visitor.integer("feature_1", &feature)
            firstFeature = feature
        }
        if flags & Flag.secondFeature != 0 {
            var feature = secondFeature ?? 0
            try visitor.integer("feature_2", &feature)
            secondFeature = feature
        }
        if flags & Flag.name != 0 {
            var text = name ?? ""
            try visitor.text("node_name", &text)
            name = text
        }
    }
}
