// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI
public import MeshWire

/// What a client asks of the radio: every command of protocol version 13 (companion-protocol §1.5; firmware v1.17.1,
/// `MyMesh::handleCmdFrame`), and RUN_CLI_COMMAND of the version after it.
///
/// Decoding takes what the firmware takes, less the frames that are too short for their fields: the firmware would read
/// what an older frame left behind. Bytes after the last field are passed over, as the firmware does.
public enum CompanionCommand: Sendable, Hashable {
    case appStart(AppStart)
    case sendTextMessage(OutgoingText)
    case sendChannelText(OutgoingChannelText)
    /// Those that changed after `since`, by the radio's clock, seconds since 1970; all if nil.
    case getContacts(since: UInt32?)
    case getTime
    /// Seconds since 1970. The radio's clock only goes forward.
    case setTime(UInt32)
    case sendSelfAdvert(flood: Bool)
    /// The radio cuts what is more than 31 bytes; this refuses it.
    case setName(String)
    case addUpdateContact(ContactUpdate)
    case syncNextMessage
    case setRadio(RadioParameters)
    /// dBm.
    case setTransmitPower(Int8)
    case resetPath(PublicKey)
    case setLocation(LocationUpdate)
    case removeContact(PublicKey)
    case shareContact(PublicKey)
    /// The radio itself if nil.
    case exportContact(PublicKey?)
    /// A whole advert packet, at least 98 bytes.
    case importContact(Data)
    case reboot
    case getBatteryAndStorage
    case setTuning(Tuning)
    /// With the protocol version that the client understands.
    case deviceQuery(version: UInt8)
    case exportPrivateKey
    /// 64 bytes.
    case importPrivateKey(Data)
    case sendRawData(OutgoingRawData)
    case sendLogin(Login)
    case sendStatusRequest(PublicKey)
    case hasConnection(PublicKey)
    case logout(PublicKey)
    case getContactByKey(PublicKey)
    case getChannel(index: UInt8)
    case setChannel(Channel)
    case signStart
    /// At least one byte.
    case signData(Data)
    case signFinish
    case sendTracePath(TraceRequest)
    /// 0 for the default, or 100000 to 999999.
    case setDevicePIN(UInt32)
    case setOtherParameters(OtherParameters)
    /// The radio itself if nil.
    case sendTelemetryRequest(PublicKey?)
    case getCustomVariables
    case setCustomVariable(CustomVariable)
    case getAdvertPath(PublicKey)
    case getTuning
    case sendBinaryRequest(NodeRequest)
    case factoryReset
    case sendPathDiscovery(PublicKey)
    case setFloodScope(FloodScope)
    /// The first byte is 0x80 or more.
    case sendControlData(Data)
    /// 0 core, 1 radio, 2 packets.
    case getStatistics(kind: UInt8)
    case sendAnonymousRequest(NodeRequest)
    case setAutoAdd(AutoAdd)
    case getAutoAdd
    case getAllowedRepeatFrequencies
    /// The bytes of a hash in the paths of floods the radio begins, less one: 0 to 2.
    case setPathHashMode(UInt8)
    case sendChannelData(OutgoingChannelData)
    /// None if nil.
    case setDefaultScope(DefaultScope?)
    case getDefaultScope
    case sendRawPacket(OutgoingRawPacket)
    case runCLICommand(String)
    /// A command of another firmware.
    case unknown(code: UInt8, bytes: Data)

    /// Decodes a frame from a client.
    public init(decoding frame: Data) throws(DecodeError) {
        self = try WireFieldReader.decode(frame) { reader throws(DecodeError) in
            var code: UInt8 = 0
            try reader.integer("code", &code)
            var command = CommandCode(rawValue: code).map(Self.prototype) ?? .unknown(code: code, bytes: Data())
            try command.visit(&reader)
            return command
        }
    }

    /// The frame for the radio.
    public func encoded() throws(FieldError) -> Data {
        let frame = try WireFieldWriter.encode(self, after: [code])
        if frame.count > CompanionFraming.maximumPayload {
            throw FieldError("frame", .tooLong(limit: CompanionFraming.maximumPayload))
        }
        return frame
    }

    /// Reads the members that ``json(showsSecrets:)`` writes.
    public init(json: JSONValue) throws(FieldError) {
        guard let members = json.objectValue else { throw FieldError("command", .wrongType(expected: "an object")) }
        let (name, code) = try CompanionFrame.head(members)
        let prototype: CompanionCommand
        if let known = CommandCode.allCases.first(where: { CommandSpec.of($0).name == name }) {
            // The code may be left out; another one than the name's is a mistake.
            if let code, code != known.rawValue { throw CompanionFrame.wrongCode(of: name, known.rawValue) }
            prototype = Self.prototype(known)
        } else if name == CompanionFrame.unknownName {
            guard let code else { throw FieldError("code", .missing) }
            if CommandCode(rawValue: code) != nil { throw FieldError("code", .invalid) }
            prototype = .unknown(code: code, bytes: Data())
        } else {
            throw FieldError(
                "name", name,
                noneOf: CommandCode.allCases.map { CommandSpec.of($0).name }
                    + ReplyCode.allCases.map(CompanionReply.name) + PushCode.allCases.map(CompanionPush.name),
                else: CompanionFrame.nameAdvice)
        }
        self = try JSONFieldReader.record(members, as: prototype, known: CompanionFrame.headMembers)
    }

    /// `name`, as in ``CommandSpec/name``, `code`, and the fields by snake_case names. Units are in the names, but for
    /// times, which are seconds since 1970; bytes are hexadecimal. Keys, PINs and passwords only on demand.
    public func json(showsSecrets: Bool = false) -> JSONValue {
        var members = JSONFieldWriter.members(of: self, showsSecrets: showsSecrets)
        members["name"] = .string(
            CommandCode(rawValue: code).map { CommandSpec.of($0).name } ?? CompanionFrame.unknownName)
        members["code"] = .int(Int64(code))
        return .object(members)
    }
}
