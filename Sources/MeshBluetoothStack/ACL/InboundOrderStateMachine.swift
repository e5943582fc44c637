// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Puts data behind the event it depends on.
///
///     data of a link ──▶ link unknown?          held until `linkOpened`
///                        encryption under way?  held until `encryptionChanged`
///                        else                   delivered
///
/// A controller sends events and data in order, but USB carries them on two endpoints, and a host may read them the
/// other way round (Core Specification 5.4, Vol 4 Part B §2.1.1): the first data of a link before its Connection
/// Complete, the first encrypted data before Encryption Change. Data of an unknown link is held for 100 ms, then it
/// belongs to a link that has ended. Data behind an encryption is held until the event, which comes for certain; a few
/// packets only, then all go on as they came.
public struct InboundOrderStateMachine: ~Copyable, Sendable {
    public struct Configuration: Sendable {
        /// Packets held in all for unknown links, and for each link that is being encrypted.
        public var limit = 8
        public var unknownLinkTimeout: Duration = .milliseconds(100)

        public init() {}
    }

    /// What to do with packets.
    public enum Action: Sendable, Hashable {
        case hold
        /// In this order.
        case deliver([ACLPacket])
        /// There is no room, or no such link.
        case drop
    }

    private struct Link {
        var isEncrypting = false
        var held: [ACLPacket] = []
    }

    private let configuration: Configuration
    private var links: [ConnectionHandle: Link] = [:]
    private var early: [(packet: ACLPacket, since: Duration)] = []
    /// Packets of links that never came.
    public private(set) var dropped: UInt64 = 0

    public init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? { early.first.map { $0.since + configuration.unknownLinkTimeout } }

    /// A link is there; returns what came before it.
    public mutating func linkOpened(_ handle: ConnectionHandle) -> [ACLPacket] {
        links[handle] = Link()
        let packets = early.filter { $0.packet.handle == handle }.map(\.packet)
        early.removeAll { $0.packet.handle == handle }
        return packets
    }

    /// A link has ended; what was held is void.
    public mutating func linkClosed(_ handle: ConnectionHandle) {
        links[handle] = nil
        early.removeAll { $0.packet.handle == handle }
    }

    /// The command that begins an encryption, or gives the key for it, was sent.
    public mutating func encryptionBegan(_ handle: ConnectionHandle) {
        links[handle]?.isEncrypting = true
    }

    /// Encryption Change or Key Refresh came, or the command was refused, which neither follows; returns what was held.
    public mutating func encryptionChanged(_ handle: ConnectionHandle) -> [ACLPacket] {
        guard var link = links[handle] else { return [] }
        let packets = link.held
        link = Link()
        links[handle] = link
        return packets
    }

    /// Whether ``packetReceived(_:now:)`` would deliver a packet of this link, it alone and at once, and change nothing.
    public func passes(_ handle: ConnectionHandle) -> Bool {
        links[handle]?.isEncrypting == false
    }

    public mutating func packetReceived(_ packet: ACLPacket, now: Duration) -> Action {
        guard var link = links[packet.handle] else {
            guard early.count < configuration.limit else {
                dropped += 1
                return .drop
            }
            early.append((packet, now))
            return .hold
        }
        guard link.isEncrypting else { return .deliver([packet]) }
        link.held.append(packet)
        if link.held.count > configuration.limit {
            links[packet.handle] = Link()
            return .deliver(link.held)
        }
        links[packet.handle] = link
        return .hold
    }

    /// Early calls change nothing.
    public mutating func deadlineReached(now: Duration) {
        let before = early.count
        early.removeAll { $0.since + configuration.unknownLinkTimeout <= now }
        dropped += UInt64(before - early.count)
    }
}
