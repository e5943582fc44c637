// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

// What the commands that ask another node carry (companion-protocol §1.5).

/// SEND_LOGIN.
public struct Login: Sendable, Hashable {
    public var publicKey: PublicKey
    /// At most 15 bytes.
    public var password: String

    public init(publicKey: PublicKey, password: String) {
        self.publicKey = publicKey
        self.password = password
    }

    static let empty = Login(publicKey: .zero, password: "")
}

extension Login: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.key(&publicKey)
        try visitor.text("password", &password, limit: 15, secret: true)
    }
}

/// SEND_BINARY_REQ, SEND_ANON_REQ: a request to a node in its own layout.
public struct NodeRequest: Sendable, Hashable {
    public var publicKey: PublicKey
    /// A ``BinaryRequest`` or an ``AnonymousRequest``.
    public var request: Data

    public init(publicKey: PublicKey, request: Data) {
        self.publicKey = publicKey
        self.request = request
    }

    static let empty = NodeRequest(publicKey: .zero, request: Data())
}

extension NodeRequest: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.key(&publicKey)
        try visitor.rest("request", &request, minimum: 1)
    }
}

/// SEND_TRACE_PATH: asks each node on a path how well it heard the one before.
public struct TraceRequest: Sendable, Hashable {
    /// The client's choice; the answer carries it.
    public var tag: UInt32
    public var authCode: UInt32
    /// The low two bits are the binary logarithm of the bytes of each hash.
    public var flags: UInt8
    /// The hashes of the nodes, at least one byte and a whole number of hashes.
    public var path: Data

    public init(tag: UInt32, authCode: UInt32 = 0, flags: UInt8 = 0, path: Data) {
        self.tag = tag
        self.authCode = authCode
        self.flags = flags
        self.path = path
    }

    /// How many bytes name a node.
    public var hashSize: Int { 1 << Int(flags & 3) }

    static let empty = TraceRequest(tag: 0, path: Data())
}

extension TraceRequest: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.tag("tag", &tag)
        try visitor.tag("auth", &authCode)
        try visitor.integer("flags", &flags)
        try visitor.rest("path", &path, minimum: 1)
        if !path.count.isMultiple(of: hashSize) { throw visitor.invalid("path") }
    }
}
