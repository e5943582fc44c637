// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI
public import MeshWire

/// What the radio tells unasked: every push of protocol version 13 (companion-protocol §1.7; firmware v1.17.1,
/// `examples/companion_radio/MyMesh.cpp`).
///
/// Bytes after the last field are passed over: newer firmware and forks add some.
public enum CompanionPush: Sendable, Hashable {
    /// A node that is a contact, perhaps only just, has sent an advert.
    case advert(PublicKey)
    case pathUpdated(PublicKey)
    case sendConfirmed(SendConfirmation)
    /// There are messages: how many is not told.
    case messageWaiting
    case rawData(ReceivedRawData)
    case loginSuccess(LoginSuccess)
    case loginFailed(KeyPrefix)
    case statusResponse(StatusResponse)
    case receivedPacketLog(ReceivedPacketLog)
    case trace(TraceResult)
    /// A node that is not kept as a contact has sent an advert.
    case newAdvert(Contact)
    case telemetryResponse(TelemetryResponse)
    case binaryResponse(BinaryResponse)
    case pathDiscovery(PathDiscovery)
    case controlData(ReceivedControlData)
    /// The radio has overwritten its oldest contact.
    case contactDeleted(PublicKey)
    case contactsFull
    /// A push of another firmware.
    case unknown(code: UInt8, bytes: Data)

    /// Decodes a frame from the radio whose code is 0x80 or more.
    public init(decoding frame: Data) throws(DecodeError) {
        self = try WireFieldReader.decode(frame) { reader throws(DecodeError) in
            var code: UInt8 = 0
            try reader.integer("code", &code)
            guard PushCode.isPush(code) else { throw DecodeError(.unknownCode(code), offset: 0) }
            var push = PushCode(rawValue: code).map(Self.prototype) ?? .unknown(code: code, bytes: Data())
            try push.visit(&reader)
            return push
        }
    }

    /// The frame as the radio would send it. How long a frame may be is for the framing to say: forks have other limits.
    public func encoded() throws(FieldError) -> Data {
        try WireFieldWriter.encode(self, after: [code])
    }

    /// Reads the members that ``json(showsSecrets:)`` writes.
    public init(json: JSONValue) throws(FieldError) {
        guard let members = json.objectValue else { throw FieldError("push", .wrongType(expected: "an object")) }
        let (name, code) = try CompanionFrame.head(members)
        let prototype: CompanionPush
        if let known = PushCode.allCases.first(where: { Self.name($0) == name }) {
            if let code, code != known.rawValue { throw CompanionFrame.wrongCode(of: name, known.rawValue) }
            prototype = Self.prototype(known)
        } else if name == CompanionFrame.unknownName {
            guard let code else { throw FieldError("code", .missing) }
            if !PushCode.isPush(code) || PushCode(rawValue: code) != nil { throw FieldError("code", .invalid) }
            prototype = .unknown(code: code, bytes: Data())
        } else {
            throw FieldError("name", name, noneOf: PushCode.allCases.map(Self.name), else: CompanionFrame.nameAdvice)
        }
        self = try JSONFieldReader.record(members, as: prototype, known: CompanionFrame.headMembers)
    }

    /// The name in JSON.
    static func name(_ code: PushCode) -> String { "push.\(code)" }

    /// `name`, `code`, and the fields.
    public func json(showsSecrets: Bool = false) -> JSONValue {
        var members = JSONFieldWriter.members(of: self, showsSecrets: showsSecrets)
        members["name"] = .string(PushCode(rawValue: code).map(Self.name) ?? CompanionFrame.unknownName)
        members["code"] = .int(Int64(code))
        return .object(members)
    }
}
