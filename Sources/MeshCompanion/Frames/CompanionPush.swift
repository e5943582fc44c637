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

    /// `name`, `code`, and the fields.
    public func json(showsSecrets: Bool = false) -> JSONValue {
        var members = JSONFieldWriter.members(of: self, showsSecrets: showsSecrets)
        members["name"] = .string(PushCode(rawValue: code).map { "push.\($0)" } ?? CompanionFrame.unknownName)
        members["code"] = .int(Int64(code))
        return .object(members)
    }
}
