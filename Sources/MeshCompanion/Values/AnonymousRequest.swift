// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI
public import MeshWire

/// What SEND_ANON_REQ asks a repeater that this node has not logged in to (companion-protocol §1.8; firmware
/// examples/simple_repeater/MyMesh.cpp, `handleAnon…Req`). The reply path is the way by which the answer shall come back.
public enum AnonymousRequest: Sendable, Hashable {
    /// 1: the regions whose floods it passes on.
    case regions(replyPath: PacketPath)
    /// 2: whose it is.
    case owner(replyPath: PacketPath)
    /// 3: its clock and what it does.
    case basic(replyPath: PacketPath)
    /// A type of another firmware.
    case unknown(type: UInt8, bytes: Data)

    /// Decodes ``NodeRequest/request`` of a SEND_ANON_REQ.
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
        case .regions: 1
        case .owner: 2
        case .basic: 3
        case .unknown(let type, _): type
        }
    }
}

extension AnonymousRequest: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        var type = self.type
        try visitor.integer("request_type", &type)
        if type != self.type { self = Self.prototype(type) }
        switch self {
        case .regions(var path):
            try visitor.path(&path, as: "reply_path", isRequired: true)
            self = .regions(replyPath: path)
        case .owner(var path):
            try visitor.path(&path, as: "reply_path", isRequired: true)
            self = .owner(replyPath: path)
        case .basic(var path):
            try visitor.path(&path, as: "reply_path", isRequired: true)
            self = .basic(replyPath: path)
        case .unknown(_, var bytes):
            try visitor.rest("bytes", &bytes)
            self = .unknown(type: type, bytes: bytes)
        }
    }

    private static func prototype(_ type: UInt8) -> AnonymousRequest {
        switch type {
        case 1: .regions(replyPath: .zeroHops)
        case 2: .owner(replyPath: .zeroHops)
        case 3: .basic(replyPath: .zeroHops)
        default: .unknown(type: type, bytes: Data())
        }
    }
}

/// What a repeater answers to an ``AnonymousRequest``: the payload of BINARY_RESPONSE.
public enum AnonymousAnswer: Sendable, Hashable {
    /// The names, separated by commas. With the repeater's clock, seconds since 1970, as all of these.
    case regions(clock: UInt32, String)
    case owner(clock: UInt32, nodeName: String, owner: String)
    /// Features: bits 0 and 1 say that it is a bridge (1 serial, 3 ESP-NOW), bit 7 that it does not repeat.
    case basic(clock: UInt32, features: UInt8)
    /// The answer to a request without a known answer.
    case unknown(Data)

    /// Decodes ``BinaryResponse/payload``.
    public init(decoding payload: Data, to request: AnonymousRequest) throws(DecodeError) {
        if case .unknown = request {
            self = .unknown(payload)
            return
        }
        self = try ByteReader.decode([UInt8](payload)) { reader throws(DecodeError) in
            let clock = try reader.read(UInt32.self)
            switch request {
            case .regions: return .regions(clock: clock, reader.readText())
            case .owner:
                let lines = reader.readText().parts(separatedBy: "\n", maximum: 2)
                return .owner(clock: clock, nodeName: lines[0], owner: lines.count > 1 ? lines[1] : "")
            case .basic, .unknown: return .basic(clock: clock, features: try reader.read(UInt8.self))
            }
        }
    }

    /// The fields.
    public var json: JSONValue {
        switch self {
        case .regions(let clock, let names):
            [
                "clock": .int(Int64(clock)),
                "regions": .array(names.parts(separatedBy: ",").filter { !$0.isEmpty }.map { .string($0) }),
            ]
        case .owner(let clock, let name, let owner):
            ["clock": .int(Int64(clock)), "node_name": .string(name), "owner": .string(owner)]
        case .basic(let clock, let features): ["clock": .int(Int64(clock)), "features": .int(Int64(features))]
        case .unknown(let bytes): ["bytes": .string(HexText.text(bytes))]
        }
    }
}
