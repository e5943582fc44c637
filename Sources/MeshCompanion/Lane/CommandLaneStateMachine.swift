// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// The one command lane of a radio: one command in flight, replies to the asker only, no reply ever given to the next
/// command after a timeout.
///
///                 linkReady                      commandReceived / nextStep
///     closed ───────────────▶ idle ◀────────────────────────────▶ waitingForReply
///        ▲                      ▲                                        │ deadline, commandNotSent
///        │ linkLost (from all)  │ fence answered                         ▼
///        └──────────────────────┴───────── waitingForFence ◀──── waitingForSilence
///        ▲                                 │          │                  ▲
///        │               no fence is left  │          └──────────────────┘ one more fence is needed, or unanswered
///        └─────────────────────── dead ◀───┘
///
/// - `closed` waits for a link; commands are refused at once, never left unanswered.
/// - `idle` waits for a command.
/// - `waitingForReply` waits for the last reply to the command in flight, or its deadline.
/// - `waitingForSilence` waits until no reply has come for a moment: some radios merge two writes into one.
/// - `waitingForFence` waits for the answer to a harmless question, the fence.
/// - `dead` waits for the driver to drop the link.
///
/// The protocol leaves open what a late reply belongs to; the fence is the firmware documentation's "one in flight,
/// 5 s, matched by type" made safe. It rests on one property: a radio answers in the order it was asked, and may leave
/// answers out. So when the fence's answer has come, whatever was asked before it is answered or never will be. What must
/// not happen is that something else passes for that answer, which is why its code must differ from that of everything
/// still unanswered: see ``LaneQuarantine`` for the choice. At most one command and its fences are sent before something
/// is answered, so a link that takes nothing cannot pile up frames.
///
/// A command that makes the radio go away (REBOOT, FACTORY_RESET) is answered with OK, ERR or not at all. It holds the
/// lane for a short time; no reply is no error, but a late one must not go to the next asker: the fence sees to that, and
/// finds out that the radio has gone where the link does not tell.
///
/// Requesters take turns (round robin), each with its own FIFO. What the host answers itself takes its place there and
/// comes out as soon as nothing of that requester is before it: replies keep the order of the requester's commands.
public struct CommandLaneStateMachine: Sendable {
    /// What to do with a command that came.
    public enum CommandAction: Sendable, Hashable {
        /// It waits for its turn; call ``nextStep(now:)``.
        case queued
        /// There is no radio: answer with an error.
        case refuseLinkAway
        /// The requester has too many waiting: answer with an error.
        case refuseQueueFull
    }

    /// What to do with an answer of the host's own.
    public enum AnswerAction: Sendable, Hashable {
        /// It comes out of ``nextStep(now:)`` in its turn.
        case queued
        /// Nothing is before it: give it at once.
        case answerNow
        /// The requester has too many waiting, and even the order of answers cannot be kept.
        case queueFull
    }

    /// What to do with a frame from the radio.
    public enum FrameAction: Sendable, Hashable {
        /// Give it to everybody.
        case push
        /// Give it to everybody; it also ended the command in flight.
        case pushEndsCommand
        /// Give it to the asker; when it `isLast`, call ``nextStep(now:)``.
        case reply(to: LaneRequester, isLast: Bool)
        /// A reply whose asker has gone: drop it.
        case orphan(isLast: Bool)
        /// A reply nobody asked for: firmware 1.17 sends replies to every interface. Look at it, give it to nobody.
        case observation
        /// A reply that came after its command had timed out: drop it.
        case late
        /// The last fence was answered; call ``nextStep(now:)``.
        case fenceAnswered
    }

    /// What to do next.
    public enum Step: Sendable, Hashable {
        /// Send this command; if that fails, say so with ``commandNotSent(_:mayHaveGone:now:)`` and ``sendNumber``.
        case send(Data, from: LaneRequester)
        /// Give the requester this answer of the host's own.
        case answer(Data, to: LaneRequester)
        /// Nothing to do now.
        case wait
    }

    /// What a deadline means. Call ``nextStep(now:)`` after it.
    public enum DeadlineAction: Sendable, Hashable {
        /// It was early or repeated.
        case none
        /// The command in flight got no reply: answer its asker with an error. The lane goes on by itself.
        case timedOut(LaneRequester?)
        /// The radio was told to go away and said nothing, as usual. The asker is owed nothing; the lane goes on by itself.
        case departed(LaneRequester?)
        /// Send this fence.
        case sendFence(Data)
        /// No fence was answered: the link is dead.
        case linkDead
    }

    /// What somebody is owed when the link is lost.
    public enum Owed: Sendable, Hashable {
        /// An error.
        case error(to: LaneRequester)
        /// This answer of the host's own.
        case answer(Data, to: LaneRequester)
    }

