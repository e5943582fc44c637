// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How a ``MeshCoreSession`` behaves.
public struct MeshSessionSettings: Sendable {
    /// The name that the radio is told in APP_START.
    public var appName = "meshhost"
    /// The protocol version asked for in DEVICE_QUERY. Since 3, messages tell their signal strength.
    public var protocolVersion = CompanionFrame.hostProtocolVersion
    /// How often the handshake is tried on one link. (Two: some boards restart when a serial line is opened, and what is
    /// sent meanwhile is lost; companion-protocol §1.1.)
    public var handshakeAttempts = 2
    /// Whether a radio's clock that is behind is set at the start of a link. The firmware refuses to set it back.
    public var correctsClock = true
    /// How far behind the radio's clock may be.
    public var clockTolerance: Duration = .seconds(5)
    /// Whether a copy of the contacts is fetched at the start of a link and kept true by what the radio tells.
    public var keepsContacts = true
    /// Whether messages are fetched at the start of a link, and whenever the radio has one. Only while there is a
    /// subscriber: the radio forgets what it hands out.
    public var fetchesMessages = true
    /// After how long messages are asked for although the radio has not said that there are any; nil for never. (It says
    /// so once, and not to a link whose send queue is full; companion-protocol §2.4.)
    public var messagePoll: Duration? = .seconds(60)
    /// After how long without a frame the radio is asked for a sign of life; nil for never. (companion-protocol §2.4)
    public var probeAfter: Duration? = .seconds(30)
    /// How many calls may wait for the radio at once.
    public var callLimit = 128
    /// How many channels are asked for at once where the transport allows it. (Four: the smallest queue among the radios,
    /// firmware `SerialWifiInterface` and `SerialBLEInterface`; companion-protocol §1.1, §1.2.)
    public var pipelineWindow = 4
    /// How many events wait for a subscriber of ``MeshCoreSession/events`` at most.
    public var eventBuffer = 1_024
    /// Times and limits of the command lane.
    public var lane = CommandLaneConfiguration()
    /// Times of requests to other nodes, and of acknowledgements.
    public var requests = MeshRequestConfiguration()

    public init() {}
}
