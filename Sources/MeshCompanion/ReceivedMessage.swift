// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshWire

/// A text message as the radio hands it out on SYNC_NEXT_MESSAGE, in either of its two layouts
/// (codes 07/08, or 10/11 with signal strength since protocol version 3).
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

    /// Decodes a reply with one of the four codes; nil for other frames.
    public init?(_ frame: Data) throws(DecodeError) {
        guard let code = frame.first.flatMap(ReplyCode.init) else { return nil }
        let isV3 = code == .contactMessageV3 || code == .channelMessageV3
        let isContact = code == .contactMessage || code == .contactMessageV3
        guard isV3 || isContact || code == .channelMessage else { return nil }
        self = try ByteReader.decode([UInt8](frame)) { reader throws(DecodeError) in
            try reader.skip(1)
            var snr: Int8?
            if isV3 {
                snr = try reader.read(Int8.self)
                try reader.skip(2)
            }
            let source: Source =
                isContact ? .contact(keyPrefix: try reader.readBytes(6)) : .channel(index: try reader.read(UInt8.self))
            let pathByte = try reader.read(UInt8.self)
            let textType = try reader.read(UInt8.self)
            let timestamp = try reader.read(UInt32.self)
            let author = textType == 2 && isContact ? try reader.readBytes(4) : nil
            return ReceivedMessage(
                source: source, snrQuarters: snr, pathByte: pathByte, textType: textType, timestamp: timestamp,
                authorPrefix: author, text: reader.readText())
        }
    }

    private init(
        source: Source, snrQuarters: Int8?, pathByte: UInt8, textType: UInt8, timestamp: UInt32,
        authorPrefix: [UInt8]?, text: String
    ) {
        self.source = source
        self.snrQuarters = snrQuarters
        self.pathByte = pathByte
        self.textType = textType
        self.timestamp = timestamp
        self.authorPrefix = authorPrefix
        self.text = text
    }
}
