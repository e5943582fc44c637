// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
public import MeshTransportAPI

/// The session's life: one link after the other.
///
///               start                      connect                      endLink (stop, loss, silence)
///     idle ───────────────▶ connecting ───────────────▶ up ───────────────────────────────▶ ending
///       ▲                       │ failed, stop                                                │ the stream, all sends
///       └───────────────────────┴─────────────────────────────────────────────────────────────┘ and tasks have ended
extension MeshCoreSession {
    /// Makes the link and begins the handshake; returns when the first command is on its way.
    ///
    /// It does not wait for the radio's answer, which may never come: that is for what is called next, or for ``ready()``.
    /// Cancelling its task ends the attempt. Throws the transport's error when the link cannot be made, and
    /// `argument.invalid` when the session is started already.
    public func start() async throws(MeshError) {
        guard case .idle = phase else {
            throw MeshError(.invalidArgument, "the session is started already; stop it first")
        }
        phase = .connecting(isStopped: false)
        endReason = nil
        set(.connecting)
        let frames: AsyncStream<Data>
        do throws(MeshError) {
            frames = try await connect()
        } catch {
            becomeIdle(reason: error.code == .cancelled ? nil : error)
            throw error
        }
        lastHeard = clock.now()
        lane.linkReady()
        set(.connected)
        begin { await $0.run(frames) }
        begin { await $0.synchronise() }
        await sendsSettled()
        guard case .up = phase else { throw endReason ?? MeshError(.linkClosed, "the link ended at once") }
    }

    /// The frames of a new link; the phase is `up` then. The transport is disconnected when this throws.
    private func connect() async throws(MeshError) -> AsyncStream<Data> {
        do {
            try await transport.connect()
        } catch {
            throw MeshError(wrapping: error)
        }
        pipelinesReads = await transport.supportsPipelinedReads
        let frames = await transport.receivedData
        if case .connecting(false) = phase, !Task.isCancelled {
            // In the same turn as the look: the session may be stopped at every `await`.
            phase = .up
            return frames
        }
        await transport.disconnect()
        throw MeshError(.cancelled, "the session was stopped while it was connecting")
    }

    /// Ends the link, fails everybody who waits with `cancelled`, and ends all streams of events. Returns when all that has
    /// happened. Idempotent; ``start()`` may be called again.
    public func stop() async {
        switch phase {
        case .idle: break
        case .connecting:
            phase = .connecting(isStopped: true)
            await transport.disconnect()
        case .up: endLink(MeshError(.cancelled, "the session was stopped"))
        case .ending: break
        }
        await withCheckedContinuation { if case .idle = phase { $0.resume() } else { idleWaiters.append($0) } }
        finishEvents()
    }

    /// Waits until the state is `ready`. Throws `link.not-connected` without a link, and what ended the link.
    public func ready() async throws(MeshError) {
        let id = nextNumber()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation {
                if let readiness { $0.resume(returning: readiness) } else { readyWaiters[id] = $0 }
            }
        } onCancel: {
            Task(executorPreference: environment.executor) { await self.abandonReady(id) }
        }
        try result.get()
    }

    /// What ``ready()`` gives now; nil while that is still to come. In the task of its caller.
    private var readiness: Result<Void, MeshError>? {
        switch phase {
        case .idle: .failure(notStarted)
        case .ending: .failure(endReason ?? notStarted)
        case .connecting, .up:
            if state == .ready { .success(()) } else if Task.isCancelled { .failure(Self.callerGaveUp) } else { nil }
        }
    }

    /// What a call without a link gets.
    var notStarted: MeshError {
        MeshError(.notConnected, "there is no link to the radio; start the session", cause: endReason)
    }

    private func abandonReady(_ id: UInt64) {
        readyWaiters.removeValue(forKey: id)?.resume(returning: .failure(Self.callerGaveUp))
    }

    /// Takes the frames of a link until it ends, then sees to it that nothing of it is left.
    private func run(_ frames: AsyncStream<Data>) async {
        for await frame in frames { received(frame) }
        endLink(MeshError(.linkClosed, "the link to the radio was closed"))
        // This task is one of them.
        await withCheckedContinuation { if tasksUnderWay > 1 { tasksEnded = $0 } else { $0.resume() } }
        await sendsSettled()
        timer?.task.cancel()
        timer = nil
        becomeIdle(reason: endReason?.code == .cancelled ? nil : endReason)
    }

    /// The link is given up, for this reason: everybody who waits is told.
    func endLink(_ reason: MeshError) {
        guard case .up = phase else { return }
        phase = .ending
        endReason = reason
        isServing = false
        _ = lane.linkLost()
        requests.linkLost()
        // A radio that was told to go has done so.
        if let id = inFlight?.slot, slots[id]?.expectation.isDeparture == true {
            finish(id, .success(CommandSlot.Answers()))
        }
        inFlight = nil
        held = []
        staleContacts = []
        wantsFetch = false
        nextProbe = nil
        nextPoll = nil
        for id in slots.keys.sorted() { finish(id, .failure(reason)) }
        for id in deliveries.keys { deliveries[id]?.wake() }
        begin { await $0.transport.disconnect() }
    }

    private func becomeIdle(reason: MeshError?) {
        phase = .idle
        let waiters = idleWaiters
        idleWaiters = []
        set(.disconnected, reason: reason)
        for waiter in waiters { waiter.resume() }
    }

    /// The session is that far.
    func set(_ new: MeshSessionState, reason: MeshError? = nil) {
        guard state != new else { return }
        state = new
        environment.log(.debug, "session state", [("state", new.rawValue)])
        emit(.state(new, reason: reason))
        guard new == .ready || new == .disconnected else { return }
        let waiters = readyWaiters
        readyWaiters = [:]
        let error = endReason ?? reason ?? MeshError(.cancelled, "the session was stopped while it was connecting")
        for waiter in waiters.values { waiter.resume(returning: new == .ready ? .success(()) : .failure(error)) }
    }

    // MARK: Tasks

    /// Starts a task that belongs to the link.
    func begin(_ work: @escaping @Sendable (isolated MeshCoreSession) async -> Void) {
        tasksUnderWay += 1
        Task.immediate(executorPreference: environment.executor) {
            await work(self)
            taskEnded()
        }
    }

    private func taskEnded() {
        tasksUnderWay -= 1
        // What is left is the task that waits for the others.
        guard tasksUnderWay == 1 else { return }
        tasksEnded?.resume()
        tasksEnded = nil
    }

    /// Waits until what was to be sent is with the transport.
    func sendsSettled() async {
        await withCheckedContinuation { if sendsUnderWay > 0 { sendsEnded.append($0) } else { $0.resume() } }
    }
}
