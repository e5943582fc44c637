// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// Commands of the bring-up (Core Specification 5.4, Vol 4 Part E §7.3, §7.4, §7.8).
extension HCICommand {
    /// Stops everything and forgets every link (§7.3.2).
    public static let reset = HCICommand(.reset)

    /// Asks for what has no parameters: version, features, sizes, addresses.
    public static func read(_ opcode: HCIOpcode) -> HCICommand { HCICommand(opcode) }

    /// §7.3.1
    public static func setEventMask(_ mask: UInt64) -> HCICommand {
        HCICommand(.setEventMask) { $0.write(mask) }
    }

    /// §7.3.69
    public static func setEventMaskPage2(_ mask: UInt64) -> HCICommand {
        HCICommand(.setEventMaskPage2) { $0.write(mask) }
    }

    /// §7.8.1
    public static func setLEEventMask(_ mask: UInt64) -> HCICommand {
        HCICommand(.setLEEventMask) { $0.write(mask) }
    }

    /// LE on, the unused second parameter 0 (§7.3.79).
    public static let writeLEHostSupport = HCICommand(.writeLEHostSupport, parameters: [1, 0])

    /// What links are opened with until they ask for something else (§7.8.35).
    public static func writeDefaultDataLength(_ length: DataLength) -> HCICommand {
        HCICommand(.writeDefaultDataLength) {
            $0.write(length.octets)
            $0.write(length.microseconds)
        }
    }

    /// What links ask for by themselves (§7.8.48).
    public static func setDefaultPHY(_ phys: PHYSet) -> HCICommand {
        HCICommand(.setDefaultPHY, parameters: [0, phys.rawValue, phys.rawValue])
    }

    /// §7.8.4
    public static func setRandomAddress(_ address: DeviceAddress) -> HCICommand {
        HCICommand(.setRandomAddress) { $0.write(address) }
    }

    /// Lets the controller resolve a bonded device's private addresses (§7.8.38). Keys in the order of the wire.
    public static func addToResolvingList(
        _ identity: DeviceAddress, peerKey: [UInt8], localKey: [UInt8]
    ) -> HCICommand {
        HCICommand(.addToResolvingList) {
            $0.write(identity.kind.rawValue)
            $0.write(identity)
            $0.write(contentsOf: peerKey)
            $0.write(contentsOf: localKey)
        }
    }

    /// §7.8.44
    public static func setAddressResolutionEnable(_ isEnabled: Bool) -> HCICommand {
        HCICommand(.setAddressResolutionEnable, parameters: [isEnabled ? 1 : 0])
    }

    /// How often the controller makes a new private address, in seconds (§7.8.45).
    public static func setPrivateAddressTimeout(seconds: UInt16) -> HCICommand {
        HCICommand(.setPrivateAddressTimeout) { $0.write(seconds) }
    }

    /// Device mode: a bonded device that uses its identity address is heard too (§7.8.77).
    public static func setDevicePrivacyMode(_ identity: DeviceAddress) -> HCICommand {
        HCICommand(.setPrivacyMode) {
            $0.write(identity.kind.rawValue)
            $0.write(identity)
            $0.write(1 as UInt8)
        }
    }
}

/// Radio modes (Vol 6 Part A §3). The bits are those of HCI.
public struct PHYSet: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    public static let oneMegabit = PHYSet(rawValue: 1)
    public static let twoMegabit = PHYSet(rawValue: 2)
    public static let coded = PHYSet(rawValue: 4)
}

/// How much one link-layer packet carries (Vol 6 Part B §4.5.10).
public struct DataLength: Sendable, Hashable {
    /// 27...251.
    public var octets: UInt16
    /// 328...17,040.
    public var microseconds: UInt16

    public init(octets: UInt16, microseconds: UInt16) {
        self.octets = octets
        self.microseconds = microseconds
    }

    /// What every link has.
    public static let minimum = DataLength(octets: 27, microseconds: 328)
    /// The most that the 1M and 2M modes carry.
    public static let maximum = DataLength(octets: 251, microseconds: 2120)
}
