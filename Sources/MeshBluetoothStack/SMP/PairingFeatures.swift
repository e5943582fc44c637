// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// What one side of a pairing can do and wants (Core Specification 5.4, Vol 3 Part H §3.5.1).
public struct PairingFeatures: Sendable, Hashable {
    /// What a person can do at a device (§2.3.2).
    public enum Capability: UInt8, Sendable, Hashable {
        case displayOnly = 0
        case displayYesNo = 1
        case keyboardOnly = 2
        case noInputNoOutput = 3
        case keyboardDisplay = 4

        var hasKeyboard: Bool { self == .keyboardOnly || self == .keyboardDisplay }
        var hasDisplay: Bool { self == .displayOnly || self == .displayYesNo || self == .keyboardDisplay }
    }

    /// The AuthReq field.
    public struct Requirements: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8

        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The lower of the two bits for bonding, the only one in use.
        public static let bonding = Requirements(rawValue: 0x01)
        /// Protection against somebody in the middle.
        public static let authentication = Requirements(rawValue: 0x04)
        public static let secureConnections = Requirements(rawValue: 0x08)
        public static let keypress = Requirements(rawValue: 0x10)
    }

    /// Which keys a side gives to the other.
    public struct Keys: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8

        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// A key to encrypt later links with; only legacy pairing gives it.
        public static let encryption = Keys(rawValue: 0x01)
        /// The key that resolves private addresses, and the address behind them.
        public static let identity = Keys(rawValue: 0x02)
        public static let signing = Keys(rawValue: 0x04)
    }

    public var capability: Capability
    public var hasOutOfBandData: Bool
    public var requirements: Requirements
    /// 7...16.
    public var maximumKeySize: UInt8
    public var initiatorKeys: Keys
    public var responderKeys: Keys

    public init(
        capability: Capability, hasOutOfBandData: Bool = false, requirements: Requirements, maximumKeySize: UInt8 = 16,
        initiatorKeys: Keys, responderKeys: Keys
    ) {
        self.capability = capability
        self.hasOutOfBandData = hasOutOfBandData
        self.requirements = requirements
        self.maximumKeySize = maximumKeySize
        self.initiatorKeys = initiatorKeys
        self.responderKeys = responderKeys
    }

    init(_ reader: inout ByteReader) throws(DecodeError) {
        let start = reader.offset
        // Reserved values stand for a device of a later version; it is dealt with as one that can do nothing.
        capability = Capability(rawValue: try reader.read()) ?? .noInputNoOutput
        let flag = try reader.read(UInt8.self)
        guard flag <= 1 else { throw DecodeError(.invalidField("OOB data flag"), offset: start + 1) }
        hasOutOfBandData = flag == 1
        requirements = Requirements(rawValue: try reader.read())
        maximumKeySize = try reader.read()
        initiatorKeys = Keys(rawValue: try reader.read())
        responderKeys = Keys(rawValue: try reader.read())
    }

    /// Without the code.
    var bytes: [UInt8] {
        [capability.rawValue, hasOutOfBandData ? 1 : 0, requirements.rawValue, maximumKeySize, initiatorKeys.rawValue]
            + [responderKeys.rawValue]
    }

    /// Capability, OOB flag and AuthReq in the notation of the check value's function (§2.2.8).
    var checkInput: [UInt8] { [requirements.rawValue, hasOutOfBandData ? 1 : 0, capability.rawValue] }
}
