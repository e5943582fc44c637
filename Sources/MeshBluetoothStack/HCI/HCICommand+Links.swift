// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// Commands of one link (Core Specification 5.4, Vol 4 Part E §7.1, §7.5, §7.8).
extension HCICommand {
    /// Ends a link (§7.1.6).
    public static func disconnect(
        _ handle: ConnectionHandle, reason: HCIStatus = .remoteUserTerminated
    ) -> HCICommand {
        HCICommand(.disconnect) {
            $0.write(handle.rawValue)
            $0.write(reason.rawValue)
        }
    }

    /// Version, features, signal strength: what takes the handle only (§7.1.23, §7.8.21, §7.5.4).
    public static func read(_ opcode: HCIOpcode, of handle: ConnectionHandle) -> HCICommand {
        HCICommand(opcode) { $0.write(handle.rawValue) }
    }

    /// Begins a link (§7.8.12).
    public static func createConnection(_ request: ConnectionRequest) -> HCICommand {
        HCICommand(.createConnection) {
            $0.write(request.scanInterval)
            $0.write(request.scanWindow)
            $0.write(0 as UInt8)  // to this peer, not to any of the accept list
            $0.write(request.peer.kind.rawValue)
            $0.write(request.peer)
            $0.write(request.ownAddressKind.rawValue)
            $0.write(request.parameters)
        }
    }

    /// Begins a link with a controller of the extended family, on the 1M mode (§7.8.66).
    public static func extendedCreateConnection(_ request: ConnectionRequest) -> HCICommand {
        HCICommand(.extendedCreateConnection) {
            $0.write(0 as UInt8)
            $0.write(request.ownAddressKind.rawValue)
            $0.write(request.peer.kind.rawValue)
            $0.write(request.peer)
            $0.write(PHYSet.oneMegabit.rawValue)
            $0.write(request.scanInterval)
            $0.write(request.scanWindow)
            $0.write(request.parameters)
        }
    }

    /// Ends the attempt; its Connection Complete event still comes (§7.8.13).
    public static let createConnectionCancel = HCICommand(.createConnectionCancel)

    /// §7.8.18
    public static func updateConnection(
        _ handle: ConnectionHandle, _ parameters: ConnectionParameters
    ) -> HCICommand {
        HCICommand(.updateConnection) {
            $0.write(handle.rawValue)
            $0.write(parameters)
        }
    }

    /// Accepts what a peer asked for by the link layer's own procedure (§7.8.31).
    public static func connectionParameterReply(
        _ handle: ConnectionHandle, _ parameters: ConnectionParameters
    ) -> HCICommand {
        HCICommand(.connectionParameterReply) {
            $0.write(handle.rawValue)
            $0.write(parameters)
        }
    }

    /// Refuses it (§7.8.32).
    public static func connectionParameterNegativeReply(
        _ handle: ConnectionHandle, reason: HCIStatus = .unacceptableParameters
    ) -> HCICommand {
        HCICommand(.connectionParameterNegativeReply) {
            $0.write(handle.rawValue)
            $0.write(reason.rawValue)
        }
    }

    /// §7.8.33
    public static func setDataLength(_ handle: ConnectionHandle, _ length: DataLength) -> HCICommand {
        HCICommand(.setDataLength) {
            $0.write(handle.rawValue)
            $0.write(length.octets)
            $0.write(length.microseconds)
        }
    }

    /// Asks for the same modes in both directions, with no wish for a coding (§7.8.49).
    public static func setPHY(_ handle: ConnectionHandle, _ phys: PHYSet) -> HCICommand {
        HCICommand(.setPHY) {
            $0.write(handle.rawValue)
            $0.write(0 as UInt8)
            $0.write(phys.rawValue)
            $0.write(phys.rawValue)
            $0.write(0 as UInt16)
        }
    }

    // MARK: Security

    /// Encrypts a link, as central (§7.8.24). The key is 16 bytes in the order of the wire; `random` and `diversifier`
    /// are 0 but for keys of legacy pairing.
    public static func enableEncryption(
        _ handle: ConnectionHandle, key: [UInt8], random: UInt64 = 0, diversifier: UInt16 = 0
    ) -> HCICommand {
        HCICommand(.enableEncryption) {
            $0.write(handle.rawValue)
            $0.write(random)
            $0.write(diversifier)
            $0.write(contentsOf: key)
        }
    }

    /// Gives the key that a central asks for, as peripheral (§7.8.25).
    public static func longTermKeyReply(_ handle: ConnectionHandle, key: [UInt8]) -> HCICommand {
        HCICommand(.longTermKeyReply) {
            $0.write(handle.rawValue)
            $0.write(contentsOf: key)
        }
    }

    /// There is no such key (§7.8.26).
    public static func longTermKeyNegativeReply(_ handle: ConnectionHandle) -> HCICommand {
        HCICommand(.longTermKeyNegativeReply) { $0.write(handle.rawValue) }
    }
}

/// What a link is to be made with.
public struct ConnectionRequest: Sendable, Hashable {
    public var peer: DeviceAddress
    public var ownAddressKind: DeviceAddress.Kind
    public var parameters: ConnectionParameters
    /// In units of 0.625 ms.
    public var scanInterval: UInt16
    /// In units of 0.625 ms; as long as the interval, the controller listens all the time.
    public var scanWindow: UInt16

    public init(
        peer: DeviceAddress, ownAddressKind: DeviceAddress.Kind, parameters: ConnectionParameters = .fast,
        scanInterval: UInt16 = 96, scanWindow: UInt16 = 96
    ) {
        self.peer = peer
        self.ownAddressKind = ownAddressKind
        self.parameters = parameters
        self.scanInterval = scanInterval
        self.scanWindow = scanWindow
    }
}

extension ByteWriter {
    /// The eight parameters' end that all connection commands share.
    mutating func write(_ parameters: ConnectionParameters) {
        write(parameters.minimumInterval)
        write(parameters.maximumInterval)
        write(parameters.latency)
        write(parameters.supervisionTimeout)
        // The length of a connection event: as long as the interval lets it be, so that a burst fits.
        write(0 as UInt16)
        write(UInt16(clamping: Int(parameters.maximumInterval) * 2))
    }
}
