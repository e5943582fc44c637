// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The packet types of HCI, with their indicators on H4 (Core Specification 5.4, Vol 4 Part A §2).
public enum HCIPacketKind: UInt8, Sendable, Hashable, CaseIterable {
    case command = 0x01
    case acl = 0x02
    case synchronous = 0x03
    case event = 0x04
    case isochronous = 0x05

    /// How many bytes stand before the payload, without the indicator (Vol 4 Part E §5.4).
    public var headerLength: Int {
        switch self {
        case .command, .synchronous: 3
        case .acl, .isochronous: 4
        case .event: 2
        }
    }

    /// How many bytes follow a whole header.
    func payloadLength(header: UnsafeRawBufferPointer) -> Int {
        switch self {
        case .command, .synchronous: Int(header[2])
        case .event: Int(header[1])
        case .acl: Int(header[2]) | Int(header[3]) << 8
        // Vol 4 Part E §5.4.5: the upper two bits are reserved.
        case .isochronous: Int(header[2]) | Int(header[3] & 0x3F) << 8
        }
    }
}
