// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A notification in one ACL packet, which most packets of a busy link are.
///
/// The short way of a packet: where ``InboundOrderStateMachine/passes(_:)`` and
/// ``LinkStateMachine/takesWholeNotifications`` hold, the machines would deliver just this, and change nothing.
public struct WholeNotification: Sendable, Hashable {
    /// Where the value begins in its packet: behind the headers of ACL, L2CAP and the notification.
    public static let valueOffset = 11

    public let connection: ConnectionHandle
    /// The handle of the value.
    public let attribute: UInt16

    /// Looks at an ACL packet without H4's indicator. Nil for anything else.
    public init?(_ packet: RawSpan) {
        let found = packet.withUnsafeBytes { bytes -> (connection: UInt16, attribute: UInt16)? in
            func word(_ offset: Int) -> UInt16 {
                UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self))
            }
            guard bytes.count >= Self.valueOffset, Int(word(2)) == bytes.count - 4, Int(word(4)) == bytes.count - 8,
                word(6) == L2CAPFrame.attributeChannel, bytes[8] == ATTOpcode.notification.rawValue,
                word(0) >> 12 & 0b11 != UInt16(ACLPacket.Boundary.continuation.rawValue)
            else { return nil }
            return (word(0), word(9))
        }
        guard let found else { return nil }
        connection = ConnectionHandle(found.connection)
        attribute = found.attribute
    }
}
