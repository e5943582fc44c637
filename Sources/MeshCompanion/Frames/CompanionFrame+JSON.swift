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
    /// The name of a frame whose code nobody knows.
    static let unknownName = "UNKNOWN"

    /// The members that every frame has.
    static let headMembers: Set<String> = ["name", "code"]

    /// What a frame says, as far as this version reads it: its name, and its fields where the layout is known. Never
    /// fails: what cannot be read is told in `error`, and `raw` always has the bytes.
    ///
    /// Keys and the PIN are among the fields on demand only. A packet that a frame carries is `decoded`; with `channels`
    /// it is told as by ``MeshPacket/json(channels:)``, without them nothing is decrypted.
    public static func json(
        _ frame: Data, _ direction: FrameDirection, channels: [ChannelKey]? = nil, showsSecrets: Bool = false
    ) -> JSONValue {
        var object: [String: JSONValue] = ["raw": .string(hex(frame)), "length": .int(Int64(frame.count))]
        guard let first = frame.first else {
            object["error"] = "an empty frame"
            return .object(object)
        }
        object["code"] = .int(Int64(first))
        do throws(DecodeError) {
            let fields: JSONValue
            switch direction {
            case .fromClient:
                if let code = CommandCode(rawValue: first) {
                    object["name"] = .string(CommandSpec.of(code).name)
                    object["role"] = .string(CommandSpec.of(code).role.rawValue)
                }
                fields = try CompanionCommand(decoding: frame).json(showsSecrets: showsSecrets)
            case .fromRadio where PushCode.isPush(first):
                object["name"] = .string(PushCode(rawValue: first).map(CompanionPush.name) ?? unknownName)
                fields = try CompanionPush(decoding: frame).json(showsSecrets: showsSecrets)
            case .fromRadio:
                object["name"] = .string(ReplyCode(rawValue: first).map(CompanionReply.name) ?? unknownName)
                fields = try CompanionReply(decoding: frame).json(showsSecrets: showsSecrets)
            }
            object.merge(fields.objectValue ?? [:]) { $1 }
        } catch {
            object["error"] = .string("\(error)")
        }
        if let channels, object["decoded"] != nil, let packet = object["packet"]?.stringValue.flatMap(HexText.bytes) {
            object["decoded"] = MeshPacket.json(decoding: packet, channels: channels)
        }
        return .object(object)
    }

    /// The bytes of a command, a reply or a push, from its `name` (or `UNKNOWN`, its `code` and `direction`) and its
    /// fields. What else ``json(_:_:channels:showsSecrets:)`` tells of a frame may be there and is passed over.
    public static func encoded(json: JSONValue) throws(FieldError) -> Data {
        guard var members = json.objectValue else { throw FieldError("frame", .wrongType(expected: "an object")) }
        for name in ["raw", "length", "role"] { members[name] = nil }
        var direction: FrameDirection?
        if let value = members.removeValue(forKey: "direction") {
            direction = value.stringValue.flatMap(FrameDirection.init)
            if direction == nil { throw FieldError("direction", .invalid, advice: "write from-client or from-radio") }
        }
        let (name, code) = try head(members)
        let isUnknown = name == unknownName
        let isPush =
            name.hasPrefix("push.") || isUnknown && direction != .fromClient && code.map(PushCode.isPush) == true
        let isReply = name.hasPrefix("reply.") || isUnknown && direction == .fromRadio && !isPush
        if let direction, (direction == .fromRadio) != (isPush || isReply) {
            throw FieldError(
                "direction", .invalid, advice: "commands are from-client, replies and pushes from-radio; leave it out")
        }
        let fields = JSONValue.object(members)
        if isPush { return try CompanionPush(json: fields).encoded() }
        return try isReply ? CompanionReply(json: fields).encoded() : CompanionCommand(json: fields).encoded()
    }

    static let nameAdvice =
        "commands are written as GET_CHANNEL, replies as reply.currentTime, pushes as push.advert, all else as \(unknownName)"

    /// A name and a code that do not go together.
    static func wrongCode(of name: String, _ code: UInt8) -> FieldError {
        FieldError("code", .invalid, advice: "\(name) has the code \(code); leave it out")
    }

    /// The name of a frame, and its code if that is told too.
    static func head(_ members: [String: JSONValue]) throws(FieldError) -> (name: String, code: UInt8?) {
        guard let name = members["name"] else { throw FieldError("name", .missing, advice: nameAdvice) }
        guard let name = name.stringValue else { throw FieldError("name", .wrongType(expected: "a string")) }
        let code = members["code"]?.intValue.flatMap(UInt8.init(exactly:))
        if members["code"] != nil && code == nil { throw FieldError("code", .outOfRange(0...255)) }
        return (name, code)
    }

    /// Lower-case hexadecimal digits.
    public static func hex(_ bytes: some Sequence<UInt8>) -> String { HexText.text(bytes) }
}
