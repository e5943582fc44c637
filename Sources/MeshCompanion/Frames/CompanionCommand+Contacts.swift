// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

// What the commands about contacts carry (companion-protocol §1.5).

/// ADD_UPDATE_CONTACT: a contact as the radio shall keep it (firmware `MyMesh::updateContactFromFrame`).
public struct ContactUpdate: Sendable, Hashable {
    public var publicKey: PublicKey
    public var type: NodeType
    /// Bit 0 is favourite, bits 1 to 3 say which telemetry the contact may ask for.
    public var flags: UInt8
    /// The way to the contact; ``PathByte/none`` if it is to be found by flooding.
    public var pathByte: PathByte
    /// The field for the path, 64 bytes of which the path byte tells how many matter.
    public var pathField: Data
    public var name: String
    /// The contact's clock in its last advert, seconds since 1970.
    public var lastAdvert: UInt32
    public var location: Coordinates?
    /// When the contact changed, by the radio's clock, seconds since 1970; the radio's time if absent. Only after a
    /// location.
    public var lastModified: UInt32?

    public init(
        publicKey: PublicKey, type: NodeType, flags: UInt8 = 0, pathByte: PathByte = .none,
        pathField: Data = Contact.emptyPath, name: String, lastAdvert: UInt32, location: Coordinates? = nil,
        lastModified: UInt32? = nil
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

    static let empty = ContactUpdate(publicKey: .zero, type: .unknown, name: "", lastAdvert: 0)
}

extension ContactUpdate: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.key(&publicKey)
        try visitor.nodeType(&type)
        try visitor.integer("flags", &flags)
        try visitor.pathByte(&pathByte)
        try visitor.bytes("path_field", &pathField, count: PathByte.maximumPathLength)
        try visitor.fixedText("contact_name", &name, length: 32)
        try visitor.integer("last_advert", &lastAdvert)
        if try visitor.begin("latitude_deg", isSet: location != nil) {
            var place = location ?? .zero
            try visitor.coordinates(&place)
            location = place
        } else {
            location = nil
        }
        try visitor.integer("last_modified", optional: &lastModified)
    }
}
