// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

// What the commands that send something into the mesh carry (companion-protocol §1.5).

/// SEND_TXT_MSG.
public struct OutgoingText: Sendable, Hashable {
    public var type: TextType
    /// 0 for the first try; the low two bits go into the acknowledgement.
    public var attempt: UInt8
    /// The sender's clock, seconds since 1970.
    public var timestamp: UInt32
    public var recipient: KeyPrefix
    public var text: String

    public init(
        type: TextType = .plain, attempt: UInt8 = 0, timestamp: UInt32, recipient: KeyPrefix, text: String
    ) {
        self.type = type
        self.attempt = attempt
        self.timestamp = timestamp
        self.recipient = recipient
        self.text = text
    }

    static let empty = OutgoingText(timestamp: 0, recipient: .zero, text: "")
}

extension OutgoingText: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("text_type", &type.rawValue)
        try visitor.integer("attempt", &attempt)
        try visitor.integer("timestamp", &timestamp)
        try visitor.prefix("to", &recipient)
        // The firmware asks for one byte of text (`len >= 14`).
        try visitor.requiredText("text", &text)
    }
}

/// SEND_CHANNEL_TXT_MSG. The radio puts its own name in front and cuts what does not fit.
public struct OutgoingChannelText: Sendable, Hashable {
    /// The firmware takes plain texts only.
    public var type: TextType
    public var channel: UInt8
    /// The sender's clock, seconds since 1970.
    public var timestamp: UInt32
    public var text: String

    public init(type: TextType = .plain, channel: UInt8, timestamp: UInt32, text: String) {
        self.type = type
        self.channel = channel
        self.timestamp = timestamp
        self.text = text
    }

    static let empty = OutgoingChannelText(channel: 0, timestamp: 0, text: "")
}

extension OutgoingChannelText: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("text_type", &type.rawValue)
        try visitor.integer("channel", &channel)
        try visitor.integer("timestamp", &timestamp)
        try visitor.requiredText("text", &text)
    }
}

/// SEND_CHANNEL_DATA.
public struct OutgoingChannelData: Sendable, Hashable {
    public var channel: UInt8
    /// ``PacketPath/none`` floods.
    public var path: PacketPath
    /// What the payload is; 0 is reserved.
    public var dataType: UInt16
    public var payload: Data

    public init(channel: UInt8, path: PacketPath = .none, dataType: UInt16, payload: Data) {
        self.channel = channel
        self.path = path
        self.dataType = dataType
        self.payload = payload
    }

    static let empty = OutgoingChannelData(channel: 0, dataType: 0, payload: Data())
}

extension OutgoingChannelData: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("channel", &channel)
        try visitor.path(&path)
        try visitor.integer("data_type", &dataType)
        try visitor.rest("payload", &payload)
    }
}

/// SEND_RAW_DATA.
public struct OutgoingRawData: Sendable, Hashable {
    /// The firmware refuses to flood, so there must be a path; it may have no hops.
    public var path: PacketPath
    /// At least four bytes.
    public var payload: Data

    public init(path: PacketPath, payload: Data) {
        self.path = path
        self.payload = payload
    }

    static let empty = OutgoingRawData(path: .zeroHops, payload: Data())
}

extension OutgoingRawData: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.path(&path, isRequired: true)
        try visitor.rest("payload", &payload, minimum: 4)
    }
}

/// SEND_RAW_PACKET.
public struct OutgoingRawPacket: Sendable, Hashable {
    /// The place in the radio's queue; 0 goes first.
    public var priority: UInt8
    /// A whole ``MeshPacket``, at least two bytes.
    public var packet: Data

    public init(priority: UInt8, packet: Data) {
        self.priority = priority
        self.packet = packet
    }

    static let empty = OutgoingRawPacket(priority: 0, packet: Data())
}

extension OutgoingRawPacket: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        try visitor.integer("priority", &priority)
        try visitor.rest("packet", &packet, minimum: 2)
        let packet = packet
        visitor.derived("decoded", MeshPacket.json(decoding: packet))
    }
}
