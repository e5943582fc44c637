// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// Commands of scanning and advertising, of both families. A controller that got one of a family answers the other's
/// with Command Disallowed until it is reset (Core Specification 5.4, Vol 4 Part E §3.1.1).
extension HCICommand {
    // MARK: Scanning

    /// Intervals in units of 0.625 ms (§7.8.10).
    public static func setScanParameters(
        isActive: Bool, interval: UInt16, window: UInt16, ownAddressKind: DeviceAddress.Kind
    ) -> HCICommand {
        HCICommand(.setScanParameters) {
            $0.write(isActive ? 1 as UInt8 : 0)
            $0.write(interval)
            $0.write(window)
            $0.write(ownAddressKind.rawValue)
            $0.write(0 as UInt8)
        }
    }

    /// §7.8.11
    public static func setScanEnable(_ isEnabled: Bool, filtersDuplicates: Bool = false) -> HCICommand {
        HCICommand(.setScanEnable, parameters: [isEnabled ? 1 : 0, filtersDuplicates ? 1 : 0])
    }

    /// The same for `phys` of the modes 1M and coded (§7.8.64).
    public static func setExtendedScanParameters(
        isActive: Bool, interval: UInt16, window: UInt16, ownAddressKind: DeviceAddress.Kind,
        phys: PHYSet = .oneMegabit
    ) -> HCICommand {
        let phys = phys.intersection([.oneMegabit, .coded])
        return HCICommand(.setExtendedScanParameters) {
            $0.write(ownAddressKind.rawValue)
            $0.write(0 as UInt8)
            $0.write(phys.rawValue)
            for _ in 0..<phys.rawValue.nonzeroBitCount {
                $0.write(isActive ? 1 as UInt8 : 0)
                $0.write(interval)
                $0.write(window)
            }
        }
    }

    /// Until it is switched off (§7.8.65).
    public static func setExtendedScanEnable(_ isEnabled: Bool, filtersDuplicates: Bool = false) -> HCICommand {
        HCICommand(.setExtendedScanEnable, parameters: [isEnabled ? 1 : 0, filtersDuplicates ? 1 : 0, 0, 0, 0, 0])
    }

    // MARK: Advertising

    /// Connectable and scannable, on all channels, to everybody; intervals in units of 0.625 ms (§7.8.5).
    public static func setAdvertisingParameters(
        minimumInterval: UInt16, maximumInterval: UInt16, ownAddressKind: DeviceAddress.Kind
    ) -> HCICommand {
        HCICommand(.setAdvertisingParameters) {
            $0.write(minimumInterval)
            $0.write(maximumInterval)
            $0.write(0 as UInt8)
            $0.write(ownAddressKind.rawValue)
            $0.writeZeros(7)
            $0.write(7 as UInt8)
            $0.write(0 as UInt8)
        }
    }

    /// At most 31 bytes (§7.8.7).
    public static func setAdvertisingData(_ data: [UInt8]) -> HCICommand {
        legacyData(.setAdvertisingData, data)
    }

    /// At most 31 bytes (§7.8.8).
    public static func setScanResponseData(_ data: [UInt8]) -> HCICommand {
        legacyData(.setScanResponseData, data)
    }

    /// §7.8.9
    public static func setAdvertisingEnable(_ isEnabled: Bool) -> HCICommand {
        HCICommand(.setAdvertisingEnable, parameters: [isEnabled ? 1 : 0])
    }

    private static func legacyData(_ opcode: HCIOpcode, _ data: [UInt8]) -> HCICommand {
        precondition(data.count <= 31)
        return HCICommand(opcode) {
            $0.write(UInt8(data.count))
            $0.write(contentsOf: data)
            $0.writeZeros(31 - data.count)
        }
    }

    /// Connectable and scannable with the legacy packets that every scanner hears (§7.8.53).
    public static func setExtendedAdvertisingParameters(
        set: UInt8, minimumInterval: UInt32, maximumInterval: UInt32, ownAddressKind: DeviceAddress.Kind
    ) -> HCICommand {
        HCICommand(.setExtendedAdvertisingParameters) { writer in
            writer.write(set)
            writer.write(0x0013 as UInt16)
            for interval in [minimumInterval, maximumInterval] {
                writer.write(contentsOf: [
                    UInt8(truncatingIfNeeded: interval), UInt8(truncatingIfNeeded: interval >> 8),
                    UInt8(truncatingIfNeeded: interval >> 16),
                ])
            }
            writer.write(7 as UInt8)
            writer.write(ownAddressKind.rawValue)
            writer.writeZeros(7)  // no peer
            writer.write(0 as UInt8)  // everybody may scan and connect
            writer.write(0x7F as Int8)  // no wish for a transmit power
            writer.write(1 as UInt8)  // first on 1M
            writer.write(0 as UInt8)
            writer.write(1 as UInt8)  // then on 1M
            writer.write(set)
            writer.write(0 as UInt8)
        }
    }

    /// All of it in one command: at most 31 bytes, as its packets are legacy ones (§7.8.54).
    public static func setExtendedAdvertisingData(set: UInt8, _ data: [UInt8]) -> HCICommand {
        extendedData(.setExtendedAdvertisingData, set, data)
    }

    /// §7.8.55
    public static func setExtendedScanResponseData(set: UInt8, _ data: [UInt8]) -> HCICommand {
        extendedData(.setExtendedScanResponseData, set, data)
    }

    private static func extendedData(_ opcode: HCIOpcode, _ set: UInt8, _ data: [UInt8]) -> HCICommand {
        precondition(data.count <= 31)
        return HCICommand(opcode) {
            $0.write(contentsOf: [set, 3, 1, UInt8(data.count)])
            $0.write(contentsOf: data)
        }
    }

    /// One set, without an end in time or number (§7.8.56).
    public static func setExtendedAdvertisingEnable(_ isEnabled: Bool, set: UInt8) -> HCICommand {
        HCICommand(.setExtendedAdvertisingEnable, parameters: [isEnabled ? 1 : 0, 1, set, 0, 0, 0])
    }

    /// §7.8.52
    public static func setAdvertisingSetRandomAddress(set: UInt8, _ address: DeviceAddress) -> HCICommand {
        HCICommand(.setAdvertisingSetRandomAddress) {
            $0.write(set)
            $0.write(address)
        }
    }

    /// §7.8.59
    public static func removeAdvertisingSet(_ set: UInt8) -> HCICommand {
        HCICommand(.removeAdvertisingSet, parameters: [set])
    }
}
