// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What happens to a link beside its frames. A transport reports these to the sink in its ``TransportEnvironment``.
public enum LinkEvent: Sendable {
    /// The link entered a phase.
    case phase(LinkPhase)
    /// Frames can be sent.
    case up(LinkInfo)
    /// The link ended. `reason` is nil when the host asked for it. Reported before the frame stream finishes.
    case down(reason: MeshError?)
    /// Frames from the device that found no room in the bounded stream, since the last such report.
    case framesDropped(count: Int)
    /// Bytes that belonged to no valid frame were skipped, since the last such report.
    case bytesSkipped(count: Int)
    /// The adapter (or, for sockets, the network) this link goes through became usable or unusable. The only event that may
    /// also be reported while there is no link: after an attempt that failed for the want of an adapter somebody waits.
    case adapter(available: Bool)
}

/// Facts about a link that just came up.
public struct LinkInfo: Sendable, Hashable {
    /// The largest frame that can be sent, in bytes.
    public var maximumFrameLength: Int
    /// The peer as a person would write it, such as `192.168.4.1:5000`.
    public var peer: String

    public init(maximumFrameLength: Int, peer: String) {
        self.maximumFrameLength = maximumFrameLength
        self.peer = peer
    }
}

/// One device seen while scanning.
public struct ScanResult: Sendable, Hashable {
    /// What `connect` needs to find it again.
    public var address: String
    /// The name it gives itself; comes from the air, so it may hold anything.
    public var name: String
    /// Received signal strength in dBm, nil where the medium has none.
    public var rssi: Int?
    /// The raw advertisement, empty where the medium has none.
    public var advertisement: [UInt8]

    public init(address: String, name: String, rssi: Int? = nil, advertisement: [UInt8] = []) {
        self.address = address
        self.name = name
        self.rssi = rssi
        self.advertisement = advertisement
    }
}
