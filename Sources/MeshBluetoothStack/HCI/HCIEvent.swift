// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// An event from the controller (Core Specification 5.4, Vol 4 Part E §7.7). Bytes behind the known parameters are
/// passed over: later versions of the specification, and vendors, add some.
public enum HCIEvent: Sendable, Hashable {
    /// §7.7.14
    case commandComplete(HCIOpcode, parameters: [UInt8], allowance: UInt8)
    /// §7.7.15
    case commandStatus(HCIOpcode, HCIStatus, allowance: UInt8)
    /// §7.7.5
    case disconnectionComplete(HCIStatus, ConnectionHandle, reason: HCIStatus)
    /// §7.7.8, both versions
    case encryptionChange(HCIStatus, ConnectionHandle, isEncrypted: Bool)
    /// §7.7.39
    case encryptionKeyRefreshed(HCIStatus, ConnectionHandle)
    /// §7.7.12
    case remoteVersion(HCIStatus, ConnectionHandle, RemoteVersion)
    /// §7.7.16
    case hardwareError(UInt8)
    /// §7.7.19
    case completedPackets([CompletedPackets])
    /// The host sent more than the controller has room for (§7.7.26).
    case dataBufferOverflow
    /// §7.7.65.1, §7.7.65.10
    case connectionComplete(ConnectionComplete)
    /// §7.7.65.2, §7.7.65.11, §7.7.65.13
    case advertisingReports([AdvertisingReport])
    /// §7.7.65.3
    case connectionUpdated(HCIStatus, ConnectionHandle, CurrentParameters)
    /// §7.7.65.4
    case remoteFeatures(HCIStatus, ConnectionHandle, LEFeatures)
    /// §7.7.65.5
    case longTermKeyRequested(ConnectionHandle, random: UInt64, diversifier: UInt16)
    /// §7.7.65.6
    case parametersRequested(ConnectionHandle, ConnectionParameters)
    /// §7.7.65.7
    case dataLengthChanged(ConnectionHandle, transmit: DataLength, receive: DataLength)
    /// §7.7.65.12
    case phyUpdated(HCIStatus, ConnectionHandle, transmit: UInt8, receive: UInt8)
    /// §7.7.65.18
    case advertisingSetTerminated(HCIStatus, set: UInt8, ConnectionHandle)
    /// One that this host has no use for; `subevent` for those of LE.
    case other(code: UInt8, subevent: UInt8?)

    /// What a peer's link layer is (§7.7.12).
    public struct RemoteVersion: Sendable, Hashable {
        public var version: UInt8
        public var company: UInt16
        public var subversion: UInt16
    }

    /// How many packets of a link have left the controller.
    public struct CompletedPackets: Sendable, Hashable {
        public var handle: ConnectionHandle
        public var count: UInt16

        public init(handle: ConnectionHandle, count: UInt16) {
            self.handle = handle
            self.count = count
        }
    }

    /// What a link runs with.
    public struct CurrentParameters: Sendable, Hashable {
        /// In units of 1.25 ms.
        public var interval: UInt16
        public var latency: UInt16
        /// In units of 10 ms.
        public var supervisionTimeout: UInt16

        public init(interval: UInt16, latency: UInt16, supervisionTimeout: UInt16) {
            self.interval = interval
            self.latency = latency
            self.supervisionTimeout = supervisionTimeout
        }
    }
}

/// How an attempt to connect ended, or that a central has connected.
public struct ConnectionComplete: Sendable, Hashable {
    public var status: HCIStatus
    public var handle: ConnectionHandle
    public var role: LinkRole
    /// An identity where `isPeerResolved`.
    public var peer: DeviceAddress
    /// The controller recognised the peer's private address by a key of the resolving list.
    public var isPeerResolved: Bool
    /// The own private address that the controller made; nil where it made none.
    public var localPrivateAddress: DeviceAddress?
    /// The peer's private address that was resolved; nil where there was none.
    public var peerPrivateAddress: DeviceAddress?
    public var parameters: HCIEvent.CurrentParameters

    public init(
        status: HCIStatus, handle: ConnectionHandle, role: LinkRole, peer: DeviceAddress, isPeerResolved: Bool = false,
        localPrivateAddress: DeviceAddress? = nil, peerPrivateAddress: DeviceAddress? = nil,
        parameters: HCIEvent.CurrentParameters
    ) {
        self.status = status
        self.handle = handle
        self.role = role
        self.peer = peer
        self.isPeerResolved = isPeerResolved
        self.localPrivateAddress = localPrivateAddress
        self.peerPrivateAddress = peerPrivateAddress
        self.parameters = parameters
    }
}

extension ConnectionComplete {
    /// The address that the peer used on the air; pairing computes with it, not with the identity behind it.
    public var peerOnAir: DeviceAddress { peerPrivateAddress ?? peer }

    /// The address that this host used on the air; `own` is the one it was told to use.
    public func ownOnAir(_ own: DeviceAddress) -> DeviceAddress { localPrivateAddress ?? own }
}

/// What a link layer can do (Vol 6 Part B §4.6).
public struct LEFeatures: OptionSet, Sendable, Hashable {
    public let rawValue: UInt64

    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    public static let encryption = LEFeatures(rawValue: 1 << 0)
    public static let connectionParameterRequest = LEFeatures(rawValue: 1 << 1)
    public static let dataLengthExtension = LEFeatures(rawValue: 1 << 5)
    public static let privacy = LEFeatures(rawValue: 1 << 6)
    public static let twoMegabit = LEFeatures(rawValue: 1 << 8)
    public static let coded = LEFeatures(rawValue: 1 << 11)
    public static let extendedAdvertising = LEFeatures(rawValue: 1 << 12)
}
