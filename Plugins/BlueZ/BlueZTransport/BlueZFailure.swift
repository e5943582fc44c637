// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What bluetoothd was asked to do when it failed: the same error name means different things.
enum BlueZOperation: Sendable, Hashable {
    case readTree
    case connect
    case disconnect
    case discover
    case pair(passkeyWasAsked: Bool)
    case subscribe
    case read
    case write
    case removeBond
    case powerOn
    case registerAgent

    /// As `MeshError.Context.operation` names it.
    var name: String {
        switch self {
        case .readTree: "read"
        case .connect: "connect"
        case .disconnect: "disconnect"
        case .discover: "scan"
        case .pair: "pair"
        case .subscribe: "subscribe"
        case .read: "read"
        case .write: "send"
        case .removeBond: "unpair"
        case .powerOn: "power on"
        case .registerAgent: "register agent"
        }
    }
}

/// What an error of the bus or of bluetoothd means. `MeshError+BlueZ.swift` reads it from the names and says it to people.
enum BlueZFailure: Sendable, Hashable {
    /// Our task was cancelled.
    case cancelled
    /// Nobody answers for bluetoothd: not running, gone, or the bus is.
    case serviceGone
    /// It did not answer in time.
    case serviceSilent
    /// The policy of the bus refuses.
    case accessDenied
    /// The object is not in the tree any more.
    case objectGone
    /// The adapter is off, or not up yet.
    case adapterOff
    /// The adapter says that it is not up, and is on.
    case adapterNotReady
    /// The adapter is blocked by rfkill.
    case adapterBlocked
    /// Something of the same kind is under way, ours or another client's.
    case inProgress
    /// What was asked for is so already.
    case alreadyDone
    /// The link came up and was aborted by this side's controller or kernel.
    case linkAborted
    /// The device did not answer.
    case peerSilent
    /// The controller has no room for one more link.
    case noSlots
    /// The device has lost its keys, or they do not match.
    case bondStale
    /// Perhaps it has: see ``BondSuspicion``.
    case bondSuspect
    /// The device refuses: not encrypted, not authenticated, or not authorised enough.
    case securityInsufficient
    /// Another program holds the characteristic.
    case acquiredElsewhere
    /// The attribute does not allow it.
    case notAllowed
    /// There is no such function on this device.
    case unsupported
    /// The link has ended.
    case notConnected
    case valueTooLong
    /// Another ATT error (Core Specification, Vol 3 Part F §3.4.1.1).
    case att(UInt8)
    /// Our pairing agent could not be registered.
    case agentNotTaken
    case passkeyWrong
    /// Pairing failed and our agent was not asked.
    case agentNotAsked
    /// Nobody answered for too long during a pairing.
    case pairingTimeout
    case pairingRejected
    /// The link was lost in the middle of a pairing.
    case pairingInterrupted
    case other
}
