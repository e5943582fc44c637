// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshLoop
internal import MeshRuntime
internal import MeshTransportAPI

/// The driver of the ``CommandLaneStateMachine`` and of the ``MeshRequestStateMachine``, and the session's time.
extension RadioSession {
    /// Asks the radio something on the host's own behalf; the last frame of the answer. Throws when the radio is away or does
    /// not answer, and after ``abandonQuestions()``.
    func ask(
        _ frame: Data, expecting expectation: ReplyExpectation, priority: LanePriority = .read
    ) async throws(MeshError) -> Data {
        let entry = LaneEntry(frame, expecting: expectation, priority: priority)
        // Queued where the waiting begins: an `await` may go through the loop's queue, and answers go by the order.
        // So does the look for a cancellation: one that comes later finds the question among those to abandon.
        let result: Result<Data, MeshError> = await withCheckedContinuation { continuation in
            if Task.isCancelled {
                return continuation.resume(returning: .failure(MeshError(.cancelled, "the link is being ended")))
            }
            switch lane.entryReceived(entry, from: .host) {
            case .queued:
                hostWaiters.append(continuation)
                pump()
            case .refuseLinkAway:
                continuation.resume(returning: .failure(MeshError(.notConnected, "the radio is away")))
            case .refuseQueueFull:
                let error = MeshError(.queueFull, "too many commands wait for the radio")
                continuation.resume(returning: .failure(error))
            }
        }
        return try result.get()
    }

    /// Nobody waits for the answers to the host's own questions any more: the link is being ended.
    func abandonQuestions() {
        let waiters = hostWaiters
        hostWaiters = []
        for waiter in waiters { waiter.resume(returning: .failure(MeshError(.cancelled, "the link is being ended"))) }
    }

    /// The host's own question was answered.
    func hostAnswered(_ result: Result<Data, MeshError>) {
        if !hostWaiters.isEmpty { hostWaiters.removeFirst().resume(returning: result) }
    }

    /// Does what the lane has next, as long as it has something.
    func pump() {
        if stage == .ending {
            finishLink()
            return armTimer()
        }
        while case .send(let frame, let requester) = lane.nextStep(
            now: loop.now, onlyFrom: stage == .settingClock ? .host : nil, holdingMeshRequests: !meshRequests.isFree,
            lead: { scopeLead($0, $1) })
        {
            counters.commandsSent += 1
            if MeshRequestStateMachine.isMeshRequest(frame) {
                meshRequests.requestSent(frame, from: requester, now: loop.now)
                if let client = clients[requester.client], case .meshLane(let command, _) = client.work {
                    client.work = .lane(command)
                }
            }
            send(frame, number: lane.sendNumber)
        }
        armTimer()
    }

    /// What sets the flood scope for a command that its client wants to go out in another one than the radio has by then.
    private func scopeLead(_ entry: LaneEntry, _ requester: LaneRequester) -> [LaneEntry.Lead] {
        guard let client = clients[requester.client], FloodScopes.concerns(entry.frame),
            let scope = scopes.lead(for: client.scope)
        else { return [] }
        // Old firmware knows no scopes: it need not be told that there is none.
        return [LaneEntry.Lead(scope, expecting: .one(.ok), isRequired: client.scope != .unset)]
    }

    /// Sends one frame. Nearly always the transport takes it before this returns. `number`: that of a command in the lane.
    private func send(_ frame: Data, number: UInt64? = nil) {
        guard let link, sendsUnderWay > 0 || !link.sendAtOnce(frame) else { return }
        sendsUnderWay += 1
        workBegan()
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
        workFinished()
    }

    func workBegan() { workUnderWay += 1 }

    func workFinished() {
        workUnderWay -= 1
        if workUnderWay == 0 {
            workEnded?.resume()
            workEnded = nil
        }
    }

    private func notSent(_ number: UInt64, _ error: MeshError) {
        let isUnsent: Set<MeshError.Code> = [.frameTooLong, .invalidArgument, .queueFull, .notConnected]
        // The lane may have gone on to another command, which is none of this one's business.
        let command = number == lane.sendNumber ? lane.commandInFlight : nil
        let requester = lane.commandNotSent(number, mayHaveGone: !isUnsent.contains(error.code), now: loop.now)
        if let command, MeshRequestStateMachine.isMeshRequest(command) { meshRequests.requestFailed(now: loop.now) }
        if let requester { fail(requester, error) }
        pump()
    }

    // MARK: Time

