// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// A controller's number for a link, 0x0000...0x0EFF (Core Specification 5.4, Vol 4 Part E §5.3.1). It is given again
/// to another link once this one has ended.
public struct ConnectionHandle: Sendable, Hashable {
    public let rawValue: UInt16

    /// Takes the low 12 bits: the upper four are flags in some packets.
    public init(_ rawValue: UInt16) {
        self.rawValue = rawValue & 0x0FFF
    }
}

extension ConnectionHandle: CustomStringConvertible {
    /// Such as `0x0040`.
    public var description: String {
        let digits = String(rawValue, radix: 16)
        return "0x" + String(repeating: "0", count: 4 - digits.count) + digits
    }
}

extension ByteReader {
    mutating func readHandle() throws(DecodeError) -> ConnectionHandle { ConnectionHandle(try read()) }
}

/// Which side of a link this host is (Core Specification 5.4, Vol 4 Part E §7.7.65.1).
public enum LinkRole: UInt8, Sendable, Hashable {
    case central = 0
    case peripheral = 1
}
