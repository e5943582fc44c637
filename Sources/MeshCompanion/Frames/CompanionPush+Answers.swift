// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshWire

// What pushes carry that answer a request of this radio (companion-protocol §1.7).

/// SEND_CONFIRMED: the acknowledgement of a message has come.
public struct SendConfirmation: Sendable, Hashable {
    /// As in ``SentReceipt/tag``.
    public var acknowledgement: UInt32
    /// From sending to the acknowledgement; absent in very old firmware.
    public var tripMilliseconds: UInt32?

    public init(acknowledgement: UInt32, tripMilliseconds: UInt32? = nil) {
        self.acknowledgement = acknowledgement
        self.tripMilliseconds = tripMilliseconds
    }

    static let empty = SendConfirmation(acknowledgement: 0)
}

extension SendConfirmation: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.tag("ack", &acknowledgement)
        try visitor.integer("trip_ms", optional: &tripMilliseconds)
    }
}

/// LOGIN_SUCCESS. Which of the later fields there are follows from the length.
public struct LoginSuccess: Sendable, Hashable {
    /// Bit 0 is set for an administrator.
    public var permissions: UInt8
    public var server: KeyPrefix
    /// The server's clock, seconds since 1970; since v1.10, as those after it.
    public var serverTime: UInt32?
    /// What this node may do there, as in the server's access list.
    public var accessPermissions: UInt8?
    /// Which requests the server knows.
    public var firmwareLevel: UInt8?

    public init(
        permissions: UInt8, server: KeyPrefix, serverTime: UInt32? = nil, accessPermissions: UInt8? = nil,
        firmwareLevel: UInt8? = nil
    ) {
        self.permissions = permissions
        self.server = server
        self.serverTime = serverTime
        self.accessPermissions = accessPermissions
        self.firmwareLevel = firmwareLevel
    }

    /// Whether the server takes this node for an administrator.
    public var isAdministrator: Bool { permissions & 1 == 1 }

    static let empty = LoginSuccess(permissions: 0, server: .zero)
}

extension LoginSuccess: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("permissions", &permissions)
        try visitor.prefix("from", &server)
        try visitor.integer("server_time", optional: &serverTime)
        try visitor.integer("access_permissions", optional: &accessPermissions)
        try visitor.integer("firmware_level", optional: &firmwareLevel)
    }
}

/// STATUS_RESPONSE: the answer to SEND_STATUS_REQ.
public struct StatusResponse: Sendable, Hashable {
    public var node: KeyPrefix
    public var status: NodeStatus

    public init(node: KeyPrefix, status: NodeStatus) {
        self.node = node
        self.status = status
    }

    static let empty = StatusResponse(node: .zero, status: .empty)
}

extension StatusResponse: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.reserved("\0")
        try visitor.prefix("from", &node)
        try status.visit(&visitor)
    }
}

/// TELEMETRY_RESPONSE: the answer to SEND_TELEMETRY_REQ.
public struct TelemetryResponse: Sendable, Hashable {
    public var node: KeyPrefix
    /// Cayenne LPP; kept as it came, since one unknown sensor hides those after it.
    public var payload: Data

    public init(node: KeyPrefix, payload: Data) {
        self.node = node
        self.payload = payload
    }

    /// What the sensors say.
    public func readings() throws(DecodeError) -> [CayenneLPP.Reading] { try CayenneLPP.decode(payload) }

    static let empty = TelemetryResponse(node: .zero, payload: Data())
}

extension TelemetryResponse: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.reserved("\0")
        try visitor.prefix("from", &node)
        try visitor.rest("payload", &payload)
        let payload = payload
        visitor.derived("telemetry", CayenneLPP.json(payload))
    }
}

/// BINARY_RESPONSE: the answer to SEND_BINARY_REQ or SEND_ANON_REQ.
public struct BinaryResponse: Sendable, Hashable {
    /// As in ``SentReceipt/tag`` of the request.
    public var tag: UInt32
    /// In the layout of the request: ``BinaryAnswer``, ``AnonymousAnswer``.
    public var payload: Data

    public init(tag: UInt32, payload: Data) {
        self.tag = tag
        self.payload = payload
    }

    static let empty = BinaryResponse(tag: 0, payload: Data())
}

extension BinaryResponse: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.reserved("\0")
        try visitor.tag("tag", &tag)
        try visitor.rest("payload", &payload)
    }
}

/// PATH_DISCOVERY_RESPONSE: the ways there and back.
public struct PathDiscovery: Sendable, Hashable {
    public var node: KeyPrefix
    public var outward: PacketPath
    public var inward: PacketPath

    public init(node: KeyPrefix, outward: PacketPath, inward: PacketPath) {
        self.node = node
        self.outward = outward
        self.inward = inward
    }

    static let empty = PathDiscovery(node: .zero, outward: .zeroHops, inward: .zeroHops)
}

extension PathDiscovery: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.reserved("\0")
        try visitor.prefix("from", &node)
        try visitor.path(&outward, as: "outward_path")
        try visitor.path(&inward, as: "inward_path")
    }
}