    /// Sees to it that a timer fires at the next deadline or before. One that is set for an earlier deadline stays: firing
    /// early is harmless, and cheaper than setting it anew for each command.
    func armTimer() {
        guard lane.isOpen || clients.values.contains(where: { $0.deadline != nil }) else {
            // Without a link there is nothing to time: the session holds no handle then.
            timer.timer = nil
            timer.deadline = nil
            return
        }
        guard let deadline = nextDeadline, timer.deadline.map({ deadline < $0 }) ?? true else { return }
        timer.deadline = deadline
        let loopTimer = timer.timer ?? LoopTimer(loop)
        timer.timer = loopTimer
        loopTimer.schedule(after: max(.zero, deadline - loop.now)) { self.deadlineReached() }
    }

    private var nextDeadline: Duration? {
        var deadline = lane.nextDeadline
        func consider(_ other: Duration?) {
            if let other { deadline = min(deadline ?? other, other) }
        }
        consider(meshRequests.nextDeadline)
        for client in clients.values { consider(client.deadline) }
        if isServing {
            // While the lane has something to do its own deadlines tell whether the radio is there.
            if lane.isIdle { consider(lastHeard + settings.probeSilence) }
            if stage == .serving, !fetching.isRunning { consider(fetching.lastEnd + settings.fetchInterval) }
        }
        return deadline
    }

    private func deadlineReached() {
        timer.deadline = nil
        laneDeadlineReached()
        if case .expired = meshRequests.deadlineReached(now: loop.now) { counters.meshRequestsUnanswered += 1 }
        for client in clients.values.filter({ $0.deadline.map { $0 <= loop.now } ?? false }) { waitedTooLong(client) }
        if isServing {
            if loop.now >= lastHeard + settings.probeSilence, lane.isIdle { probe() }
            // Seen when something else is due: there is a look for messages every minute.
            if stage == .serving, isClockCheckDue { lookAtClock(.read) }
            if stage == .serving, !fetching.isRunning, loop.now >= fetching.lastEnd + settings.fetchInterval {
                fetchMessages()
            }
        }
        pump()
    }

    private func laneDeadlineReached() {
        let command = lane.commandInFlight
        switch lane.deadlineReached(now: loop.now) {
        case .none:
            break
        case .timedOut(let requester):
            counters.commandTimeouts += 1
            // It may have been done all the same.
            scopes.doubt()
            log(.warning, "the radio did not answer a command in time")
            if let command, MeshRequestStateMachine.isMeshRequest(command) { meshRequests.requestFailed(now: loop.now) }
            if let requester { fail(requester, MeshError(.operationTimeout, "the radio did not answer in time")) }
        case .departed(let requester):
            if let client = requester.flatMap({ clients[$0.client] }) { finished(client) }
            radioRestarts()
        case .sendFence(let frame):
            send(frame)
        case .linkDead:
            endLink(
                MeshError(.operationTimeout, "the radio is connected and does not answer; restart it if this goes on"))
        }
    }

    /// The radio sends part after part of an answer.
    func answerIsEndless(_ requester: LaneRequester?) {
        let error = MeshError(
            .operationTimeout, "the radio does not come to the end of its answer; restart it if this goes on")
        if let requester { fail(requester, error) }
        endLink(error)
    }

    /// A command has its last reply. Firmware answers FACTORY_RESET, and some REBOOT too, before it goes.
    func commandEnded(_ command: Data?, with reply: Data) {
        guard let command, reply.first == ReplyCode.ok.rawValue, CommandSpec.expectation(for: command).isDeparture
        else { return }
        radioRestarts()
    }

    /// The radio restarts. What it comes back with is for the handshake to find out: version, clock, scope, and after a
    /// reset everything else.
    private func radioRestarts() {
        endLink(MeshError(.linkClosed, "the radio was told to restart"))
    }

    /// Asks whether the radio is still there. A quiet mesh is no sign of death; no answer to this and to the fences is.
    /// The answer shows whether its clock is right, too.
    private func probe() {
        // Not again before the answer or its end.
        lastHeard = loop.now
        lookAtClock(.probe)
    }

    /// A command got no answer from the radio.
    func fail(_ requester: LaneRequester, _ error: MeshError) {
        if requester == .host {
            hostAnswered(.failure(error))
        } else if let client = clients[requester.client] {
            let isTooLong = error.code == .frameTooLong || error.code == .invalidArgument
            give(client, CompanionFrame.error(isTooLong ? .illegalArgument : .badState))
            finished(client)
        }
    }

    // MARK: The lane's life

    /// Nobody waits any longer: each command in flight or queued gets its error, but for sends that may wait.
    func closeLane(_ error: MeshError) {
        stage = .closed
        meshRequests.linkLost()
        cache.linkLost()
        scopes.linkLost()
        for requester in lane.linkLost() { fail(requester, error) }
        for client in clients.values { linkClosed(client) }
        armTimer()
    }
}
