// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshLoop
internal import MeshRuntime
internal import MeshTransportAPI

/// The driver of the ``CommandLaneStateMachine``.
extension RadioSession {
    /// Asks the radio something on the host's own behalf. Throws when the radio is away or does not answer, and after
    /// ``abandonQuestions()``.
    func ask(_ frame: Data, expecting expectation: ReplyExpectation) async throws(MeshError) -> Data {
        if Task.isCancelled { throw MeshError(.cancelled, "the link is being ended") }
        switch lane.commandReceived(frame, expecting: expectation, from: .host) {
        case .queued: break
        case .refuseLinkAway: throw MeshError(.notConnected, "the radio is away")
        case .refuseQueueFull: throw MeshError(.queueFull, "too many commands wait for the radio")
        }
        let result = await withCheckedContinuation { continuation in
            hostWaiters.append(continuation)
            pump()
        }
        return try result.get()
    }

    /// Nobody waits for the answers to the host's own questions any more: the link is being ended.
    func abandonQuestions() {
        let waiters = hostWaiters
        hostWaiters = []
        for waiter in waiters { waiter.resume(returning: .failure(MeshError(.cancelled, "the link is being ended"))) }
    }

    /// Does what the lane has next, as long as it has something.
    func pump() {
        while true {
            switch lane.nextStep(now: loop.now) {
            case .send(let frame, let requester):
                counters.commandsSent += 1
                send(frame, number: lane.sendNumber)
                parseOn(requester)
            case .answer(let frame, let requester):
                if let client = clients[requester.client] { answer(client, with: frame) }
                parseOn(requester)
            case .wait:
                return armLaneTimer()
            }
        }
    }

    /// Parses more of what a client has sent once there is room for a good number of commands.
    private func parseOn(_ requester: LaneRequester) {
        guard let client = clients[requester.client], client.hasRest, lane.queuedCommands(of: requester) < 16 else {
            return
        }
        client.parseOn()
    }

    /// Sends one frame. Nearly always the transport takes it before this returns. `number`: that of a command in the lane.
    private func send(_ frame: Data, number: UInt64? = nil) {
        guard let link, sendsUnderWay > 0 || !link.sendAtOnce(frame) else { return }
        sendsUnderWay += 1
        Task.immediate(executorPreference: loop.taskExecutor) { await self.send(frame, number: number, over: link) }
    }

    /// Sends one frame that the transport does not take at once.
    private func send(_ frame: Data, number: UInt64?, over link: EstablishedLink) async {
        do {
            try await link.send(frame)
        } catch {
            log(.debug, "a frame could not be sent", [("error", "\(error)")])
            // A fence that does not go out is not answered either, and that is dealt with.
            if let number { notSent(number, MeshError(wrapping: error)) }
        }
        sendsUnderWay -= 1
        if sendsUnderWay == 0 {
            sendsEnded?.resume()
            sendsEnded = nil
        }
    }

    private func notSent(_ number: UInt64, _ error: MeshError) {
        let isUnsent: Set<MeshError.Code> = [.frameTooLong, .invalidArgument, .queueFull, .notConnected]
        let requester = lane.commandNotSent(number, mayHaveGone: !isUnsent.contains(error.code), now: loop.now)
        if let requester { fail(requester, error) }
        pump()
    }

    // MARK: The lane's time

    /// Sees to it that a timer fires at the lane's deadline or before. One that is set for an earlier command's deadline
    /// stays: firing early is harmless, and cheaper than setting it anew for each command.
    func armLaneTimer() {
        guard lane.isOpen else {
            // Without a link there is nothing to time: the session holds no handle then.
            laneTimer.timer = nil
            laneTimer.deadline = nil
            return
        }
        guard let deadline = lane.nextDeadline, laneTimer.deadline.map({ deadline < $0 }) ?? true else { return }
        laneTimer.deadline = deadline
        let timer = laneTimer.timer ?? LoopTimer(loop)
        laneTimer.timer = timer
        timer.schedule(after: deadline - loop.now) { self.laneDeadlineReached() }
    }

    private func laneDeadlineReached() {
        laneTimer.deadline = nil
        switch lane.deadlineReached(now: loop.now) {
        case .none:
            break
        case .timedOut(let requester):
            counters.commandTimeouts += 1
            log(.warning, "the radio did not answer a command in time")
            if let requester { fail(requester, MeshError(.operationTimeout, "the radio did not answer in time")) }
        case .departed(let requester):
            log(.notice, "the radio was told to restart")
            if let client = requester.flatMap({ clients[$0.client] }) { flushLater(client) }
        case .sendFence(let frame):
            send(frame)
        case .linkDead:
            endLink(
                MeshError(.operationTimeout, "the radio is connected and does not answer; restart it if this goes on"))
        }
        pump()
    }

    private func fail(_ requester: LaneRequester, _ error: MeshError) {
        if requester == .host {
            if !hostWaiters.isEmpty { hostWaiters.removeFirst().resume(returning: .failure(error)) }
        } else if let client = clients[requester.client] {
            let isTooLong = error.code == .frameTooLong || error.code == .invalidArgument
            answer(client, with: CompanionFrame.error(isTooLong ? .illegalArgument : .badState))
        }
    }

    // MARK: The lane's life

    func openLane() {
        lane.linkReady()
    }

    /// Nobody waits any longer: each command in flight or queued gets its error.
    func closeLane(_ error: MeshError) {
        isServing = false
        for owed in lane.linkLost() {
            switch owed {
            case .error(let requester): fail(requester, error)
            case .answer(let frame, let requester):
                if let client = clients[requester.client] { answer(client, with: frame) }
            }
        }
        armLaneTimer()
        for client in clients.values {
            client.parseOn()
            flushLater(client)
        }
    }

    /// The client is gone; its command in flight keeps the lane until the reply.
    func leaveLane(_ client: ShareClient) {
        lane.requesterLeft(LaneRequester(client: client.id))
    }
}
