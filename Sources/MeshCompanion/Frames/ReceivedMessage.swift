// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshWire

/// A text message as the radio hands it out on SYNC_NEXT_MESSAGE, in either of its two layouts
/// (codes 07/08, or 10/11 with signal strength since protocol version 3; companion-protocol §1.6).
public struct ReceivedMessage: Sendable, Hashable {
    /// Where it came from.
    public enum Source: Sendable, Hashable {
        /// The first six bytes of the sender's public key.
        case contact(keyPrefix: [UInt8])
        /// The channel's index in the radio.
        case channel(index: UInt8)
    }

    public var source: Source
    /// Signal-to-noise ratio in quarters of a dB; nil in the layout without it.
    public var snrQuarters: Int8?
    /// Hops and hash size in one byte; 0xFF for a message that came without flooding.
    public var pathByte: UInt8
    /// 0 plain, 1 CLI data, 2 signed.
    public var textType: UInt8
    /// The sender's clock, seconds since 1970.
    public var timestamp: UInt32
    /// The first four bytes of the author's key, for signed texts (room servers).
    public var authorPrefix: [UInt8]?
    public var text: String

    public init(
        source: Source, snrQuarters: Int8? = nil, pathByte: UInt8, textType: UInt8 = 0, timestamp: UInt32,
        authorPrefix: [UInt8]? = nil, text: String
    ) {
        self.source = source
        self.snrQuarters = snrQuarters
        self.pathByte = pathByte
        self.textType = textType
        self.timestamp = timestamp
        self.authorPrefix = authorPrefix
        self.text = text
    }

    /// Decodes a reply with one of the four codes; nil for other frames.
    public init?(_ frame: Data) throws(DecodeError) {
        switch frame.first.flatMap(ReplyCode.init) {
        case .contactMessage, .channelMessage, .contactMessageV3, .channelMessageV3: break
        default: return nil
        }
        guard case .message(let message) = try CompanionReply(decoding: frame) else { return nil }
        self = message
    }

    /// The frame for a client that understands this version of the protocol: with the signal strength since version 3.
    /// A message whose strength is not known tells 0 dB there.
    public func encoded(version: UInt8) throws(FieldError) -> Data {
        var message = self
        message.snrQuarters = version >= 3 ? snrQuarters ?? 0 : nil
        return try CompanionReply.message(message).encoded()
    }

    /// The code of this message's layout.
    public var replyCode: ReplyCode {
        switch (source, snrQuarters) {
        case (.contact, nil): .contactMessage
        case (.contact, _): .contactMessageV3
        case (.channel, nil): .channelMessage
        case (.channel, _): .channelMessageV3
        }
    }

    /// A message of the layout with this code, with nothing filled in yet.
    static func prototype(_ code: ReplyCode) -> ReceivedMessage {
        let isContact = code == .contactMessage || code == .contactMessageV3
        let isV3 = code == .contactMessageV3 || code == .channelMessageV3
        return ReceivedMessage(
            source: isContact ? .contact(keyPrefix: []) : .channel(index: 0), snrQuarters: isV3 ? 0 : nil, pathByte: 0,
            timestamp: 0, text: "")
    }
}

extension ReceivedMessage: FieldRecord {
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure) {
        if var strength = snrQuarters.map(SignalToNoise.init) {
            try visitor.signalToNoise(&strength)
            try visitor.reserved("\0\0")
            snrQuarters = strength.quarters
        }
        switch source {
        case .contact(let prefix):
            var bytes = Data(prefix)
            try visitor.bytes("from", &bytes, count: KeyPrefix.length)
            source = .contact(keyPrefix: [UInt8](bytes))
        case .channel(var index):
            try visitor.integer("channel", &index)
            source = .channel(index: index)
        }
        var byte = PathByte(rawValue: pathByte)
        try visitor.pathByte(&byte)
        pathByte = byte.rawValue
        try visitor.integer("text_type", &textType)
        try visitor.integer("timestamp", &timestamp)
        if case .contact = source, textType == TextType.signed.rawValue {
            var author = Data(authorPrefix ?? [])
            try visitor.bytes("author", &author, count: 4)
            authorPrefix = [UInt8](author)
        }
        try visitor.text("text", &text)
    }
}
