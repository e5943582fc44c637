// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshWire

/// A packet of the Security Manager (Core Specification 5.4, Vol 3 Part H §3). Keys and random values have 16 bytes in
/// the order of the wire, the least significant first.
public enum SMPPacket: Sendable, Hashable {
    case pairingRequest(PairingFeatures)
    case pairingResponse(PairingFeatures)
    case confirm([UInt8])
    case random([UInt8])
    case failed(SMPFailureReason)
    case encryptionInformation([UInt8])
    case centralIdentification(diversifier: UInt16, random: UInt64)
    case identityInformation([UInt8])
    case identityAddress(DeviceAddress)
    case signingInformation([UInt8])
    case securityRequest(PairingFeatures.Requirements)
    /// Both coordinates, 32 bytes each.
    case publicKey([UInt8])
    case dhKeyCheck([UInt8])
    case keypress(UInt8)

    /// As the payload of a frame.
    public var bytes: [UInt8] {
        var writer = ByteWriter(capacity: 65)
        switch self {
        case .pairingRequest(let features):
            writer.write(0x01 as UInt8)
            writer.write(contentsOf: features.bytes)
        case .pairingResponse(let features):
            writer.write(0x02 as UInt8)
            writer.write(contentsOf: features.bytes)
        case .confirm(let value): writer.write(contentsOf: [0x03] + value)
        case .random(let value): writer.write(contentsOf: [0x04] + value)
        case .failed(let reason): writer.write(contentsOf: [0x05, reason.rawValue])
        case .encryptionInformation(let key): writer.write(contentsOf: [0x06] + key)
        case .centralIdentification(let diversifier, let random):
            writer.write(0x07 as UInt8)
            writer.write(diversifier)
            writer.write(random)
        case .identityInformation(let key): writer.write(contentsOf: [0x08] + key)
        case .identityAddress(let address):
            writer.write(contentsOf: [0x09, address.kind.rawValue])
            writer.write(address)
        case .signingInformation(let key): writer.write(contentsOf: [0x0A] + key)
        case .securityRequest(let requirements): writer.write(contentsOf: [0x0B, requirements.rawValue])
        case .publicKey(let key): writer.write(contentsOf: [0x0C] + key)
        case .dhKeyCheck(let value): writer.write(contentsOf: [0x0D] + value)
        case .keypress(let type): writer.write(contentsOf: [0x0E, type])
        }
        return writer.bytes
    }

    /// Reads the payload of a frame on channel 6.
    public static func decode(_ bytes: RawSpan) throws(DecodeError) -> SMPPacket {
        try ByteReader.decode(bytes) { (reader) throws(DecodeError) in
            let packet = try content(try reader.read(UInt8.self), &reader)
            try reader.expectEnd()
            return packet
        }
    }

    private static func content(_ code: UInt8, _ reader: inout ByteReader) throws(DecodeError) -> SMPPacket {
        switch code {
        case 0x01: return .pairingRequest(try PairingFeatures(&reader))
        case 0x02: return .pairingResponse(try PairingFeatures(&reader))
        case 0x03: return .confirm(try reader.readBytes(16))
        case 0x04: return .random(try reader.readBytes(16))
        case 0x05: return .failed(SMPFailureReason(rawValue: try reader.read()))
        case 0x06: return .encryptionInformation(try reader.readBytes(16))
        case 0x07: return .centralIdentification(diversifier: try reader.read(), random: try reader.read())
        case 0x08: return .identityInformation(try reader.readBytes(16))
        case 0x09:
            let start = reader.offset
            guard let kind = DeviceAddress.Kind(rawValue: try reader.read()) else {
                throw DecodeError(.invalidField("address kind"), offset: start)
            }
            return .identityAddress(DeviceAddress(try reader.readAddressValue(), kind))
        case 0x0A: return .signingInformation(try reader.readBytes(16))
        case 0x0B: return .securityRequest(PairingFeatures.Requirements(rawValue: try reader.read()))
        case 0x0C: return .publicKey(try reader.readBytes(64))
        case 0x0D: return .dhKeyCheck(try reader.readBytes(16))
        case 0x0E: return .keypress(try reader.read())
        default: throw DecodeError(.unknownCode(code), offset: 0)
        }
    }
}

/// Why a pairing fails (Vol 3 Part H §3.5.5).
public struct SMPFailureReason: RawRepresentable, Sendable, Hashable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    public static let passkeyEntryFailed = SMPFailureReason(rawValue: 0x01)
    public static let outOfBandNotAvailable = SMPFailureReason(rawValue: 0x02)
    public static let authenticationRequirements = SMPFailureReason(rawValue: 0x03)
    /// The passkeys of both sides differ.
    public static let confirmValueFailed = SMPFailureReason(rawValue: 0x04)
    public static let pairingNotSupported = SMPFailureReason(rawValue: 0x05)
    public static let encryptionKeySize = SMPFailureReason(rawValue: 0x06)
    public static let commandNotSupported = SMPFailureReason(rawValue: 0x07)
    public static let unspecified = SMPFailureReason(rawValue: 0x08)
    public static let repeatedAttempts = SMPFailureReason(rawValue: 0x09)
    public static let invalidParameters = SMPFailureReason(rawValue: 0x0A)
    public static let dhKeyCheckFailed = SMPFailureReason(rawValue: 0x0B)
    public static let numericComparisonFailed = SMPFailureReason(rawValue: 0x0C)
    public static let keyRejected = SMPFailureReason(rawValue: 0x0F)
}