    private enum Entry {
        case command(Data, ReplyExpectation)
        case answer(Data)
    }

    private struct InFlight {
        var requester: LaneRequester?
        var expectation: ReplyExpectation
        var deadline: Duration
    }

    private enum State {
        case closed
        case idle
        case waitingForReply(InFlight)
        case waitingForSilence(until: Duration, LaneQuarantine)
        case waitingForFence(deadline: Duration, LaneQuarantine)
        case dead
    }

    private let configuration: CommandLaneConfiguration
    private var state = State.closed
    /// What waits. Answers are never first in a queue, except behind the requester's own command in flight and until
    /// ``nextStep(now:)`` has been called after its end.
    private var queues: [LaneRequester: [Entry]] = [:]
    /// Requesters with something queued, the next one first.
    private var turn: [LaneRequester] = []
    /// The requester whose command in flight has ended: answers behind it are due.
    private var unblocked: LaneRequester?
    /// The number of the last command that ``nextStep(now:)`` gave.
    public private(set) var sendNumber: UInt64 = 0

    /// A lane without a link.
    public init(configuration: CommandLaneConfiguration = CommandLaneConfiguration()) {
        self.configuration = configuration
    }

    /// Whether commands are taken.
    public var isOpen: Bool {
        if case .closed = state { false } else { true }
    }

    /// How many commands and answers wait, the one in flight not counted.
    public func queuedCommands(of requester: LaneRequester) -> Int {
        queues[requester]?.count ?? 0
    }

    /// Whether the requester is still owed something.
    public func isAwaited(by requester: LaneRequester) -> Bool {
        isInFlight(of: requester) || queues[requester] != nil
    }

    private func isInFlight(of requester: LaneRequester) -> Bool {
        if case .waitingForReply(let inFlight) = state { inFlight.requester == requester } else { false }
    }

    /// When ``deadlineReached(now:)`` wants to be called.
    public var nextDeadline: Duration? {
        switch state {
        case .closed, .idle, .dead: nil
        case .waitingForReply(let inFlight): inFlight.deadline
        case .waitingForSilence(let until, _): until
        case .waitingForFence(let deadline, _): deadline
        }
    }

    // MARK: Inputs

    /// A link is up; nothing has been sent on it yet.
    public mutating func linkReady() {
        if case .closed = state { state = .idle }
    }

    /// The link is gone. What is in the result is owed, in this order.
    public mutating func linkLost() -> [Owed] {
        var owed: [Owed] = []
        if case .waitingForReply(let inFlight) = state, let requester = inFlight.requester,
            !inFlight.expectation.isDeparture
        {
            owed.append(.error(to: requester))
        }
        state = .closed
        for requester in turn {
            owed += (queues[requester] ?? []).map {
                switch $0 {
                case .command: .error(to: requester)
                case .answer(let answer): .answer(answer, to: requester)
                }
            }
        }
        unblocked = nil
        turn = []
        queues = [:]
        return owed
    }

    /// Somebody wants a command sent.
    public mutating func commandReceived(
        _ frame: Data, expecting expectation: ReplyExpectation, from requester: LaneRequester
    ) -> CommandAction {
        guard isOpen else { return .refuseLinkAway }
        return enqueue(.command(frame, expectation), of: requester) ? .queued : .refuseQueueFull
    }

    /// The host answers a command itself; the answer keeps its place behind the requester's earlier commands.
    public mutating func answerReceived(_ answer: Data, for requester: LaneRequester) -> AnswerAction {
        guard isAwaited(by: requester) else { return .answerNow }
        return enqueue(.answer(answer), of: requester) ? .queued : .queueFull
    }

    private mutating func enqueue(_ entry: Entry, of requester: LaneRequester) -> Bool {
        let waiting = queues[requester]?.count ?? 0
        guard waiting < configuration.queueLimit else { return false }
        if waiting == 0 { turn.append(requester) }
        queues[requester, default: []].append(entry)
        return true
    }

    /// Asks for the next thing to do; call it after every input until it says `wait`.
    public mutating func nextStep(now: Duration) -> Step {
        if let requester = unblocked {
            if let answer = dueAnswer(of: requester) { return .answer(answer, to: requester) }
            unblocked = nil
        }
        guard case .idle = state, !turn.isEmpty else { return .wait }
        let requester = turn.removeFirst()
        guard var queue = queues.removeValue(forKey: requester), case .command(let frame, let expectation) = queue.first
        else {
            assertionFailure("an answer or nothing is first in a queue")
            return .wait
        }
        queue.removeFirst()
        if !queue.isEmpty {
            queues[requester] = queue
            turn.append(requester)
        }
        let timeout = expectation.isDeparture ? configuration.departureTimeout : configuration.replyTimeout
        state = .waitingForReply(InFlight(requester: requester, expectation: expectation, deadline: now + timeout))
        sendNumber += 1
        return .send(frame, from: requester)
    }

