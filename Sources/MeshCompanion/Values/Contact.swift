// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// A contact as the radio keeps it: CONTACT, and NEW_ADVERT for one that it does not keep (companion-protocol §1.6).
public struct Contact: Sendable, Hashable {
    /// A path field with nothing in it.
    public static let emptyPath = Data(repeating: 0, count: PathByte.maximumPathLength)

    public var publicKey: PublicKey
    public var type: NodeType
    /// Bit 0 is favourite, bits 1 to 3 say which telemetry the contact may ask for.
    public var flags: UInt8
    /// The way to the contact; ``PathByte/none`` if unknown. Kept as it came: an old firmware's may have no meaning.
    public var pathByte: PathByte
    /// The field for the path, 64 bytes of which the path byte tells how many matter.
    public var pathField: Data
    public var name: String
    /// The contact's clock in its last advert, seconds since 1970.
    public var lastAdvert: UInt32
    public var location: Coordinates
    /// When the contact changed, by the radio's clock, seconds since 1970.
    public var lastModified: UInt32

    public init(
        publicKey: PublicKey, type: NodeType, flags: UInt8 = 0, pathByte: PathByte = .none,
        pathField: Data = Contact.emptyPath, name: String, lastAdvert: UInt32, location: Coordinates = .zero,
        lastModified: UInt32
    ) {
        self.publicKey = publicKey
        self.type = type
        self.flags = flags
        self.pathByte = pathByte
        self.pathField = pathField
        self.name = name
        self.lastAdvert = lastAdvert
        self.location = location
        self.lastModified = lastModified
    }

    /// The way to the contact; nil if the path byte has no meaning.
    public var path: PacketPath? {
        PacketPath(byte: pathByte, hashes: Data(pathField.prefix(pathByte.pathLength ?? 0)))
    }

    static let empty = Contact(publicKey: .zero, type: .unknown, name: "", lastAdvert: 0, lastModified: 0)
}

extension Contact: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.key(&publicKey)
        try visitor.nodeType(&type)
        try visitor.integer("flags", &flags)
        try visitor.pathByte(&pathByte)
        try visitor.bytes("path_field", &pathField, count: PathByte.maximumPathLength)
        try visitor.fixedText("contact_name", &name, length: 32)
        try visitor.integer("last_advert", &lastAdvert)
        try visitor.coordinates(&location)
        try visitor.integer("last_modified", &lastModified)
    }
}
