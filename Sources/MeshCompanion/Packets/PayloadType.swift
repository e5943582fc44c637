// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What the payload of a packet is: bits 2 to 5 of the header (`PAYLOAD_TYPE_*`, firmware src/Packet.h).
public struct PayloadType: RawRepresentable, Sendable, Hashable {
    public static let request = PayloadType(rawValue: 0)
    public static let response = PayloadType(rawValue: 1)
    public static let text = PayloadType(rawValue: 2)
    public static let acknowledgement = PayloadType(rawValue: 3)
    public static let advert = PayloadType(rawValue: 4)
    public static let groupText = PayloadType(rawValue: 5)
    public static let groupData = PayloadType(rawValue: 6)
    public static let anonymousRequest = PayloadType(rawValue: 7)
    public static let path = PayloadType(rawValue: 8)
    public static let trace = PayloadType(rawValue: 9)
    public static let multipart = PayloadType(rawValue: 10)
    public static let control = PayloadType(rawValue: 11)
    public static let rawCustom = PayloadType(rawValue: 15)

    /// 0 to 15.
    public var rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The firmware's name, or the number.
    public var name: String {
        switch self {
        case .request: "REQ"
        case .response: "RESPONSE"
        case .text: "TXT_MSG"
        case .acknowledgement: "ACK"
        case .advert: "ADVERT"
        case .groupText: "GRP_TXT"
        case .groupData: "GRP_DATA"
        case .anonymousRequest: "ANON_REQ"
        case .path: "PATH"
        case .trace: "TRACE"
        case .multipart: "MULTIPART"
        case .control: "CONTROL"
        case .rawCustom: "RAW_CUSTOM"
        default: "\(rawValue)"
        }
    }
}
