// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI
public import MeshWire

/// How the radio answers commands: every reply of protocol version 13 (companion-protocol §1.6; firmware v1.17.1,
/// `examples/companion_radio/MyMesh.cpp`), and CLI_REPLY of the version after it.
///
/// Bytes after the last field are passed over: newer firmware and forks add some.
public enum CompanionReply: Sendable, Hashable {
    /// Some forks add a number.
    case ok(value: UInt32?)
    /// Why, mostly a ``CompanionErrorCode``; very old firmware does not tell.
    case error(code: UInt8?)
    /// How many contacts the radio has: not how many rows follow.
    case contactsStart(total: UInt32)
    /// A row of the list, or the answer to GET_CONTACT_BY_KEY.
    case contact(Contact)
    /// When the contact changed that changed last, by the radio's clock; 0 if there was none.
    case endOfContacts(latestChange: UInt32)
    case selfInfo(SelfInfo)
    case sent(SentReceipt)
    /// One of the four layouts: ``ReceivedMessage/replyCode``.
    case message(ReceivedMessage)
    /// Seconds since 1970.
    case currentTime(UInt32)
    case noMoreMessages
    /// A whole advert packet.
    case exportedContact(Data)
    case batteryAndStorage(BatteryAndStorage)
    case deviceInfo(DeviceInfo)
    /// 64 bytes.
    case privateKey(Data)
    /// The firmware was built without what was asked for.
    case disabled
    case channelInfo(Channel)
    /// How many bytes may be signed.
    case signStart(maximumLength: UInt32)
    /// 64 bytes.
    case signature(Data)
    /// `name:value`, separated by commas; see ``variables(_:)``.
    case customVariables(String)
    case advertPath(AdvertPath)
    case tuning(Tuning)
    case statistics(Statistics)
    case autoAdd(AutoAdd)
    case allowedRepeatFrequencies([FrequencyRange])
    case channelData(ReceivedChannelData)
    case defaultScope(DefaultScope?)
    case cliReply(String)
    /// A reply of another firmware.
    case unknown(code: UInt8, bytes: Data)

    /// Decodes a frame from the radio whose code is below 0x80.
    public init(decoding frame: Data) throws(DecodeError) {
        self = try WireFieldReader.decode(frame) { reader throws(DecodeError) in
            var code: UInt8 = 0
            try reader.integer("code", &code)
            if PushCode.isPush(code) { throw DecodeError(.unknownCode(code), offset: 0) }
            var reply = ReplyCode(rawValue: code).map(Self.prototype) ?? .unknown(code: code, bytes: Data())
            try reply.visit(&reader)
            return reply
        }
    }

    /// The frame as the radio would send it. How long a frame may be is for the framing to say: forks have other limits.
    public func encoded() throws(FieldError) -> Data {
        try WireFieldWriter.encode(self, after: [code])
    }

    /// Reads the members that ``json(showsSecrets:)`` writes.
    public init(json: JSONValue) throws(FieldError) {
        guard let members = json.objectValue else { throw FieldError("reply", .wrongType(expected: "an object")) }
        let (name, code) = try CompanionFrame.head(members)
        let prototype: CompanionReply
        if let known = ReplyCode.allCases.first(where: { Self.name($0) == name }) {
            if let code, code != known.rawValue { throw CompanionFrame.wrongCode(of: name, known.rawValue) }
            prototype = Self.prototype(known)
        } else if name == CompanionFrame.unknownName {
            guard let code else { throw FieldError("code", .missing) }
            if PushCode.isPush(code) || ReplyCode(rawValue: code) != nil { throw FieldError("code", .invalid) }
            prototype = .unknown(code: code, bytes: Data())
        } else {
            throw FieldError("name", name, noneOf: ReplyCode.allCases.map(Self.name), else: CompanionFrame.nameAdvice)
        }
        self = try JSONFieldReader.record(members, as: prototype, known: CompanionFrame.headMembers)
    }

    /// The name in JSON.
    static func name(_ code: ReplyCode) -> String { "reply.\(code)" }

    /// `name`, `code`, and the fields. Keys and the PIN only on demand.
    public func json(showsSecrets: Bool = false) -> JSONValue {
        var members = JSONFieldWriter.members(of: self, showsSecrets: showsSecrets)
        members["name"] = .string(ReplyCode(rawValue: code).map(Self.name) ?? CompanionFrame.unknownName)
        members["code"] = .int(Int64(code))
        return .object(members)
    }

    /// The settings in the text of ``customVariables(_:)``. A value that holds a comma cannot be told apart.
    public static func variables(_ text: String) -> [CustomVariable] {
        text.parts(separatedBy: ",").compactMap { entry in
            let parts = entry.parts(separatedBy: ":", maximum: 2)
            return parts.count == 2 ? CustomVariable(name: parts[0], value: parts[1]) : nil
        }
    }
}
