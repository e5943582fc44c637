// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshWire

// What pushes carry that tell what the radio heard (companion-protocol §1.7).

/// RAW_DATA: a raw datagram for this node.
public struct ReceivedRawData: Sendable, Hashable {
    public var signalToNoise: SignalToNoise
    /// dBm.
    public var rssi: Int8
    public var payload: Data

    public init(signalToNoise: SignalToNoise, rssi: Int8, payload: Data) {
        self.signalToNoise = signalToNoise
        self.rssi = rssi
        self.payload = payload
    }

    static let empty = ReceivedRawData(signalToNoise: SignalToNoise(quarters: 0), rssi: 0, payload: Data())
}

extension ReceivedRawData: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.signalToNoise(&signalToNoise)
        try visitor.integer("rssi_dbm", &rssi)
        // 0xFF, "possibly path_len in future".
        var future = Data([0xFF])
        try visitor.opaque(&future, count: 1)
        try visitor.rest("packet", &payload)
    }
}

/// LOG_RX_DATA: every packet the radio hears; by far the most frequent frame.
public struct ReceivedPacketLog: Sendable, Hashable {
    public var signalToNoise: SignalToNoise
    /// dBm.
    public var rssi: Int8
    /// As it was on the air; kept so, since foreign packets are heard too.
    public var packet: Data

    public init(signalToNoise: SignalToNoise, rssi: Int8, packet: Data) {
        self.signalToNoise = signalToNoise
        self.rssi = rssi
        self.packet = packet
    }

    /// The packet's parts.
    public func decodedPacket() throws(DecodeError) -> MeshPacket { try MeshPacket(decoding: packet) }

    static let empty = ReceivedPacketLog(signalToNoise: SignalToNoise(quarters: 0), rssi: 0, packet: Data())
}

extension ReceivedPacketLog: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.signalToNoise(&signalToNoise)
        try visitor.integer("rssi_dbm", &rssi)
        try visitor.rest("packet", &packet)
        let packet = packet
        visitor.derived("decoded", MeshPacket.json(decoding: packet))
    }
}

/// TRACE_DATA: how well each node on a path heard the one before.
public struct TraceResult: Sendable, Hashable {
    /// The low two bits are the binary logarithm of the bytes of each hash.
    public var flags: UInt8
    /// The client's choice in ``TraceRequest/tag``.
    public var tag: UInt32
    public var authCode: UInt32
    /// The hashes of the nodes, one after the other; at most 255 bytes.
    public var hashes: Data
    /// One for each node.
    public var signalToNoise: [SignalToNoise]
    /// How well this radio heard the last node.
    public var finalSignalToNoise: SignalToNoise

    public init(
        flags: UInt8, tag: UInt32, authCode: UInt32, hashes: Data, signalToNoise: [SignalToNoise],
        finalSignalToNoise: SignalToNoise
    ) {
        self.flags = flags
        self.tag = tag
        self.authCode = authCode
        self.hashes = hashes
        self.signalToNoise = signalToNoise
        self.finalSignalToNoise = finalSignalToNoise
    }

    /// How many bytes name a node.
    public var hashSize: Int { 1 << Int(flags & 3) }

    static let empty = TraceResult(
        flags: 0, tag: 0, authCode: 0, hashes: Data(), signalToNoise: [],
        finalSignalToNoise: SignalToNoise(quarters: 0))
}

extension TraceResult: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.reserved("\0")
        // A count of bytes, not a path byte (companion-protocol §1.8).
        var length = UInt8(clamping: hashes.count)
        try visitor.integer("path_length", &length)
        try visitor.integer("flags", &flags)
        try visitor.tag("tag", &tag)
        try visitor.tag("auth", &authCode)
        try visitor.bytes("path", &hashes, count: Int(length))
        let count = Int(length) >> Int(flags & 3)
        var rows = signalToNoise.map(TraceStep.init)
        try visitor.rows("steps", &rows, prototype: TraceStep(signalToNoise: SignalToNoise(quarters: 0)), count: count)
        if rows.count != count { throw visitor.invalid("steps") }
        signalToNoise = rows.map(\.signalToNoise)
        try visitor.signalToNoise(&finalSignalToNoise, as: "final_snr_db")
    }
}

/// One ratio of a ``TraceResult``.
private struct TraceStep: FieldRecord {
    var signalToNoise: SignalToNoise

    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.signalToNoise(&signalToNoise)
    }
}

/// CONTROL_DATA: a control packet of a neighbour.
public struct ReceivedControlData: Sendable, Hashable {
    public var signalToNoise: SignalToNoise
    /// dBm.
    public var rssi: Int8
    public var pathByte: PathByte
    public var payload: Data

    public init(signalToNoise: SignalToNoise, rssi: Int8, pathByte: PathByte, payload: Data) {
        self.signalToNoise = signalToNoise
        self.rssi = rssi
        self.pathByte = pathByte
        self.payload = payload
    }

    static let empty = ReceivedControlData(
        signalToNoise: SignalToNoise(quarters: 0), rssi: 0, pathByte: .zeroHops, payload: Data())
}

extension ReceivedControlData: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.signalToNoise(&signalToNoise)
        try visitor.integer("rssi_dbm", &rssi)
        try visitor.pathByte(&pathByte)
        try visitor.rest("payload", &payload)
    }
}
