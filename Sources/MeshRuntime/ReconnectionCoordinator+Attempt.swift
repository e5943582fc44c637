// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshLoop
internal import MeshTransportAPI

extension ReconnectionCoordinator {
    /// What the coordinator holds for a device. Confined to the coordinator.
    final class Device {
        let name: String
        var settings: DeviceSettings
        var transport: (any MeshTransport)?
        /// Which transport this is; what an earlier one still reports is not heard.
        var transportNumber = 0
        /// The settings changed: the next attempt makes a new transport.
        var isTransportOutdated = false
        var attempt: Attempt?
        var phase = LinkPhase.idle
        /// What the transport says of the present link.
        var facts = LinkFacts()
        var isBeingRemoved = false
        var removalWaiters: [CheckedContinuation<Void, Never>] = []
        /// Resumed when no attempt and no link is left.
        var endWaiters: [CheckedContinuation<Void, Never>] = []

        init(_ settings: DeviceSettings) {
            name = settings.name
            self.settings = settings
        }
    }

    /// An attempt and, if it succeeds, the link it made.
    struct Attempt {
        let generation: UInt64
        /// Connects and serves; cancelling it ends the link.
        let work: Task<Served, Never>
        let gate: FrameGate
        /// Who has been told of the link, once there is one.
        var session: (any LinkSession)?
        /// Ends the wait for the session's last frames; set while that is waited for.
        var farewell: LoopTimer?
    }

    /// What the frames of one link go through to its session: a transport hands them over until it has ended the link, a
    /// session takes none once it was told of the end. Used on the loop's thread only: that is what makes it Sendable.
    final class FrameGate: @unchecked Sendable {
        private(set) var isOpen = true

        func close() { isOpen = false }
    }

    /// How an attempt or link ended.
    struct Served: Sendable {
        /// The session was told of the link and has to be told of its end.
        var session: (any LinkSession)?
        var reason: MeshError?
    }

    /// Two tasks per link: one works and can be cancelled, the other waits for it and cleans up, which nothing cancels.
    func startAttempt(_ device: Device, _ generation: UInt64) {
        assert(device.attempt == nil, "two attempts for \(device.name)")
        device.facts.reset()
        let name = device.name
        // Frames come from an `AsyncStream`, whose inside belongs to no actor: it shall stay on the loop.
        let gate = FrameGate()
        let work = Task(executorPreference: loop.taskExecutor) { await self.serve(name, generation, gate) }
        device.attempt = Attempt(generation: generation, work: work, gate: gate)
        runningTasks += 1
        Task(executorPreference: loop.taskExecutor) {
            let served = await work.value
            await self.attemptEnded(name, generation, served)
        }
    }

    /// Connects, then serves the link until it ends. Returns when no task of it is left; the transport is not told yet.
    private func serve(_ name: String, _ generation: UInt64, _ gate: FrameGate) async -> Served {
        guard let device = devices[name] else { return Served() }
        let session = device.settings.session
        do {
            let transport = try transport(of: device)
            try await transport.connect()
            // Before anything else runs: the stream of this connection and no other.
            let frames = await transport.receivedData
            try Task.checkCancellation()
            apply(machine.linkEstablished(name, generation: generation, now: loop.now))
            let link = EstablishedLink(
                device: name, generation: generation, transport: transport, info: device.facts.info,
                direct: transport as? any DirectTransport, events: events,
                giveUp: { [weak self, loop] reason in
                    loop.perform { self?.assumeIsolated { $0.linkGivenUp(name, generation, reason) } }
                },
                release: { [weak self, loop] in
                    loop.perform { self?.assumeIsolated { $0.linkReleased(name, generation) } }
                })
            let reason = await serve(link, frames, through: gate, session, device)
            return Served(session: session, reason: reason)
        } catch {
            let error = MeshError(wrapping: error).adding(device: name, operation: "connect")
            return Served(session: nil, reason: error)
        }
    }

