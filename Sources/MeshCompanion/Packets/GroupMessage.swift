// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshCrypto
public import MeshTransportAPI
public import MeshWire

/// What a packet of a channel says, decrypted (firmware src/helpers/BaseChatMesh.cpp, `onGroupDataRecv`).
public enum GroupMessage: Sendable, Hashable {
    /// GRP_TXT.
    case text(GroupText)
    /// GRP_DATA.
    case data(type: UInt16, Data)

    /// Reads the plain text of a packet of this type, which may have zeros at the end. Types other than GRP_TXT and
    /// GRP_DATA are ``DecodeError/Reason/unknownCode(_:)``.
    public init(decoding plainText: Data, as type: PayloadType) throws(DecodeError) {
        self = try ByteReader.decode([UInt8](plainText)) { reader throws(DecodeError) in
            switch type {
            case .groupText:
                let timestamp = try reader.read(UInt32.self)
                let flags = try reader.read(UInt8.self)
                return .text(
                    GroupText(
                        timestamp: timestamp, type: TextType(rawValue: flags >> 2), attempt: flags & 3,
                        line: reader.readText()))
            case .groupData:
                let type = try reader.read(UInt16.self)
                let count = try reader.read(UInt8.self)
                return .data(type: type, Data(try reader.readBuffer(Int(count))))
            default: throw DecodeError(.unknownCode(type.rawValue), offset: 0)
            }
        }
    }

    /// The plain text, to be sealed with ``PacketContents/Group/init(sealing:for:)``.
    public func encoded() throws(FieldError) -> Data {
        var writer = ByteWriter()
        switch self {
        case .text(let text):
            if text.type.rawValue > 0x3F { throw FieldError("text_type", .outOfRange(0...0x3F)) }
            if text.attempt > 3 { throw FieldError("attempt", .outOfRange(0...3)) }
            if text.line.utf8.contains(0) { throw FieldError("text", .holdsNUL) }
            writer.write(text.timestamp)
            writer.write(text.type.rawValue << 2 | text.attempt)
            writer.writeText(text.line)
        case .data(let type, let data):
            guard let count = UInt8(exactly: data.count) else { throw FieldError("data", .tooLong(limit: 255)) }
            writer.write(type)
            writer.write(count)
            writer.write(contentsOf: data)
        }
        return Data(writer.bytes)
    }

    /// The type of the packet that carries it.
    public var payloadType: PayloadType {
        switch self {
        case .text: .groupText
        case .data: .groupData
        }
    }

    /// The fields. The author is null where the text names none.
    public var json: JSONValue {
        switch self {
        case .text(let text):
            [
                "timestamp": .int(Int64(text.timestamp)), "text_type": .int(Int64(text.type.rawValue)),
                "attempt": .int(Int64(text.attempt)), "sender": text.sender.map { .string($0) } ?? .null,
                "text": .string(text.text),
            ]
        case .data(let type, let data):
            ["data_type": .int(Int64(type)), "data": .string(HexText.text(data))]
        }
    }
}

/// A text of a channel. Who wrote it is part of the text: nothing proves it.
public struct GroupText: Sendable, Hashable {
    /// The author's clock, seconds since 1970.
    public var timestamp: UInt32
    /// Radios of firmware v1.17.1 take ``TextType/plain`` only.
    public var type: TextType
    /// 0 to 3.
    public var attempt: UInt8
    /// The whole, `author: text`.
    public var line: String

    public init(timestamp: UInt32, type: TextType = .plain, attempt: UInt8 = 0, line: String) {
        self.timestamp = timestamp
        self.type = type
        self.attempt = attempt
        self.line = line
    }

    /// The author as the text names it: what stands before the first `: `; nil without one.
    public var sender: String? { separator.map { String(line[..<$0.lowerBound]) } }

    /// The text without its author.
    public var text: String { separator.map { String(line[$0.upperBound...]) } ?? line }

    /// Where the first `: ` is. By bytes: a combining character after the blank makes one character with it.
    private var separator: Range<String.Index>? {
        let bytes = line.utf8
        var index = bytes.startIndex
        while let colon = bytes[index...].firstIndex(of: UInt8(ascii: ":")) {
            index = bytes.index(after: colon)
            if index < bytes.endIndex, bytes[index] == UInt8(ascii: " ") { return colon..<bytes.index(after: index) }
        }
        return nil
    }
}

/// A packet of a channel whose key is known.
public struct OpenedGroup: Sendable, Hashable {
    public var channel: ChannelKey
    public var payloadType: PayloadType
    /// With zeros up to whole blocks at the end.
    public var plainText: Data

    public init(channel: ChannelKey, payloadType: PayloadType, plainText: Data) {
        self.channel = channel
        self.payloadType = payloadType
        self.plainText = plainText
    }

    /// What it says.
    public func message() throws(DecodeError) -> GroupMessage {
        try GroupMessage(decoding: plainText, as: payloadType)
    }

    /// `channel`, and the fields of the message or `error`.
    public var json: JSONValue {
        var members: [String: JSONValue]
        do throws(DecodeError) {
            members = try message().json.objectValue ?? [:]
        } catch {
            members = ["error": .string("\(error)"), "plain_text": .string(HexText.text(plainText))]
        }
        members["channel"] = .string(channel.name)
        return .object(members)
    }
}

extension MeshPacket {
    /// A packet of a channel, opened with the first of `channels` that fits. Nil for other packets, and if none does.
    public func opened(with channels: [ChannelKey]) throws(CryptoError) -> OpenedGroup? {
        guard payloadType == .groupText || payloadType == .groupData, case .group(let group)? = try? contents() else {
            return nil
        }
        for channel in channels {
            if let plainText = try group.opened(with: channel) {
                return OpenedGroup(channel: channel, payloadType: payloadType, plainText: plainText)
            }
        }
        return nil
    }
}
