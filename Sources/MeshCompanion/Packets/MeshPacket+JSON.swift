// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshCrypto
public import MeshTransportAPI
internal import MeshWire

extension MeshPacket {
    /// What the JSON of a packet has beside its fields, and what is not read again.
    private static let told: Set<String> = ["contents", "packet_hash", "signature_valid", "decrypted"]

    /// The fields, and `contents` with those of the payload.
    public var json: JSONValue {
        var members = JSONFieldWriter.members(of: self, showsSecrets: false)
        do throws(DecodeError) {
            members["contents"] = .object(JSONFieldWriter.members(of: try contents(), showsSecrets: false))
        } catch {
            members["contents"] = ["error": .string("\(error)")]
        }
        return .object(members)
    }

    /// ``json``, and what takes cryptography: `packet_hash`, `signature_valid` of an advert, and what a packet of one of
    /// these channels says in `decrypted`, which is null if none of them opens it.
    public func json(channels: [ChannelKey]) throws(CryptoError) -> JSONValue {
        var members = json.objectValue ?? [:]
        members["packet_hash"] = .string(HexText.text(try hash()))
        if let isValid = try isAdvertSignatureValid() { members["signature_valid"] = .bool(isValid) }
        if payloadType == .groupText || payloadType == .groupData {
            members["decrypted"] = try opened(with: channels)?.json ?? .null
        }
        return .object(members)
    }

    /// The fields of a packet's bytes, or why they are none. Without channels nothing is decrypted, hashed or verified.
    public static func json(decoding packet: Data, channels: [ChannelKey]? = nil) -> JSONValue {
        do {
            let packet = try MeshPacket(decoding: packet)
            guard let channels else { return packet.json }
            return try packet.json(channels: channels)
        } catch {
            return ["error": .string("\(error)"), "raw": .string(HexText.text(packet))]
        }
    }

    /// Reads the members that ``json`` writes. Those that only tell what the payload means are passed over.
    public init(json: JSONValue) throws(FieldError) {
        guard let members = json.objectValue else {
            throw FieldError(
                "packet", .wrongType(expected: "an object"), advice: "write what `decode packet` shows of one")
        }
        self = try JSONFieldReader.record(members, as: .empty, known: Self.told)
    }
}
