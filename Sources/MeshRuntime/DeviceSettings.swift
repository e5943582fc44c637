// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// One device as the coordinator is told to keep it.
public struct DeviceSettings: Sendable {
    /// The configured name.
    public var name: String
    /// Makes the transport; it is kept for all links until ``ReconnectionCoordinator/updateDevice(_:needsNewLink:)``.
    public var makeTransport: @Sendable (TransportEnvironment) throws(MeshError) -> any MeshTransport
    public var session: any LinkSession
    /// When it is tried again, and through what it is reached.
    public var link: DeviceLinkSettings
    /// What holds until somebody asks for something else; a stored intent goes before it.
    public var initialIntent: LinkIntent

    public init(
        name: String, link: DeviceLinkSettings = DeviceLinkSettings(), session: any LinkSession = DrainSession(),
        initialIntent: LinkIntent = .connect,
        makeTransport: @escaping @Sendable (TransportEnvironment) throws(MeshError) -> any MeshTransport
    ) {
        self.name = name
        self.link = link
        self.session = session
        self.initialIntent = initialIntent
        self.makeTransport = makeTransport
    }
}

/// One device as it is at one moment.
public struct DeviceStatus: Sendable, Equatable {
    /// What the reconnection machine knows.
    public var link: DeviceLinkSnapshot
    /// Where the transport last said it was.
    public var transportPhase: LinkPhase
    /// What the transport told of the link that is up.
    public var info: LinkInfo?
}