    /// Takes an answer that is first in the requester's queue.
    private mutating func dueAnswer(of requester: LaneRequester) -> Data? {
        guard case .answer(let answer) = queues[requester]?.first else { return nil }
        queues[requester]?.removeFirst()
        if queues[requester]?.isEmpty == true {
            queues[requester] = nil
            turn.removeAll { $0 == requester }
        }
        return answer
    }

    /// The command with this ``sendNumber`` could not be sent. Answer the result, if any, with an error, and call
    /// ``nextStep(now:)``. If it `mayHaveGone` all the same, the lane waits until a reply to it cannot come any more.
    public mutating func commandNotSent(_ number: UInt64, mayHaveGone: Bool, now: Duration) -> LaneRequester? {
        // Of a command that has ended nothing is left to do: the link's trouble, if any, is told by its end.
        guard number == sendNumber, case .waitingForReply(let inFlight) = state else { return nil }
        commandEnded(inFlight)
        if mayHaveGone { quarantine(inFlight, now) }
        return inFlight.requester
    }

    /// The requester is gone: what it has queued is dropped. A command in flight keeps the lane until its reply, which
    /// would otherwise be taken for the next command's.
    public mutating func requesterLeft(_ requester: LaneRequester) {
        if queues.removeValue(forKey: requester) != nil { turn.removeAll { $0 == requester } }
        if unblocked == requester { unblocked = nil }
        if case .waitingForReply(var inFlight) = state, inFlight.requester == requester {
            inFlight.requester = nil
            state = .waitingForReply(inFlight)
        }
    }

    /// A frame came from the radio.
    public mutating func frameReceived(_ frame: Data, now: Duration) -> FrameAction {
        let isPush = frame.first.map(PushCode.isPush) ?? false
        switch state {
        case .closed, .idle:
            return isPush ? .push : .observation
        case .waitingForReply(var inFlight):
            switch inFlight.expectation.match(frame) {
            case .none:
                return isPush ? .push : .observation
            case .part:
                inFlight.deadline = now + configuration.replyTimeout
                state = .waitingForReply(inFlight)
                return inFlight.requester.map { .reply(to: $0, isLast: false) } ?? .orphan(isLast: false)
            case .final:
                commandEnded(inFlight)
                return inFlight.requester.map { .reply(to: $0, isLast: true) } ?? .orphan(isLast: true)
            case .finalPush:
                commandEnded(inFlight)
                return .pushEndsCommand
            }
        case .waitingForSilence(_, let quarantine):
            // Pushes say nothing of late replies; were they to extend the wait, a busy mesh would make it endless.
            if isPush { return .push }
            state = .waitingForSilence(until: now + configuration.fenceSilence, quarantine)
            return .late
        case .waitingForFence(_, var quarantine):
            if isPush { return .push }
            guard frame.first == quarantine.fences.first?.reply.rawValue else { return .late }
            if quarantine.answered() {
                state = .idle
                return .fenceAnswered
            }
            state = .waitingForSilence(until: now + configuration.fenceSilence, quarantine)
            return .late
        case .dead:
            return isPush ? .push : .late
        }
    }

    private mutating func commandEnded(_ inFlight: InFlight) {
        state = .idle
        unblocked = inFlight.requester
    }

    private mutating func quarantine(_ inFlight: InFlight, _ now: Duration) {
        state = .waitingForSilence(
            until: now + configuration.fenceSilence,
            LaneQuarantine(after: inFlight.expectation, attempts: configuration.fenceAttempts))
    }

    /// Time has passed.
    public mutating func deadlineReached(now: Duration) -> DeadlineAction {
        guard let deadline = nextDeadline, now >= deadline else { return .none }
        switch state {
        case .closed, .idle, .dead:
            return .none
        case .waitingForReply(let inFlight):
            commandEnded(inFlight)
            quarantine(inFlight, now)
            return inFlight.expectation.isDeparture ? .departed(inFlight.requester) : .timedOut(inFlight.requester)
        case .waitingForSilence(_, let quarantine):
            guard let fence = quarantine.fences.first else { return .none }
            state = .waitingForFence(deadline: now + configuration.fenceTimeout, quarantine)
            return .sendFence(fence.frame)
        case .waitingForFence(_, var quarantine):
            guard quarantine.unanswered() else {
                state = .dead
                return .linkDead
            }
            state = .waitingForSilence(until: now + configuration.fenceSilence, quarantine)
            return .none
        }
    }
}
