// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
internal import MeshTransportAPI
public import MeshWire

/// A packet as it is on the air: header, transport codes, path, payload (firmware src/Packet.cpp, `Packet::readFrom`).
///
/// It is what LOG_RX_DATA, EXPORT_CONTACT and IMPORT_CONTACT carry. Decoding decrypts and verifies nothing: see
/// ``opened(with:)`` and ``isAdvertSignatureValid()``.
public struct MeshPacket: Sendable, Hashable {
    /// The most bytes of a payload (`MAX_PACKET_PAYLOAD`, firmware src/MeshCore.h).
    public static let maximumPayload = 184

    /// How a packet finds its way: the low two bits of the header.
    public enum Route: UInt8, Sendable, Hashable, CaseIterable {
        /// By flooding, within a region.
        case transportFlood = 0
        /// By flooding.
        case flood = 1
        /// Along the path.
        case direct = 2
        /// Along the path, within a region.
        case transportDirect = 3

        /// Whether transport codes follow the header.
        public var hasTransportCodes: Bool { self == .transportFlood || self == .transportDirect }
    }

    /// The regions a packet is for: truncated keyed hashes of its payload (companion-protocol §1.8).
    public struct TransportCodes: Sendable, Hashable {
        public var first: UInt16
        public var second: UInt16

        public init(first: UInt16, second: UInt16) {
            self.first = first
            self.second = second
        }
    }

    public var route: Route
    public var payloadType: PayloadType
    /// The layout of the payload, 0 to 3; firmware v1.17.1 knows 0.
    public var version: UInt8
    /// Of routes with transport codes.
    public var transportCodes: TransportCodes?
    /// The nodes passed so far, or still to pass. In a trace the ratios noted so far, a byte each.
    public var path: PacketPath
    public var payload: Data

    public init(
        route: Route, payloadType: PayloadType, version: UInt8 = 0, transportCodes: TransportCodes? = nil,
        path: PacketPath = .zeroHops, payload: Data
    ) {
        self.route = route
        self.payloadType = payloadType
        self.version = version
        self.transportCodes = transportCodes
        self.path = path
        self.payload = payload
    }

    /// Decodes a whole packet. Like the firmware, it takes none without a payload and none of more than 184 bytes.
    public init(decoding packet: Data) throws(DecodeError) {
        self = try WireFieldReader.decode(packet, as: .empty)
    }

    /// The packet's bytes.
    public func encoded() throws(FieldError) -> Data { try WireFieldWriter.encode(self) }

    /// The parts of the payload. An error's offset counts from the start of the payload.
    public func contents() throws(DecodeError) -> PacketContents {
        try WireFieldReader.decode(payload, as: version == 0 ? .prototype(payloadType) : .opaque(Data()))
    }

    static let empty = MeshPacket(route: .flood, payloadType: .request, payload: Data())

    /// `0bVVPPPPRR`.
    private var header: UInt8 {
        get { version << 6 | (payloadType.rawValue & 0xF) << 2 | route.rawValue }
        set {
            version = newValue >> 6
            payloadType = PayloadType(rawValue: newValue >> 2 & 0xF)
            // Two bits: every value is a route.
            route = Route(rawValue: newValue & 3) ?? .flood
        }
    }
}

extension MeshPacket: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        if version > 3 || payloadType.rawValue > 0xF { throw visitor.invalid("header") }
        if route.hasTransportCodes != (transportCodes != nil) { throw visitor.invalid("transport_code_1") }
        var header = header
        try visitor.integer("header", &header)
        self.header = header
        visitor.derived("route", .string("\(route)"))
        visitor.derived("payload_type", .string(payloadType.name))
        visitor.derived("version", .int(Int64(version)))
        transportCodes = route.hasTransportCodes ? transportCodes ?? TransportCodes(first: 0, second: 0) : nil
        if var codes = transportCodes {
            try visitor.integer("transport_code_1", &codes.first)
            try visitor.integer("transport_code_2", &codes.second)
            transportCodes = codes
        }
        try visitor.path(&path, isRequired: true)
        let hops = path.hops.map { JSONValue.string(HexText.text($0)) }
        visitor.derived("hops", .array(hops))
        try visitor.rest("payload", &payload, minimum: 1)
        if payload.count > Self.maximumPayload { throw visitor.invalid("payload") }
    }
}
