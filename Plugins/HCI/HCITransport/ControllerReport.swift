// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshTransportAPI

/// What a controller is and can do, for people and programs.
struct ControllerReport {
    let port: HCIPort
    let controller: ControllerDescriptor
    /// Devices use it just now.
    let isInUse: Bool

    var json: JSONValue {
        [
            "controller": .string("\(port)"), "in_use": .bool(isInUse),
            // The random one that devices see is part of the bonds, and not known to whoever only looks.
            "address": controller.publicAddress.map { .string("\($0)") } ?? .null,
            "hci_version": .int(Int64(controller.hciVersion)),
            "hci_version_name": Self.name(ofVersion: controller.hciVersion).map { .string($0) } ?? .null,
            "hci_revision": .int(Int64(controller.hciRevision)),
            "link_version": .int(Int64(controller.linkVersion)),
            "link_subversion": .int(Int64(controller.linkSubversion)),
            "manufacturer": .int(Int64(controller.company)),
            "manufacturer_name": Self.name(ofCompany: controller.company).map { .string($0) } ?? .null,
            "dual_mode": .bool(controller.isDualMode),
            "buffers": [
                "count": .int(Int64(controller.buffers.count)), "length": .int(Int64(controller.buffers.packetLength)),
                "shared": .bool(controller.sharesBuffers),
            ],
            "features": .array(Self.features.filter { controller.features.contains($0.0) }.map { .string($0.1) }),
            "feature_bits": .string("0x" + String(controller.features.rawValue, radix: 16)),
            "commands": .string(controller.family == .extended ? "extended" : "legacy"),
            "data_length": .int(Int64(controller.maximumDataLength.octets)),
            "accept_list": .int(Int64(controller.acceptListSize)),
            "resolving_list": .int(Int64(controller.resolvingListSize)),
            "quirks": .array(quirks.map { .string($0) }),
        ]
    }

    /// What this host works around.
    private var quirks: [String] {
        var quirks: [String] = []
        if controller.hidesCommands {
            quirks.append("it does not say which commands it knows: each is tried, and the legacy ones are used")
        }
        if controller.publicAddress == nil {
            quirks.append("it has no address of its own: a static random one is used")
        }
        if controller.sharesBuffers { quirks.append("it has no buffers for LE alone: those of BR/EDR are used") }
        if controller.buffers.count == 1 { quirks.append("it has one buffer: links take turns, packet by packet") }
        if controller.features.contains(.extendedAdvertising), controller.family == .legacy {
            quirks.append("it has extended advertising without the commands for it: the legacy ones are used")
        }
        for opcode in controller.refused {
            quirks.append("it refuses command \(opcode): this host does without")
        }
        return quirks
    }

    /// Core Specification 5.4, Vol 6 Part B §4.6; those that mean something to this host.
    private static let features: [(LEFeatures, String)] = [
        (.encryption, "encryption"), (.connectionParameterRequest, "connection-parameter-request"),
        (.dataLengthExtension, "data-length-extension"), (.privacy, "privacy"), (.twoMegabit, "2m-phy"),
        (.coded, "coded-phy"), (.extendedAdvertising, "extended-advertising"),
    ]

    /// Assigned Numbers §2.2; nil for what is newer than this list.
    private static func name(ofVersion version: UInt8) -> String? {
        let names = [
            "1.0b", "1.1", "1.2", "2.0", "2.1", "3.0", "4.0", "4.1", "4.2", "5.0", "5.1", "5.2", "5.3", "5.4", "6.0",
        ]
        return Int(version) < names.count ? names[Int(version)] : nil
    }

    /// Assigned Numbers §7.1: makers of controllers that are met on Linux.
    private static func name(ofCompany company: UInt16) -> String? {
        switch company {
        case 0x0002: "Intel"
        case 0x000A: "Qualcomm (CSR)"
        case 0x000D: "Texas Instruments"
        case 0x000F: "Broadcom"
        case 0x001D: "Qualcomm"
        case 0x0030: "STMicroelectronics"
        case 0x0046: "MediaTek"
        case 0x0048: "Marvell"
        case 0x0059: "Nordic Semiconductor"
        case 0x005D: "Realtek"
        case 0x0131: "Cypress"
        case 0x02E5: "Espressif"
        case 0x02FF: "Silicon Labs"
        case 0x05F1: "Linux Foundation"
        default: nil
        }
    }
}