    /// Hands frames to the session until there are no more, with the handshake beside it. The reason of the end.
    private func serve(
        _ link: EstablishedLink, _ frames: AsyncStream<Data>, through gate: FrameGate, _ session: any LinkSession,
        _ device: Device
    ) async -> MeshError? {
        session.linkOpened(link)
        device.attempt?.session = session
        let handshake = Task.immediate(executorPreference: loop.taskExecutor) { await self.shakeHands(link, session) }
        let deliver: @Sendable (Data) -> Bool = { [events, device = link.device] frame in
            guard gate.isOpen else { return false }
            events.publish(.frameReceived, device: device, .frame(frame))
            session.frameReceived(frame)
            return true
        }
        // By plain calls; the stream then only tells the end of the link.
        if let direct = link.direct { await direct.deliverFrames(to: deliver) }
        for await frame in frames { _ = deliver(frame) }
        // The stream may have ended first: the handshake has nothing to wait for any more.
        handshake.cancel()
        let failure = await handshake.value
        if let reason = device.facts.endReason { return reason.adding(device: link.device) }
        if let failure, failure.code != .cancelled {
            return failure.adding(device: link.device, operation: "handshake")
        }
        return MeshError(.linkClosed, "the link ended", context: MeshError.Context(device: link.device))
    }

    /// The handshake; its failure ends the link, and with it the stream of frames.
    private func shakeHands(_ link: EstablishedLink, _ session: any LinkSession) async -> MeshError? {
        do throws(MeshError) {
            try await session.linkEstablished(link)
        } catch {
            await link.transport.disconnect()
            return error
        }
        if !Task.isCancelled {
            apply(machine.sessionReady(link.device, generation: link.generation, now: loop.now))
        }
        return nil
    }

    /// The session wants no more of a link. Ended like at any other end: a `disconnect` of its own could still be under way when
    /// the next attempt connects.
    private func linkGivenUp(_ name: String, _ generation: UInt64, _ reason: MeshError) {
        guard let device = devices[name], let attempt = device.attempt, attempt.generation == generation else { return }
        device.facts.giveUp(reason)
        endAttempt(device, generation)
    }

    /// Ends an attempt at once; a link only when its session says that nothing would be lost by it, or after a moment. Asked
    /// again it goes on waiting.
    func endAttempt(_ device: Device, _ generation: UInt64) {
        guard let attempt = device.attempt, attempt.generation == generation, attempt.farewell == nil else { return }
        guard attempt.gate.isOpen, let session = attempt.session, !session.linkEnding() else {
            return attempt.work.cancel()
        }
        let timer = LoopTimer(loop)
        timer.schedule(after: Self.farewell) { attempt.work.cancel() }
        device.attempt?.farewell = timer
    }

    /// The session has nothing under way any more on a link that is being ended.
    private func linkReleased(_ name: String, _ generation: UInt64) {
        guard let attempt = devices[name]?.attempt, attempt.generation == generation, attempt.farewell != nil else {
            return
        }
        attempt.work.cancel()
    }

    private func attemptEnded(_ name: String, _ generation: UInt64, _ served: Served) async {
        if let device = devices[name] { await finish(device, generation, served) }
        taskEnded()
    }

    /// Cleans up after an attempt or link; only then may the machine hear that it has ended.
    ///
    /// The session hears of the end first, and can do nothing on the link from then on; what it has under way there ends with
    /// the transport's link, so it is waited for last.
    private func finish(_ device: Device, _ generation: UInt64, _ served: Served) async {
        let wasAskedFor = machine.snapshot(device.name, now: loop.now)?.phase == .ending
        device.attempt?.gate.close()
        served.session?.linkLost(reason: wasAskedFor ? nil : served.reason)
        await device.transport?.disconnect()
        await served.session?.linkEnded()
        device.attempt = nil
        device.facts.reset()
        device.phase = .idle
        apply(
            machine.linkEnded(
                device.name, generation: generation, reason: served.reason, now: loop.now, using: &generator))
        let waiters = device.endWaiters
        device.endWaiters = []
        for waiter in waiters { waiter.resume() }
    }
}
