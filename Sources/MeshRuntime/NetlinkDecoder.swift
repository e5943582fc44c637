// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What the kernel tells about the network, as far as links care.
enum NetworkChange: Equatable {
    /// An interface has this address, be it new or told again.
    case addressPresent(interface: UInt32, address: [UInt8])
    case addressGone(interface: UInt32, address: [UInt8])
    /// An interface exists and can or cannot carry packets.
    case interface(UInt32, isRunning: Bool)
    case interfaceGone(UInt32)
    /// Messages were lost: anything may have changed.
    case lost
}

/// Reads rtnetlink messages (rtnetlink(7), netlink(7); `linux/netlink.h`, `linux/if_addr.h`). Total: every read is checked
/// against the end of its message, every message against the end of the datagram; what is cut or unknown is left out.
///
/// Multi-byte fields are in the machine's own order.
enum NetlinkDecoder {
    private static let headerLength = 16
    private static let newLink: UInt16 = 16
    private static let deletedLink: UInt16 = 17
    private static let newAddress: UInt16 = 20
    private static let deletedAddress: UInt16 = 21
    private static let overrun: UInt16 = 4
    /// `IFF_LOOPBACK` and `IFF_RUNNING`.
    private static let loopbackFlag: UInt32 = 0x8
    private static let runningFlag: UInt32 = 0x40
    /// `RT_SCOPE_HOST`: an address of the host itself, such as 127.0.0.1.
    private static let hostScope: UInt8 = 254
    /// `IFA_ADDRESS` and `IFA_LOCAL`; on point-to-point links the first is the peer's.
    private static let addressAttribute: UInt16 = 1
    private static let localAttribute: UInt16 = 2

    /// The changes in one datagram.
    static func changes(in datagram: ArraySlice<UInt8>) -> [NetworkChange] {
        var changes: [NetworkChange] = []
        var rest = datagram
        while let length = rest.number(at: 0, as: UInt32.self).map(Int.init), length >= headerLength,
            length <= rest.count, let type = rest.number(at: 4, as: UInt16.self)
        {
            let body = rest.dropFirst(headerLength).prefix(length - headerLength)
            if let change = change(type, body) { changes.append(change) }
            // Messages are aligned to four bytes (NLMSG_ALIGN).
            rest = rest.dropFirst((length + 3) & ~3)
        }
        return changes
    }

    private static func change(_ type: UInt16, _ body: ArraySlice<UInt8>) -> NetworkChange? {
        switch type {
        case newLink, deletedLink:
            // struct ifinfomsg: family, pad, type (2), index (4), flags (4), change (4)
            guard let index = body.number(at: 4, as: UInt32.self), let flags = body.number(at: 8, as: UInt32.self),
                flags & loopbackFlag == 0
            else { return nil }
            if type == deletedLink { return .interfaceGone(index) }
            return .interface(index, isRunning: flags & runningFlag != 0)
        case newAddress, deletedAddress:
            // struct ifaddrmsg: family, prefix length, flags, scope, index (4)
            guard let scope = body.number(at: 3, as: UInt8.self), let index = body.number(at: 4, as: UInt32.self),
                scope != hostScope, let address = address(in: body.dropFirst(8))
            else { return nil }
            return type == newAddress
                ? .addressPresent(interface: index, address: address)
                : .addressGone(interface: index, address: address)
        case overrun: return .lost
        default: return nil
        }
    }

    /// The interface's own address among the attributes.
    private static func address(in attributes: ArraySlice<UInt8>) -> [UInt8]? {
        var found: [UInt8]?
        var rest = attributes
        // struct rtattr: length with header (2), type (2)
        while let length = rest.number(at: 0, as: UInt16.self).map(Int.init), length >= 4, length <= rest.count,
            let type = rest.number(at: 2, as: UInt16.self)
        {
            let value = Array(rest.dropFirst(4).prefix(length - 4))
            if type == localAttribute { return value }
            if type == addressAttribute { found = value }
            rest = rest.dropFirst((length + 3) & ~3)
        }
        return found
    }
}

extension ArraySlice<UInt8> {
    /// The number at an offset from the start of the slice; nil if it does not fit.
    fileprivate func number<Number: FixedWidthInteger>(at offset: Int, as type: Number.Type) -> Number? {
        let size = MemoryLayout<Number>.size
        guard offset + size <= count else { return nil }
        return withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: type) }
    }
}
