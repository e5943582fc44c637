// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI
internal import MeshWire

/// Which way a frame went.
public enum FrameDirection: String, Sendable, Hashable {
    case fromClient = "from-client"
    case fromRadio = "from-radio"
}

extension CompanionFrame {
    /// What a frame says, as far as this version reads it: its name, and its fields where the layout is known. Never
    /// fails: what cannot be read is told in `error`, and `raw` always has the bytes.
    public static func json(_ frame: Data, _ direction: FrameDirection) -> JSONValue {
        var object: [String: JSONValue] = ["raw": .string(hex(frame)), "length": .int(Int64(frame.count))]
        guard let first = frame.first else {
            object["error"] = "an empty frame"
            return .object(object)
        }
        object["code"] = .int(Int64(first))
        do throws(DecodeError) {
            switch direction {
            case .fromClient:
                object["name"] = .string(commandName(first))
                object.merge(try commandFields(frame), uniquingKeysWith: { $1 })
            case .fromRadio:
                object["name"] = .string(answerName(first))
                object.merge(try answerFields(frame), uniquingKeysWith: { $1 })
            }
        } catch {
            object["error"] = .string("\(error)")
        }
        return .object(object)
    }

    /// Lower-case hexadecimal digits.
    public static func hex(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func commandName(_ code: UInt8) -> String {
        CommandCode(rawValue: code).map { CommandSpec.of($0).name } ?? "UNKNOWN"
    }

    private static func answerName(_ code: UInt8) -> String {
        if let push = PushCode(rawValue: code) { return "push.\(push)" }
        if let reply = ReplyCode(rawValue: code) { return "reply.\(reply)" }
        return "UNKNOWN"
    }

    private static func commandFields(_ frame: Data) throws(DecodeError) -> [String: JSONValue] {
        guard let code = frame.first.flatMap(CommandCode.init) else { return [:] }
        let spec = CommandSpec.of(code)
        var fields: [String: JSONValue] = ["role": .string(spec.role.rawValue)]
        if !CommandSpec.isLengthAllowed(code, frame.count) {
            throw DecodeError(.truncated(missing: max(1, spec.minimumLength - frame.count)), offset: frame.count)
        }
        switch code {
        case .appStart: fields["app"] = .string(String(decoding: frame.dropFirst(8), as: UTF8.self))
        case .deviceQuery: fields["version"] = .int(Int64(frame[frame.startIndex + 1]))
        case .getChannel: fields["channel"] = .int(Int64(frame[frame.startIndex + 1]))
        default: break
        }
        return fields
    }

    private static func answerFields(_ frame: Data) throws(DecodeError) -> [String: JSONValue] {
        if let message = try ReceivedMessage(frame) { return message.fields }
        guard let first = frame.first else { return [:] }
        return try ByteReader.decode([UInt8](frame)) { reader throws(DecodeError) in
            try reader.skip(1)
            if let push = PushCode(rawValue: first) { return try pushFields(push, &reader) }
            if let reply = ReplyCode(rawValue: first) { return try replyFields(reply, &reader) }
            return [:]
        }
    }

    private static func pushFields(
        _ code: PushCode, _ reader: inout ByteReader
    ) throws(DecodeError) -> [String: JSONValue] {
        switch code {
        case .advert, .pathUpdated, .contactDeleted:
            return ["public_key": .string(hex(try reader.readBytes(32)))]
        case .newAdvert:
            return try contactFields(&reader)
        case .sendConfirmed:
            return [
                "ack": .string(hex(try reader.readBytes(4))), "trip_ms": .int(Int64(try reader.read(UInt32.self))),
            ]
        case .receivedPacketLog, .rawData:
            return [
                "snr_db": .double(Double(try reader.read(Int8.self)) / 4),
                "rssi_dbm": .int(Int64(try reader.read(Int8.self))),
                "packet": .string(hex(reader.readRest())),
            ]
        case .messageWaiting, .loginSuccess, .loginFailed, .statusResponse, .trace, .telemetryResponse,
            .binaryResponse, .pathDiscovery, .controlData, .contactsFull:
            return [:]
        }
    }

    private static func replyFields(
        _ code: ReplyCode, _ reader: inout ByteReader
    ) throws(DecodeError) -> [String: JSONValue] {
        switch code {
        case .error:
            guard let value = try? reader.read(UInt8.self) else { return [:] }
            return ["reason": .string(CompanionErrorCode(rawValue: value).map { "\($0)" } ?? "\(value)")]
        case .contactsStart: return ["total": .int(Int64(try reader.read(UInt32.self)))]
        case .contact: return try contactFields(&reader)
        case .endOfContacts: return ["latest_change": .int(Int64(try reader.read(UInt32.self)))]
        case .selfInfo: return try selfInfoFields(&reader)
        case .sent:
            return [
                "flood": .bool(try reader.read(UInt8.self) == 1), "tag": .string(hex(try reader.readBytes(4))),
                "timeout_ms": .int(Int64(try reader.read(UInt32.self))),
            ]
        case .currentTime: return ["time": .int(Int64(try reader.read(UInt32.self)))]
        case .batteryAndStorage: return ["battery_mv": .int(Int64(try reader.read(UInt16.self)))]
        case .deviceInfo: return try deviceInfoFields(&reader)
        case .channelInfo:
            return [
                "channel": .int(Int64(try reader.read(UInt8.self))),
                "channel_name": .string(try reader.readFixedText(32)),
            ]
        default: return [:]
        }
    }

    private static func contactFields(_ reader: inout ByteReader) throws(DecodeError) -> [String: JSONValue] {
        let key = try reader.readBytes(32)
        let type = try reader.read(UInt8.self)
        let flags = try reader.read(UInt8.self)
        let pathByte = try reader.read(UInt8.self)
        try reader.skip(64)
        let name = try reader.readFixedText(32)
        return [
            "public_key": .string(hex(key)), "type": .int(Int64(type)), "flags": .int(Int64(flags)),
            "path_byte": .int(Int64(pathByte)), "contact_name": .string(name),
            "last_advert": .int(Int64(try reader.read(UInt32.self))),
        ]
    }

    private static func selfInfoFields(_ reader: inout ByteReader) throws(DecodeError) -> [String: JSONValue] {
        try reader.skip(3)
        let key = try reader.readBytes(32)
        try reader.skip(12)
        let frequency = try reader.read(UInt32.self)
        let bandwidth = try reader.read(UInt32.self)
        let spreading = try reader.read(UInt8.self)
        let coding = try reader.read(UInt8.self)
        return [
            "public_key": .string(hex(key)), "frequency_khz": .int(Int64(frequency)),
            "bandwidth_hz": .int(Int64(bandwidth)), "spreading_factor": .int(Int64(spreading)),
            "coding_rate": .int(Int64(coding)), "node_name": .string(reader.readText()),
        ]
    }

    /// The PIN (bytes 4 to 7) is never shown.
    private static func deviceInfoFields(_ reader: inout ByteReader) throws(DecodeError) -> [String: JSONValue] {
        var fields: [String: JSONValue] = ["protocol_version": .int(Int64(try reader.read(UInt8.self)))]
        guard reader.remaining >= 78 else { return fields }
        try reader.skip(6)
        fields["build"] = .string(try reader.readFixedText(12))
        fields["model"] = .string(try reader.readFixedText(40))
        fields["firmware"] = .string(try reader.readFixedText(20))
        return fields
    }
}

extension ReceivedMessage {
    /// The fields as JSON members. Path bytes are told as hops where they are known.
    var fields: [String: JSONValue] {
        var fields: [String: JSONValue] = [
            "timestamp": .int(Int64(timestamp)), "text": .string(text), "text_type": .int(Int64(textType)),
        ]
        switch source {
        case .contact(let prefix): fields["from"] = .string(CompanionFrame.hex(prefix))
        case .channel(let index): fields["channel"] = .int(Int64(index))
        }
        if let snrQuarters { fields["snr_db"] = .double(Double(snrQuarters) / 4) }
        // Low six bits: hops; 0xFF: came directly (reference §1.8).
        fields["hops"] = pathByte == 0xFF ? .null : .int(Int64(pathByte & 0x3F))
        if let authorPrefix { fields["author"] = .string(CompanionFrame.hex(authorPrefix)) }
        return fields
    }
}
