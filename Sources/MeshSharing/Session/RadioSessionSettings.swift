// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshCompanion

/// What code hands in for the session of one radio.
public struct RadioSessionSettings: Sendable {
    /// Times and limits of the command lane.
    public var lane = CommandLaneConfiguration()
    /// Times of the radio's one pending mesh request.
    public var meshRequests = MeshRequestConfiguration()
    /// How long a client's mesh request may wait for another one to end before it is refused with ERR_TABLE_FULL. Apps give
    /// a reply about 5 s (meshcore_py 2.3.17).
    public var meshRequestWait = Duration.seconds(4)
    /// How long a client's send may wait while the radio is away before it is refused with ERR_BAD_STATE; zero refuses at
    /// once.
    public var sendWait = Duration.seconds(4)
    /// How long nothing may come from the radio before it is asked whether it is there.
    public var probeSilence = Duration.seconds(30)
    /// How often the radio is asked for messages though it told of none: its push may be lost.
    public var fetchInterval = Duration.seconds(60)
    /// Whether the radio's clock is set when it is behind the host's.
    public var setsClock = true
    /// How many of the newest messages a client gets that was never here before.
    public var backlog = 16

    public init() {}
}
