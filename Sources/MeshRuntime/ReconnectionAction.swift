// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// What the reconnection machine asks its driver to do.
public enum ReconnectionAction: Sendable, Equatable {
    /// Connect the device's transport, then run the session's handshake. Report `linkEstablished`, `sessionReady` and,
    /// when nothing of it is left, `linkEnded`.
    case startAttempt(device: String, generation: UInt64)
    /// Cancel that attempt, or that link once its session has nothing under way that would be lost, at the latest after a
    /// moment; report `linkEnded` when nothing of it is left. May come twice.
    case endLink(device: String, generation: UInt64)
    /// The device is gone from the machine.
    case forget(device: String)
    /// Tell those who listen.
    case report(device: String, LinkReport)
    /// Tell them that an adapter went or came back.
    case reportAdapter(String, isAvailable: Bool)
}

/// What happened to a device's link, for events and logs.
public enum LinkReport: Sendable, Equatable {
    /// The intent is another one.
    case intentChanged(LinkIntent)
    /// An attempt began, the `attempt`-th since somebody asked.
    case connecting(attempt: Int, generation: UInt64)
    /// The link is up.
    case up(generation: UInt64)
    /// The device answers.
    case ready(generation: UInt64)
    /// An attempt or link is over. `reason` is nil where this side asked for it; `phase` is how far it had come.
    case down(reason: MeshError?, phase: DeviceLinkSnapshot.Phase, generation: UInt64)
    /// Nothing is under way.
    case waiting(WaitReason, remaining: Duration?)
    /// What was told to end has not ended.
    case unended(generation: UInt64)
}
