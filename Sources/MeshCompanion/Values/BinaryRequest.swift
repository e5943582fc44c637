// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI
public import MeshWire

/// What SEND_BINARY_REQ asks a node (companion-protocol §1.8; firmware examples/simple_repeater/MyMesh.cpp,
/// `handleRequest`; min/max/avg examples/simple_sensor/SensorMesh.cpp).
public enum BinaryRequest: Sendable, Hashable {
    /// 1.
    case status
    /// 2; its layout is the room server's.
    case keepAlive(Data)
    /// 3. The mask says which permissions not to use: what is not wanted. Absent in meshcore_py.
    case telemetry(inverseMask: UInt8?)
    /// 4: the extremes and the mean of a sensor's values between two times, both in seconds ago.
    case minMaxAverage(startSecondsAgo: UInt32, endSecondsAgo: UInt32)
    /// 5; administrators only.
    case accessList
    /// 6.
    case neighbours(NeighboursRequest)
    /// 7; servers of firmware level 2.
    case owner
    /// A type of another firmware.
    case unknown(type: UInt8, bytes: Data)

    /// Decodes ``NodeRequest/request`` of a SEND_BINARY_REQ.
    public init(decoding request: Data) throws(DecodeError) {
        self = try WireFieldReader.decode(request, as: Self.prototype)
    }

    /// The bytes for ``NodeRequest/request``.
    public func encoded() throws(FieldError) -> Data { try WireFieldWriter.encode(self) }

    /// Reads the members that ``json`` writes.
    public init(json: JSONValue) throws(FieldError) {
        guard let members = json.objectValue else { throw FieldError("request", .wrongType(expected: "an object")) }
        self = try JSONFieldReader.record(members, as: Self.prototype)
    }

    /// The fields, `request_type` first of all.
    public var json: JSONValue { .object(JSONFieldWriter.members(of: self, showsSecrets: false)) }

    /// A request of which the type is still to be read: no request has type 0.
    static var prototype: Self { .unknown(type: 0, bytes: Data()) }

    /// The first byte.
    public var type: UInt8 {
        switch self {
        case .status: 1
        case .keepAlive: 2
        case .telemetry: 3
        case .minMaxAverage: 4
        case .accessList: 5
        case .neighbours: 6
        case .owner: 7
        case .unknown(let type, _): type
        }
    }

    private static func prototype(_ type: UInt8) -> BinaryRequest {
        switch type {
        case 1: .status
        case 2: .keepAlive(Data())
        case 3: .telemetry(inverseMask: nil)
        case 4: .minMaxAverage(startSecondsAgo: 0, endSecondsAgo: 0)
        case 5: .accessList
        case 6: .neighbours(NeighboursRequest())
        case 7: .owner
        default: .unknown(type: type, bytes: Data())
        }
    }
}

extension BinaryRequest: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        var type = self.type
        try visitor.integer("request_type", &type)
        if type != self.type { self = Self.prototype(type) }
        switch self {
        case .status, .owner: break
        case .keepAlive(var bytes):
            try visitor.rest("bytes", &bytes)
            self = .keepAlive(bytes)
        case .telemetry(var mask):
            try visitor.integer("inverse_mask", optional: &mask)
            self = .telemetry(inverseMask: mask)
        case .minMaxAverage(var start, var end):
            try visitor.integer("start_seconds_ago", &start)
            try visitor.integer("end_seconds_ago", &end)
            try visitor.reserved("\0\0")
            self = .minMaxAverage(startSecondsAgo: start, endSecondsAgo: end)
        case .accessList:
            // "Extra query params": the firmware answers only to zeros.
            try visitor.constant("parameters", "\0\0")
        case .neighbours(var fields):
            try fields.visit(&visitor)
            self = .neighbours(fields)
        case .unknown(_, var bytes):
            try visitor.rest("bytes", &bytes)
            self = .unknown(type: type, bytes: bytes)
        }
    }
}

/// Which neighbours a repeater shall tell.
public struct NeighboursRequest: Sendable, Hashable {
    /// At most so many.
    public var count: UInt8
    /// From this one on, in the order asked for.
    public var offset: UInt16
    /// 0 newest first, 1 oldest first, 2 strongest first, 3 weakest first.
    public var order: UInt8
    /// How many bytes of each key.
    public var prefixLength: UInt8
    /// Four random bytes: two like requests are then not the same packet.
    public var nonce: UInt32

    public init(count: UInt8 = 255, offset: UInt16 = 0, order: UInt8 = 0, prefixLength: UInt8 = 4, nonce: UInt32 = 0) {
        self.count = count
        self.offset = offset
        self.order = order
        self.prefixLength = prefixLength
        self.nonce = nonce
    }
}

extension NeighboursRequest: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        // The version of the request; the firmware knows 0.
        try visitor.constant("version", "\0")
        try visitor.integer("count", &count)
        try visitor.integer("offset", &offset)
        try visitor.integer("order", &order)
        try visitor.integer("prefix_length", &prefixLength)
        try visitor.tag("nonce", &nonce)
    }
}
