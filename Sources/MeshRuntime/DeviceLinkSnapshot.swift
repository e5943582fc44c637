// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// What the reconnection machine knows about one device at one moment.
public struct DeviceLinkSnapshot: Sendable, Equatable {
    /// Where an attempt or a link is.
    public enum Phase: String, Sendable, Hashable, CaseIterable {
        /// No attempt and no link; ``DeviceLinkSnapshot/waiting`` says why.
        case waiting
        /// The transport is connecting.
        case connecting
        /// The link is up, the device has not answered yet.
        case handshaking
        /// The device answers.
        case ready
        /// An attempt or a link was told to end and has not yet.
        case ending
    }

    /// Whether failures in a row have made attempts rare.
    public enum Breaker: String, Sendable, Hashable, CaseIterable {
        case closed
        case open
        /// Open, and the one attempt is under way or its link is not stable yet.
        case halfOpen = "half-open"
    }

    public var device: String
    public var phase: Phase
    public var intent: LinkIntent
    /// Attempts since the device was added or a person last asked for the link.
    public var attempts: Int
    /// Failures in a row since the link was last stable.
    public var consecutiveFailures: Int
    public var breaker: Breaker
    public var lastError: MeshError?
    /// Why nothing is under way; nil while connecting, handshaking or ready.
    public var waiting: WaitReason?
    /// How long the wait, or the attempt's present phase, may still take; nil where an event ends it.
    public var remaining: Duration?
    /// When the device became ready, on the monotonic clock.
    public var readySince: Duration?
    /// Of the attempt or link under way, else of the last one; 0 before the first.
    public var generation: UInt64
    /// Facts that came too late or made no sense, and were dropped.
    public var staleFacts: Int

    /// What people are shown.
    public var state: DeviceState {
        switch phase {
        case .waiting, .ending: .disconnected
        case .connecting: .connecting
        case .handshaking: .connected
        case .ready: .ready
        }
    }
}
