// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A controller's status or reason (Core Specification 5.4, Vol 1 Part F §1.3).
public struct HCIStatus: RawRepresentable, Error, Sendable, Hashable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    public static let success = HCIStatus(rawValue: 0x00)
    public static let unknownCommand = HCIStatus(rawValue: 0x01)
    public static let unknownConnection = HCIStatus(rawValue: 0x02)
    public static let authenticationFailure = HCIStatus(rawValue: 0x05)
    /// The peer has lost its keys.
    public static let keyMissing = HCIStatus(rawValue: 0x06)
    public static let memoryExceeded = HCIStatus(rawValue: 0x07)
    public static let connectionTimeout = HCIStatus(rawValue: 0x08)
    public static let connectionLimit = HCIStatus(rawValue: 0x09)
    public static let connectionExists = HCIStatus(rawValue: 0x0B)
    public static let commandDisallowed = HCIStatus(rawValue: 0x0C)
    public static let limitedResources = HCIStatus(rawValue: 0x0D)
    public static let unsupportedFeature = HCIStatus(rawValue: 0x11)
    public static let invalidParameters = HCIStatus(rawValue: 0x12)
    public static let remoteUserTerminated = HCIStatus(rawValue: 0x13)
    public static let remoteLowResources = HCIStatus(rawValue: 0x14)
    public static let remotePowerOff = HCIStatus(rawValue: 0x15)
    public static let localHostTerminated = HCIStatus(rawValue: 0x16)
    public static let unsupportedRemoteFeature = HCIStatus(rawValue: 0x1A)
    public static let unspecified = HCIStatus(rawValue: 0x1F)
    /// A link-layer procedure got no response.
    public static let responseTimeout = HCIStatus(rawValue: 0x22)
    /// Both sides began the same link-layer procedure.
    public static let procedureCollision = HCIStatus(rawValue: 0x23)
    public static let differentTransactionCollision = HCIStatus(rawValue: 0x2A)
    public static let controllerBusy = HCIStatus(rawValue: 0x3A)
    public static let unacceptableParameters = HCIStatus(rawValue: 0x3B)
    /// A packet failed its integrity check: the keys of both sides differ.
    public static let integrityFailure = HCIStatus(rawValue: 0x3D)
    /// The peer was there, and then did not answer.
    public static let failedToEstablish = HCIStatus(rawValue: 0x3E)
}

extension HCIStatus: CustomStringConvertible {
    /// Such as `0x3e`; words for people are made where errors for people are.
    public var description: String {
        "0x" + (rawValue < 16 ? "0" : "") + String(rawValue, radix: 16)
    }
}
