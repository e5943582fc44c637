// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack

/// A packet from a controller to its host: the encoder that the stack does not have, since a host never sends one (Core
/// Specification 5.4, Vol 4 Part E §7.7).
struct ControllerPacket: Sendable, Hashable {
    var kind: HCIPacketKind
    /// Without H4's indicator.
    var bytes: [UInt8]

    private init(_ code: UInt8, _ parameters: [UInt8]) {
        kind = .event
        bytes = [code, UInt8(parameters.count)] + parameters
    }

    init(_ packet: ACLPacket) {
        kind = .acl
        bytes = packet.packet
    }

    static func commandComplete(_ opcode: HCIOpcode, _ returned: [UInt8] = []) -> ControllerPacket {
        ControllerPacket(0x0E, [1] + opcode.rawValue.wire + [0] + returned)
    }

    static func commandStatus(_ opcode: HCIOpcode, _ status: HCIStatus = .success) -> ControllerPacket {
        ControllerPacket(0x0F, [status.rawValue, 1] + opcode.rawValue.wire)
    }

    static func disconnectionComplete(_ handle: ConnectionHandle, _ reason: HCIStatus) -> ControllerPacket {
        ControllerPacket(0x05, [0] + handle.rawValue.wire + [reason.rawValue])
    }

    static func encryptionChange(
        _ handle: ConnectionHandle, _ status: HCIStatus, isEncrypted: Bool
    ) -> ControllerPacket {
        ControllerPacket(0x08, [status.rawValue] + handle.rawValue.wire + [isEncrypted ? 1 : 0])
    }

    static func completedPackets(_ entries: [(handle: ConnectionHandle, count: Int)]) -> ControllerPacket {
        ControllerPacket(
            0x13,
            [UInt8(entries.count)] + entries.flatMap { $0.handle.rawValue.wire + UInt16($0.count).wire })
    }

    static func hardwareError(_ code: UInt8) -> ControllerPacket { ControllerPacket(0x10, [code]) }

    /// 15 ms, no latency, 5 s.
    static func connectionComplete(
        _ status: HCIStatus, _ handle: ConnectionHandle = ConnectionHandle(0),
        peer: DeviceAddress = DeviceAddress(0, .public), isEnhanced: Bool = false
    ) -> ControllerPacket {
        let addresses = [UInt8](repeating: 0, count: isEnhanced ? 12 : 0)
        return ControllerPacket(
            0x3E,
            [isEnhanced ? 0x0A : 0x01, status.rawValue] + handle.rawValue.wire + [0, peer.kind.rawValue]
                + peer.wireBytes + addresses + UInt16(12).wire + UInt16(0).wire + UInt16(500).wire + [0])
    }

    /// Connectable, with its whole name.
    static func report(_ address: DeviceAddress, name: String) -> ControllerPacket {
        let data = [2, 0x01, 0x06, UInt8(name.utf8.count + 1), 0x09] + Array(name.utf8)
        return ControllerPacket(
            0x3E, [0x02, 1, 0, address.kind.rawValue] + address.wireBytes + [UInt8(data.count)] + data + [0xC4])
    }

    static func connectionUpdated(_ handle: ConnectionHandle, _ parameters: [UInt8]) -> ControllerPacket {
        ControllerPacket(0x3E, [0x03, 0] + handle.rawValue.wire + parameters)
    }

    static func remoteFeatures(_ handle: ConnectionHandle, _ features: LEFeatures) -> ControllerPacket {
        ControllerPacket(
            0x3E,
            [0x04, 0] + handle.rawValue.wire + (0..<8).map { UInt8(truncatingIfNeeded: features.rawValue >> (8 * $0)) })
    }

    static func phyUpdated(_ handle: ConnectionHandle) -> ControllerPacket {
        ControllerPacket(0x3E, [0x0C, 0] + handle.rawValue.wire + [2, 2])
    }

    static func remoteVersion(_ handle: ConnectionHandle) -> ControllerPacket {
        ControllerPacket(0x0C, [0] + handle.rawValue.wire + [9, 0xFF, 0xFF, 0, 0])
    }
}

/// What a fault does to a packet.
extension ControllerPacket {
    /// Where the status of an event stands; nil for what has none.
    private var statusOffset: Int? {
        guard kind == .event else { return nil }
        switch (bytes[0], bytes.count > 2 ? bytes[2] : 0) {
        case (0x0F, _), (0x08, _), (0x0C, _): return 2
        case (0x0E, _): return 5
        case (0x3E, 0x01), (0x3E, 0x0A), (0x3E, 0x03), (0x3E, 0x04), (0x3E, 0x0C): return 3
        default: return nil
        }
    }

    /// The same with a failure in the place of its success; nil where there is none to be replaced.
    func failing(_ status: HCIStatus) -> ControllerPacket? {
        guard let statusOffset, bytes[statusOffset] == 0 else { return nil }
        var packet = self
        packet.bytes[statusOffset] = status.rawValue
        return packet
    }

    /// Whether it cannot come any more when the link is lost. A controller answers commands all the same, and goes on
    /// hearing advertisements.
    var isOfLink: Bool {
        switch (kind, bytes[0]) {
        case (.event, 0x0E), (.event, 0x0F), (.event, 0x05): false
        case (.event, 0x3E): bytes[2] != 0x02 && !isConnectionComplete
        default: true
        }
    }

    var isConnectionComplete: Bool { kind == .event && bytes[0] == 0x3E && (bytes[2] == 0x01 || bytes[2] == 0x0A) }
}

extension ControllerPacket: CustomStringConvertible {
    var description: String {
        "\(kind) " + bytes.prefix(12).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

extension UInt16 {
    /// The least significant byte first.
    var wire: [UInt8] { [UInt8(truncatingIfNeeded: self), UInt8(self >> 8)] }
}
