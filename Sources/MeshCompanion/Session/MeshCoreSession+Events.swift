// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials

/// What the session tells.
extension MeshCoreSession {
    /// How many messages are kept for the next subscriber.
    private static let untoldLimit = 256

    /// Everything that happens from now on, after the present state: each reading is a subscription of its own.
    ///
    /// Subscribe before ``start()`` to miss nothing. The buffer is that of the settings; a subscriber that does not keep up
    /// loses the oldest events and is told how many.
    public var events: AsyncStream<MeshSessionEvent> { events(buffer: settings.eventBuffer) }

    /// Like ``events``, with a buffer of its own.
    ///
    /// `heardPackets`: whether the packets that the radio hears are among them. They are so many that a slow subscriber
    /// had better leave them out than lose messages to them. What does not fit is lost as `overflow` says, and counted:
    /// ``MeshSessionEvent/dropped(count:)`` comes as soon as there is room. The stream ends with ``stop()``; a subscriber
    /// that lets go of it, or whose task is cancelled, is forgotten.
    public func events(
        buffer: Int, overflow: MeshSessionEvent.Overflow = .dropOldest, heardPackets: Bool = true
    ) -> AsyncStream<MeshSessionEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: MeshSessionEvent.self,
            bufferingPolicy: overflow == .dropOldest
                ? .bufferingNewest(max(2, buffer)) : .bufferingOldest(max(2, buffer)))
        let id = nextNumber()
        subscribers[id] = Subscriber(continuation: continuation, overflow: overflow, takesHeard: heardPackets)
        _ = tell(.state(state, reason: nil), to: id)
        let kept = untold
        untold = []
        for event in kept { _ = tell(event, to: id) }
        fetchMessages()
        return stream
    }

    /// Ends every subscription.
    func finishEvents() {
        for subscriber in subscribers.values { subscriber.continuation.finish() }
        subscribers = [:]
    }

    /// Tells all subscribers; whether there was one.
    @discardableResult
    func emit(_ event: MeshSessionEvent) -> Bool {
        var isTold = false
        for id in subscribers.keys where tell(event, to: id) { isTold = true }
        return isTold
    }

    /// Whether the subscriber is still there.
    private func tell(_ event: MeshSessionEvent, to id: UInt64) -> Bool {
        guard let subscriber = subscribers[id] else { return false }
        if case .heard = event, !subscriber.takesHeard { return true }
        if subscriber.lost > 0, subscriber.overflow == .dropNewest { tellLoss(id) }
        switch subscriber.continuation.yield(event) {
        case .enqueued(let room):
            // Where the oldest go, the word of it would push out another one.
            if room > 0, subscriber.overflow == .dropOldest { tellLoss(id) }
        case .dropped:
            subscribers[id]?.lost += 1
            counters.eventsDropped += 1
        case .terminated:
            subscribers[id] = nil
            return false
        @unknown default:
            break
        }
        return true
    }

    private func tellLoss(_ id: UInt64) {
        guard let subscriber = subscribers[id], subscriber.lost > 0 else { return }
        if case .enqueued = subscriber.continuation.yield(.dropped(count: subscriber.lost)) {
            subscribers[id]?.lost = 0
        }
    }

    /// Tells what a frame says. A message that has no `reader` and no subscriber is kept: the radio does not have it any
    /// more.
    func tell(_ frame: Data, hasReader: Bool) {
        guard let first = frame.first else { return }
        let event: MeshSessionEvent
        do {
            if PushCode.isPush(first) {
                event = MeshSessionEvent(try CompanionPush(decoding: frame))
            } else {
                guard let message = try FetchedMessage(frame) else { return }
                event = message.event
            }
        } catch {
            counters.unreadableFrames += 1
            event = .unreadable(frame)
        }
        let isTold = emit(event)
        guard !PushCode.isPush(first), !isTold, !hasReader else { return }
        if untold.count == Self.untoldLimit {
            untold.removeFirst()
            counters.eventsDropped += 1
        }
        untold.append(event)
    }
}
