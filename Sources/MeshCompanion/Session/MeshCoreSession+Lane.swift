// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI

/// The driver of the two lanes: the ``CommandLaneStateMachine`` and, before it, the ``MeshRequestStateMachine``.
extension MeshCoreSession {
    // MARK: Calls

    /// Has a command sent, and waits for what its purpose says. The handshake's own go at once, others after it.
    func ask(
        _ frame: Data, _ purpose: CommandSlot.Purpose = .command, after lead: [Data] = [], timeout: Duration? = nil,
        isHandshake: Bool = false
    ) async throws(MeshError) -> CommandSlot.Answers {
        var slot = CommandSlot(frame: frame, expectation: try expectation(of: frame), purpose: purpose)
        for frame in lead { slot.lead.append(LaneEntry.Lead(frame, expecting: try expectation(of: frame))) }
        slot.deadline = timeout.map { clock.now() + $0 }
        let id = nextNumber()
        let result: Result<CommandSlot.Answers, MeshError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // All looks are here, where the waiting begins: at every `await` the link may end and the caller give up.
                if let error = refusal(isHandshake: isHandshake) {
                    return continuation.resume(returning: .failure(error))
                }
                slot.waiter = continuation
                slots[id] = slot
                if isServing || isHandshake { submit(id) } else { held.append(id) }
                pump()
            }
        } onCancel: {
            Task(executorPreference: environment.executor) { await self.abandon(id) }
        }
        return try result.get()
    }

    /// Why a call is not taken on. In the task of its caller.
    private func refusal(isHandshake: Bool) -> MeshError? {
        guard case .up = phase else { return notStarted }
        guard isHandshake || slots.count < settings.callLimit else {
            return MeshError(.queueFull, "\(slots.count) calls wait for the radio already")
        }
        return Task.isCancelled ? Self.callerGaveUp : nil
    }

    static var callerGaveUp: MeshError { MeshError(.cancelled, "the caller gave up") }

    private func expectation(of frame: Data) throws(MeshError) -> ReplyExpectation {
        switch CommandAdmission.of(frame, role: .owner) {
        case .admitted(let expectation): return expectation
        case .refused:
            throw MeshError(.invalidArgument, "\(MeshError.name(of: frame)) is too short for its fields")
        }
    }

    /// The handshake is over: what has waited for that goes its way.
    func serve() {
        isServing = true
        let calls = held
        held = []
        for id in calls { submit(id) }
        let now = clock.now()
        nextProbe = settings.probeAfter.map { now + $0 }
        nextPoll = settings.messagePoll.map { now + $0 }
        pump()
    }

    private func submit(_ id: UInt64) {
        guard let slot = slots[id] else { return }
        let entry = LaneEntry(
            slot.frame, expecting: slot.expectation, after: slot.lead, isMeshRequest: slot.isRequest)
        switch lane.entryReceived(entry, from: LaneRequester(client: id)) {
        case .queued: break
        case .refuseLinkAway: finish(id, .failure(notStarted))
        case .refuseQueueFull: finish(id, .failure(MeshError(.queueFull, "too many commands wait for the radio")))
        }
    }

    /// The caller waits no longer.
    private func abandon(_ id: UInt64) {
        giveUp(id, Self.callerGaveUp)
        pump()
    }

    /// Takes a call away. Its command keeps its place in the lane if it is out already.
    private func giveUp(_ id: UInt64, _ error: MeshError) {
        guard slots[id] != nil else { return }
        finish(id, .failure(error))
        held.removeAll { $0 == id }
        lane.requesterLeft(LaneRequester(client: id))
        requests.requesterLeft(LaneRequester(client: id))
    }

    /// Ends a call.
    func finish(_ id: UInt64, _ result: Result<CommandSlot.Answers, MeshError>) {
        slots.removeValue(forKey: id)?.waiter?.resume(returning: result)
    }

    // MARK: Sending

    /// Does what the lanes have next, as long as they have something.
    func pump() {
        while case .send(let frame, let requester) = lane.nextStep(
            now: clock.now(), holdingMeshRequests: !requests.isFree)
        {
            send(frame, of: requester)
        }
        armTimer()
    }

    private func send(_ frame: Data, of requester: LaneRequester) {
        counters.commandsSent += 1
        let id = requester.client
        let slot = slots[id]
        let isRequest = slot?.isRequest ?? false
        inFlight = InFlight(slot: id, number: lane.sendNumber, isRequest: isRequest)
        if isRequest { requests.requestSent(frame, from: requester, now: clock.now()) }
        if case .batch(let leading) = slot?.purpose {
            transmit(leading + [frame], number: lane.sendNumber)
        } else {
            transmit([frame], number: lane.sendNumber)
        }
    }

    /// Hands frames to the transport. `number`: that of a command in the lane; none for a fence.
    private func transmit(_ frames: [Data], number: UInt64? = nil) {
        sendsUnderWay += 1
        Task.immediate(executorPreference: environment.executor) {
            do {
                // A batch is there to be under way at once.
                for frame in frames.dropLast() { try await transport.sendWithoutResponse(frame) }
                if let frame = frames.last { try await transport.send(frame) }
            } catch {
                // A fence that does not go out is not answered either, and that is dealt with.
                if let number { notSent(number, MeshError(wrapping: error)) }
            }
            sendsUnderWay -= 1
            guard sendsUnderWay == 0 else { return }
            let waiters = sendsEnded
            sendsEnded = []
            for waiter in waiters { waiter.resume() }
        }
    }

    private func notSent(_ number: UInt64, _ error: MeshError) {
        let isUnsent: Set<MeshError.Code> = [.frameTooLong, .invalidArgument, .queueFull, .notConnected]
        let now = clock.now()
        let requester = lane.commandNotSent(number, mayHaveGone: !isUnsent.contains(error.code), now: now)
        if inFlight?.number == number { commandEnded(unanswered: true) }
        if let requester { finish(requester.client, .failure(error)) }
        pump()
    }

    /// The lane is done with a command; `unanswered` if no reply to it came.
    private func commandEnded(unanswered: Bool) {
        if unanswered, inFlight?.isRequest == true { requests.requestFailed(now: clock.now()) }
        inFlight = nil
    }

    // MARK: Receiving

    /// A frame came from the radio.
    func received(_ frame: Data) {
        guard case .up = phase, let first = frame.first else { return }
        counters.framesReceived += 1
        let now = clock.now()
        lastHeard = now
        let action = lane.frameReceived(frame, now: now)
        tell(frame, hasReader: hasReader(action))
        switch action {
        case .push:
            pushReceived(frame, now)
        case .reply(let requester, let isLast):
            // The radio's own telemetry is a reply and a push.
            if PushCode.isPush(first) { pushReceived(frame, now) }
            replyReceived(frame, for: requester.client, isLast, now)
        case .orphan(let isLast):
            if isLast, let inFlight {
                if inFlight.isRequest { requests.receiptReceived(frame, now: now) }
                commandEnded(unanswered: false)
            }
        case .observation:
            // Of a batch, only the last command is the lane's.
            if let inFlight, let slot = slots[inFlight.slot], case .batch(let leading) = slot.purpose,
                first == slot.replyCode, slot.answers.replies.count < leading.count
            {
                slots[inFlight.slot]?.answers.replies.append(frame)
            } else {
                counters.unaskedReplies += 1
            }
        case .late:
            counters.lateReplies += 1
        case .endless(let requester):
            let error = MeshError(.radioUnreadable, "the radio does not come to the end of its answer")
            commandEnded(unanswered: true)
            if let requester { finish(requester.client, .failure(error)) }
            return endLink(error)
        case .leadAnswered, .fenceAnswered:
            break
        }
        pump()
    }

    /// Whether a caller gets this frame as a reply.
    private func hasReader(_ action: CommandLaneStateMachine.FrameAction) -> Bool {
        guard case .reply(let requester, _) = action, let slot = slots[requester.client] else { return false }
        if case .fetch = slot.purpose { return false }
        return true
    }

    private func replyReceived(_ frame: Data, for id: UInt64, _ isLast: Bool, _ now: Duration) {
        guard slots[id] != nil else { return }
        if frame.first.map(PushCode.isPush) == true {
            slots[id]?.answers.push = frame
        } else {
            slots[id]?.answers.replies.append(frame)
        }
        guard isLast else { return }
        commandEnded(unanswered: false)
        slots[id]?.isReplied = true
        let isError = frame.first == ReplyCode.error.rawValue
        guard let slot = slots[id] else { return }
        switch slot.purpose {
        case .command, .fetch, .batch:
            finish(id, .success(slot.answers))
        case .request:
            requests.receiptReceived(frame, now: now)
            // Free: refused, or answered before the receipt. Else an early answer was somebody else's.
            if requests.isFree { finish(id, .success(slot.answers)) } else { slots[id]?.answers.push = nil }
        case .trace:
            if isError || slot.answers.push != nil { return finish(id, .success(slot.answers)) }
            slots[id]?.deadline = now + settings.requests.wait(after: try? CompanionReply(decoding: frame))
        case .text(let delivery):
            if case .sent(let receipt)? = try? CompanionReply(decoding: frame) {
                deliveries[delivery]?.codes.append(receipt.tag)
                deliveries[delivery]?.deadline = now + settings.requests.wait(after: .sent(receipt))
            }
            finish(id, .success(slot.answers))
        }
    }

    private func pushReceived(_ frame: Data, _ now: Duration) {
        switch requests.pushReceived(frame, now: now) {
        case .answer(let requester):
            let id = requester.client
            slots[id]?.answers.push = frame
            if let slot = slots[id], slot.isReplied { finish(id, .success(slot.answers)) }
        case .late, .orphan, .notMine:
            break
        }
        switch try? CompanionPush(decoding: frame) {
        case .trace(let result):
            traceReceived(frame, result.tag)
        case .sendConfirmed(let confirmation):
            let waiting = deliveries.filter {
                $1.confirmation == nil && $1.codes.contains(confirmation.acknowledgement)
            }
            guard let id = waiting.keys.min() else { return }
            deliveries[id]?.confirmation = confirmation
            deliveries[id]?.wake()
        case .messageWaiting:
            fetchMessages()
        case .advert(let key), .pathUpdated(let key):
            contactIsStale(key)
        case .contactDeleted(let key):
            _ = contactBook.remove(key)
        default:
            break
        }
    }

    private func traceReceived(_ frame: Data, _ tag: UInt32) {
        for (id, slot) in slots {
            guard case .trace(tag) = slot.purpose else { continue }
            slots[id]?.answers.push = frame
            if let slot = slots[id], slot.isReplied { finish(id, .success(slot.answers)) }
            return
        }
    }

    // MARK: Time

    private var nextDeadline: Duration? {
        var deadlines = [lane.nextDeadline, requests.nextDeadline, nextProbe, nextPoll]
        for slot in slots.values where slot.deadline != nil { deadlines.append(slot.deadline) }
        for delivery in deliveries.values { deadlines.append(delivery.deadline) }
        return deadlines.compactMap { $0 }.min()
    }

    /// Sees to it that the session is woken at the next deadline or before. A timer that is set for an earlier one stays:
    /// waking early is harmless.
    func armTimer() {
        guard case .up = phase, let deadline = nextDeadline, timer.map({ deadline < $0.deadline }) ?? true else {
            return
        }
        timer?.task.cancel()
        let clock = clock
        let task = Task(executorPreference: environment.executor) {
            do { try await clock.sleep(deadline) } catch { return }
            await self.woken(at: deadline)
        }
        timer = (task, deadline)
    }

    private func woken(at deadline: Duration) {
        guard !Task.isCancelled, case .up = phase, timer?.deadline == deadline else { return }
        timer = nil
        let now = clock.now()
        switch lane.deadlineReached(now: now) {
        case .none:
            break
        case .timedOut(let requester):
            counters.commandTimeouts += 1
            commandEnded(unanswered: true)
            if let id = requester?.client, let slot = slots[id] {
                finish(id, .failure(.timedOut(slot.frame, "the radio")))
            }
        case .departed(let requester):
            commandEnded(unanswered: true)
            if let id = requester?.client { finish(id, .success(CommandSlot.Answers())) }
        case .sendFence(let fence):
            transmit([fence])
        case .linkDead:
            let code: MeshError.Code = isServing ? .operationTimeout : .handshakeFailed
            endLink(MeshError(code, "the radio is connected and does not answer; restart it if this goes on"))
        }
        if case .expired(let requester?) = requests.deadlineReached(now: now), let slot = slots[requester.client] {
            finish(requester.client, .failure(.timedOut(slot.frame, "the node")))
        }
        for (id, slot) in slots {
            guard let deadline = slot.deadline, now >= deadline else { continue }
            let isOnTheWay: Bool
            if case .trace = slot.purpose { isOnTheWay = slot.isReplied } else { isOnTheWay = false }
            giveUp(id, .timedOut(slot.frame, isOnTheWay ? "the mesh" : "the radio"))
        }
        for (id, delivery) in deliveries {
            if let deadline = delivery.deadline, now >= deadline { deliveries[id]?.wake() }
        }
        lookAfterLink(now)
        pump()
    }
}

extension CommandSlot {
    /// The code of the replies to a batch's commands.
    fileprivate var replyCode: UInt8? {
        frame.first == CommandCode.getChannel.rawValue ? ReplyCode.channelInfo.rawValue : nil
    }
}
