// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What a controller is and can do, found out when it was set up.
public struct ControllerDescriptor: Sendable, Hashable {
    /// Which commands of scanning, advertising and connecting are used; they must not be mixed (Core Specification 5.4,
    /// Vol 4 Part E §3.1.1).
    public enum CommandFamily: Sendable, Hashable {
        case legacy
        case extended
    }

    /// How much data the controller takes.
    public struct Buffers: Sendable, Hashable {
        /// The longest payload of one packet.
        public var packetLength: Int
        /// How many packets, of all links together.
        public var count: Int

        public init(packetLength: Int, count: Int) {
            self.packetLength = packetLength
            self.count = count
        }
    }

    /// Assigned Numbers §2.2: 9 is 5.0, 13 is 5.4.
    public var hciVersion: UInt8 = 0
    /// Its maker's own number.
    public var hciRevision: UInt16 = 0
    /// Of the link layer; counted as ``hciVersion``.
    public var linkVersion: UInt8 = 0
    /// Its maker's own number.
    public var linkSubversion: UInt16 = 0
    /// Who made it.
    public var company: UInt16 = 0
    public var features: LEFeatures = []
    /// BR/EDR is there too (Vol 2 Part C §3.3, bit 37 says it is not).
    public var isDualMode = false
    /// Where the controller has its own, public address.
    public var publicAddress: DeviceAddress?
    /// What this host is seen as.
    public var ownAddress = DeviceAddress(0, .public)
    public var buffers = Buffers(packetLength: 0, count: 0)
    /// It has no buffers for LE alone: BR/EDR uses the same (Vol 4 Part E §7.8.2).
    public var sharesBuffers = false
    /// What it refused though it says it knows it; this host does without.
    public var refused: [HCIOpcode] = []
    /// It does not say which commands it knows.
    public var hidesCommands: Bool { supportedCommands.isEmpty }
    public var family = CommandFamily.legacy
    public var acceptListSize = 0
    public var resolvingListSize = 0
    /// Identities in the resolving list; it is switched on when there is any.
    public var resolvedIdentities: [DeviceAddress] = []
    public var maximumDataLength = DataLength.minimum
    /// The answer to Read_Local_Supported_Commands; empty if it was refused.
    var supportedCommands: [UInt8] = []

    public init() {}

    /// Whether the controller says that it knows a command. One that cannot say is asked by trying.
    public func supports(_ opcode: HCIOpcode) -> Bool {
        guard !supportedCommands.isEmpty, let (octet, bit) = opcode.supportedBit else { return true }
        return octet < supportedCommands.count && supportedCommands[octet] >> bit & 1 == 1
    }
}
