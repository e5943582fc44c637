// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Sends the data of all links through the controller's buffers, each link in its turn (Core Specification 5.4, Vol 4
/// Part E §4.1.1).
///
///     frames ──▶ queue of link A ─┐ packet by packet,
///     frames ──▶ queue of link B ─┼──────────────────▶ controller's buffers: `total`, shared by all links
///     frames ──▶ queue of link C ─┘ one link after the other        │ completed packets, or the end of the link
///                     ▲                                             │ give buffers back
///                     └─────────────────────────────────────────────┘
///
/// A frame becomes packets of at most the controller's length; those of one frame stay in order and are not mixed with
/// another frame's of the same link. What a link had in the controller comes back when the link ends, for then no
/// completed packets are reported any more (§4.1.1 last paragraph); so a link that dies in the middle of a burst costs
/// nothing. One buffer is enough. The specification leaves the order of the links open; here every link with data sends
/// one packet before any sends its next, and leaves one buffer to each other that has some, too: a peer that went out of
/// range keeps what it was sent in the controller until its link times out, and would otherwise end up with all of them.
public struct ACLTransmitStateMachine: ~Copyable, Sendable {
    public struct Configuration: Sendable {
        public var buffers: ControllerDescriptor.Buffers
        /// How many bytes of frames one link may keep waiting.
        public var queueLimit: Int
        /// How many of them values that nobody asked for may take: the rest is for requests and answers, without which
        /// the peer would wait for ever. It is some writes of the longest kind, so that the controller never runs dry.
        public var valueLimit: Int

        public init(buffers: ControllerDescriptor.Buffers, queueLimit: Int = 64 * 1024, valueLimit: Int = 8 * 1024) {
            precondition(buffers.count > 0 && buffers.packetLength > 0)
            self.buffers = buffers
            self.queueLimit = queueLimit
            self.valueLimit = min(valueLimit, queueLimit)
        }
    }

    /// Whether a frame was taken.
    public enum Admission: Sendable, Hashable {
        /// It is sent, or waits.
        case accepted
        /// The link's queue is full: try again when frames have gone.
        case full
        /// There is no such link.
        case noLink
    }

    private struct Link {
        let handle: ConnectionHandle
        var frames = FrameList()
        /// Packets in the controller.
        var outstanding = 0
    }

    public let configuration: Configuration
    /// In the order of their turns: the first is next.
    private var links: [Link] = []
    /// Free buffers of the controller.
    public private(set) var credits: Int
    /// Completed packets that were reported and never sent: a controller that counts wrongly.
    public private(set) var excessCompletions: UInt64 = 0

    public init(_ configuration: Configuration) {
        self.configuration = configuration
        credits = configuration.buffers.count
    }

    // MARK: Inputs

    /// A link is there. A handle that is open already starts anew.
    public mutating func linkOpened(_ handle: ConnectionHandle) {
        _ = linkClosed(handle)
        links.append(Link(handle: handle))
    }

    /// A link has ended: its buffers are free. Returns how many of its frames were not sent whole.
    public mutating func linkClosed(_ handle: ConnectionHandle) -> Int {
        guard let index = index(of: handle) else { return 0 }
        let link = links.remove(at: index)
        credits += link.outstanding
        return link.frames.count
    }

    /// Queues a frame of L2CAP, with its header; `isValue`: a write or notification that nobody answers, of which there may
    /// be any number.
    public mutating func frameRequested(
        _ frame: [UInt8], on handle: ConnectionHandle, isValue: Bool = false
    ) -> Admission {
        guard let index = index(of: handle) else { return .noLink }
        let limit = isValue ? configuration.valueLimit : configuration.queueLimit
        // A frame that is longer than the limit goes when nothing else waits.
        guard links[index].frames.isEmpty || links[index].frames.byteCount + frame.count <= limit else { return .full }
        links[index].frames.append(frame)
        return .accepted
    }

    /// The controller has sent packets of a link.
    public mutating func packetsCompleted(_ completed: HCIEvent.CompletedPackets) {
        guard let index = index(of: completed.handle) else { return }
        let count = min(Int(completed.count), links[index].outstanding)
        excessCompletions += UInt64(Int(completed.count) - count)
        links[index].outstanding -= count
        credits += count
    }

    /// The next packet to send, without H4's indicator; nil if there is none or no buffer is free. To be called after
    /// every input until it is nil.
    public mutating func nextPacket() -> [UInt8]? {
        let active = links.count { !$0.frames.isEmpty || $0.outstanding > 0 }
        let share = max(1, configuration.buffers.count - (active - 1))
        guard credits > 0, let index = links.firstIndex(where: { !$0.frames.isEmpty && $0.outstanding < share }) else {
            return nil
        }
        var link = links.remove(at: index)
        let piece = link.frames.takePiece(upTo: configuration.buffers.packetLength)
        link.outstanding += 1
        credits -= 1
        let packet = ACLPacket(
            handle: link.handle, boundary: piece.isFirst ? .firstFromHost : .continuation, payload: piece.bytes)
        links.append(link)
        return packet.packet
    }

    // MARK: Facts

    /// How many bytes of a link wait for a buffer.
    public func waitingByteCount(_ handle: ConnectionHandle) -> Int {
        index(of: handle).map { links[$0].frames.byteCount } ?? 0
    }

    /// How many packets of a link are in the controller.
    public func outstandingCount(_ handle: ConnectionHandle) -> Int {
        index(of: handle).map { links[$0].outstanding } ?? 0
    }

    private func index(of handle: ConnectionHandle) -> Int? {
        links.firstIndex { $0.handle == handle }
    }
}
