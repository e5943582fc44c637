// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshTransportAPI

/// What a device's link is for: the protocol layer above the transport. One per device, for all its links.
///
/// The coordinator owns every task: it takes the frames from the transport and hands them over one by one, while
/// ``linkEstablished(_:)`` runs beside. A session needs no task of its own and no loop over frames. Sessions are actors on the
/// host's loop. For each link the calls are:
///
/// ```
/// linkWanted
/// linkOpened
/// linkEstablished ──────────────(returns: the device is ready)
///      frameReceived, frameReceived, …             linkEnding, linkLost, linkEnded
/// ```
///
/// ``frameReceived(_:)`` may come before ``linkEstablished(_:)`` has returned, and is where the handshake's answers arrive.
/// After ``linkLost(reason:)`` was called, no frame comes until the next ``linkOpened(_:)``, which waits for ``linkEnded()``.
public protocol LinkSession: Sendable {
    /// Whether links are wanted from now on: not while a person has disconnected the device, or lent it to somebody else, so that
    /// nobody need wait for one. Told when the session begins to serve its device, and at each change. A plain call on the loop's
    /// thread; by default it has no effect.
    func linkWanted(_ isWanted: Bool)

    /// The link is up. A plain call on the loop's thread, so that it comes before the first frame whatever is queued.
    func linkOpened(_ link: EstablishedLink)

    /// Does the handshake and returns when the device has answered it; else throws, and the attempt has
    /// failed. The task is cancelled when the link ends or the handshake's deadline passes: throw then, promptly.
    func linkEstablished(_ link: EstablishedLink) async throws(MeshError)

    /// One frame of the present link, in order. A plain call on the loop's thread: an actor on the loop is isolated there
    /// (`assumeIsolated`).
    func frameReceived(_ frame: Data)

    /// The host will end the link: ask the device for nothing more. Whether it may be ended at once; if not, because something
    /// is under way that would be lost, call ``EstablishedLink/finish()`` when it is not any more. The host waits for that no
    /// longer than ``ReconnectionCoordinator/farewell``. Not called for a link that ends by itself. A plain call on the
    /// loop's thread.
    func linkEnding() -> Bool

    /// The link is gone, also after a handshake that failed. Everybody who waits gets an answer. `reason` is nil where this
    /// host ended it. A plain call on the loop's thread, so that no frame comes between it and what it changes.
    func linkLost(reason: MeshError?)

    /// The transport has closed the link, and with it each send that was under way. Returns when nothing that the session
    /// did for this link is left.
    func linkEnded() async
}

extension LinkSession {
    public func linkWanted(_ isWanted: Bool) {}
    /// Nothing that is under way would be lost.
    public func linkEnding() -> Bool { true }
}

/// A link that is up, as a session sees it.
public struct EstablishedLink: Sendable {
    /// The configured device name.
    public let device: String
    /// Never the same for two links of the host's life.
    public let generation: UInt64
    public let transport: any MeshTransport
    /// What the transport told of it, if it did.
    public let info: LinkInfo?
    /// The transport again, where it can do without tasks.
    let direct: (any DirectTransport)?
    let events: EventBus
    let giveUp: @Sendable (MeshError) -> Void
    let release: @Sendable () -> Void

    /// Gives the link up, for a session that finds it useless: a device that takes frames and answers nothing. It ends with
    /// that reason as if it had been lost, and ``LinkSession/linkLost(reason:)`` follows. Does nothing if it has ended.
    /// From any thread.
    public func end(_ reason: MeshError) {
        giveUp(reason)
    }

    /// Lets a link go that the host is ending: see ``LinkSession/linkEnding()``. Does nothing if it has ended, or is not being
    /// ended. From any thread.
    public func finish() {
        release()
    }

    /// Sends one frame as ``MeshTransport/send(_:)`` does, and tells the bus (`frame.tx`). From the loop's thread.
    public func send(_ frame: Data) async throws {
        try await transport.send(frame)
        events.publish(.frameSent, device: device, .frame(frame))
    }

    /// Sends one frame if that needs no waiting, as ``DirectTransport/sendAtOnce(_:)`` does, and tells the bus. When it
    /// returns false nothing was sent: use ``send(_:)``. From the loop's thread.
    public func sendAtOnce(_ frame: Data) -> Bool {
        guard let direct, direct.sendAtOnce(frame) else { return false }
        events.publish(.frameSent, device: device, .frame(frame))
        return true
    }

    /// Sends one frame as ``MeshTransport/sendWithoutResponse(_:)`` does, and tells the bus. From the loop's thread.
    public func sendWithoutResponse(_ frame: Data) async throws {
        try await transport.sendWithoutResponse(frame)
        events.publish(.frameSent, device: device, .frame(frame))
    }
}

/// The session of a device that speaks no protocol the host knows: ready at once, its frames go to the bus and nowhere else.
public struct DrainSession: LinkSession {
    public init() {}

    public func linkOpened(_ link: EstablishedLink) {}
    public func linkEstablished(_ link: EstablishedLink) async throws(MeshError) {}
    public func frameReceived(_ frame: Data) {}
    public func linkLost(reason: MeshError?) {}
    public func linkEnded() async {}
}
