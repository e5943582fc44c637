// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension ControllerSetupStateMachine {
    /// The commands of the bring-up, in their order.
    enum Step: Int, CaseIterable, Sendable {
        case readVersion
        case readSupportedCommands
        case readFeatures
        case readSupportedFeatures
        case readAddress
        case readBufferSizeV2
        case readBufferSizeV1
        /// For controllers that share the buffers of BR/EDR: those of LE are then 0 (Vol 4 Part E §7.8.2).
        case readSharedBufferSize
        case setEventMask
        case setEventMaskPage2
        case setLEEventMask
        case writeLEHostSupport
        case readAcceptListSize
        case readResolvingListSize
        case clearResolvingList
        case addToResolvingList
        case setPrivacyMode
        case setPrivateAddressTimeout
        case enableAddressResolution
        case readMaximumDataLength
        case writeDefaultDataLength
        case setDefaultPHY
        case setRandomAddress

        var opcode: HCIOpcode {
            switch self {
            case .readVersion: .readLocalVersion
            case .readSupportedCommands: .readSupportedCommands
            case .readFeatures: .readLEFeatures
            case .readSupportedFeatures: .readSupportedFeatures
            case .readAddress: .readAddress
            case .readBufferSizeV2: .readLEBufferSizeV2
            case .readBufferSizeV1: .readLEBufferSize
            case .readSharedBufferSize: .readBufferSize
            case .setEventMask: .setEventMask
            case .setEventMaskPage2: .setEventMaskPage2
            case .setLEEventMask: .setLEEventMask
            case .writeLEHostSupport: .writeLEHostSupport
            case .readAcceptListSize: .readAcceptListSize
            case .readResolvingListSize: .readResolvingListSize
            case .clearResolvingList: .clearResolvingList
            case .addToResolvingList: .addToResolvingList
            case .setPrivacyMode: .setPrivacyMode
            case .setPrivateAddressTimeout: .setPrivateAddressTimeout
            case .enableAddressResolution: .setAddressResolutionEnable
            case .readMaximumDataLength: .readMaximumDataLength
            case .writeDefaultDataLength: .writeDefaultDataLength
            case .setDefaultPHY: .setDefaultPHY
            case .setRandomAddress: .setRandomAddress
            }
        }

        /// Nothing works without it.
        var isRequired: Bool {
            switch self {
            case .readFeatures, .readSharedBufferSize, .setEventMask, .setLEEventMask, .setRandomAddress: true
            case .readVersion, .readSupportedCommands, .readSupportedFeatures, .readAddress, .readBufferSizeV2,
                .readBufferSizeV1, .setEventMaskPage2, .writeLEHostSupport, .readAcceptListSize,
                .readResolvingListSize, .clearResolvingList, .addToResolvingList, .setPrivacyMode,
                .setPrivateAddressTimeout, .enableAddressResolution, .readMaximumDataLength, .writeDefaultDataLength,
                .setDefaultPHY:
                false
            }
        }
    }

    /// Which events the controller sends (Vol 4 Part E §7.3.1, §7.3.69, §7.8.1).
    enum EventMasks {
        /// Disconnection (4), encryption change (7), remote version (11), hardware error (15), completed packets (18),
        /// buffer overflow (25), key refresh (47), LE (61).
        static let main: UInt64 =
            1 << 4 | 1 << 7 | 1 << 11 | 1 << 15 | 1 << 18 | 1 << 25 | 1 << 47 | 1 << 61
        /// Encryption change, second version (25).
        static let page2: UInt64 = 1 << 25
        /// Connection complete (0), reports (1), update (2), remote features (3), key request (4); and what the
        /// controller's features bring, for some controllers refuse bits that are newer than they are.
        static func le(_ descriptor: ControllerDescriptor) -> UInt64 {
            var mask: UInt64 = 0b1_1111
            // Parameter request (5), data length (6), enhanced connection complete and directed reports (9, 10), modes
            // (11), extended reports and end of a set (12, 17), the second version of the enhanced form (40, Core 5.4).
            if descriptor.features.contains(.connectionParameterRequest) { mask |= 1 << 5 }
            if descriptor.features.contains(.dataLengthExtension) { mask |= 1 << 6 }
            if descriptor.features.contains(.privacy) { mask |= 1 << 9 | 1 << 10 }
            if !descriptor.features.isDisjoint(with: [.twoMegabit, .coded]) { mask |= 1 << 11 }
            if descriptor.features.contains(.extendedAdvertising) { mask |= 1 << 9 | 1 << 12 | 1 << 17 }
            if descriptor.hciVersion >= 13 { mask |= 1 << 40 }
            return mask
        }
    }
}
