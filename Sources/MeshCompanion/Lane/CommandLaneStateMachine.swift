// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// The one command lane of a radio: one command in flight, replies to the asker only, no reply ever given to the next
/// command after a timeout.
///
///                 linkReady                      commandReceived / nextStep
///     closed ───────────────▶ idle ◀────────────────────────────▶ waitingForReply ◀─▶ betweenCommands
///        ▲                      ▲                                        │ deadline, commandNotSent
///        │ linkLost (from all)  │ fence answered                         ▼
///        └──────────────────────┴───────── waitingForFence ◀──── waitingForSilence
///        ▲                                 │          │                  ▲
///        │               no fence is left  │          └──────────────────┘ one more fence is needed, or unanswered
///        └─────────────────────── dead ◀───┘
///
/// - `closed` waits for a link; commands are refused at once, never left unanswered.
/// - `idle` waits for a command.
/// - `betweenCommands` has more of a transaction to send, before anything else.
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
/// Requesters take turns (round robin) within a ``LanePriority``, each with its own FIFO. A mesh request waits while another
/// one is pending in the radio, and does not hold up other requesters.
///
/// An entry may be a transaction: commands that go first, with nothing between them and the command itself, such as the
/// flood scope that it is to be sent with.
public struct CommandLaneStateMachine: Sendable {
    /// What to do with a command that came.
    public enum CommandAction: Sendable, Hashable {
        /// It waits for its turn; call ``nextStep(now:onlyFrom:holdingMeshRequests:)``.
        case queued
        /// There is no radio: answer with an error.
        case refuseLinkAway
        /// The requester has too many waiting: answer with an error.
        case refuseQueueFull
    }

    /// What to do with a frame from the radio.
    public enum FrameAction: Sendable, Hashable {
        /// Give it to everybody.
        case push
        /// Give it to the asker, also where it is a push (the radio's own telemetry); when it `isLast`, call ``nextStep(now:onlyFrom:holdingMeshRequests:)``.
        case reply(to: LaneRequester, isLast: Bool)
        /// The reply to a command that goes before another one: it goes to nobody; call ``nextStep(now:onlyFrom:holdingMeshRequests:)``.
        case leadAnswered
        /// A reply whose asker has gone: drop it.
        case orphan(isLast: Bool)
        /// A reply nobody asked for: firmware 1.17 sends replies to every interface. Look at it, give it to nobody.
        case observation
        /// A reply that came after its command had timed out: drop it.
        case late
        /// The last fence was answered; call ``nextStep(now:onlyFrom:holdingMeshRequests:)``.
        case fenceAnswered
    }

    /// What to do next.
    public enum Step: Sendable, Hashable {
        /// Send this command; if that fails, say so with ``commandNotSent(_:mayHaveGone:now:)`` and ``sendNumber``. For a
        /// transaction it is one of its commands.
        case send(Data, from: LaneRequester)
        /// Nothing to do now.
        case wait
    }

    /// What a deadline means. Call ``nextStep(now:onlyFrom:holdingMeshRequests:)`` after it.
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

    private struct InFlight {
        var requester: LaneRequester?
        var frame: Data
        var expectation: ReplyExpectation
        /// It goes before another command; whether its refusal ends the transaction.
        var lead: Bool?
        /// What is still to be sent of the transaction.
        var entry: LaneEntry
        var deadline: Duration
    }

    private enum State {
        case closed
        case idle
        /// The next command of a transaction is due.
        case betweenCommands(LaneEntry, LaneRequester)
        case waitingForReply(InFlight)
        case waitingForSilence(until: Duration, LaneQuarantine)
        case waitingForFence(deadline: Duration, LaneQuarantine)
        case dead
    }

    private let configuration: CommandLaneConfiguration
    private var state = State.closed
    private var queues: [LaneRequester: [LaneEntry]] = [:]
    /// Requesters with something queued, the next one first.
    private var turn: [LaneRequester] = []
    /// The number of the last command that ``nextStep(now:onlyFrom:holdingMeshRequests:)`` gave.
    public private(set) var sendNumber: UInt64 = 0

    /// A lane without a link.
    public init(configuration: CommandLaneConfiguration = CommandLaneConfiguration()) {
        self.configuration = configuration
    }

    /// Whether commands are taken.
    public var isOpen: Bool {
        if case .closed = state { false } else { true }
    }

    /// How many entries wait, the one in flight not counted.
    public func queuedCommands(of requester: LaneRequester) -> Int {
        queues[requester]?.count ?? 0
    }

    /// Whether the requester is still owed something.
    public func isAwaited(by requester: LaneRequester) -> Bool {
        isInFlight(of: requester) || queues[requester] != nil
    }

    private func isInFlight(of requester: LaneRequester) -> Bool {
        switch state {
        case .waitingForReply(let inFlight): inFlight.requester == requester
        case .betweenCommands(_, let current): current == requester
        case .closed, .idle, .waitingForSilence, .waitingForFence, .dead: false
        }
    }

    /// The command that waits for its reply.
    public var commandInFlight: Data? {
        if case .waitingForReply(let inFlight) = state { inFlight.frame } else { nil }
    }

    /// Whether nothing is in flight, queued or in doubt.
    public var isIdle: Bool {
        if case .idle = state { turn.isEmpty } else { false }
    }

    /// When ``deadlineReached(now:)`` wants to be called.
    public var nextDeadline: Duration? {
        switch state {
        case .closed, .idle, .betweenCommands, .dead: nil
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

    /// The link is gone. Each of these is owed an error, as often as it is named, in this order.
    public mutating func linkLost() -> [LaneRequester] {
        var owed: [LaneRequester] = []
        switch state {
        case .waitingForReply(let inFlight):
            if let requester = inFlight.requester, !inFlight.expectation.isDeparture { owed.append(requester) }
        case .betweenCommands(_, let requester):
            owed.append(requester)
        case .closed, .idle, .waitingForSilence, .waitingForFence, .dead:
            break
        }
        state = .closed
        for requester in turn { owed += (queues[requester] ?? []).map { _ in requester } }
        turn = []
        queues = [:]
        return owed
    }

    /// Somebody wants a command sent.
    public mutating func commandReceived(
        _ frame: Data, expecting expectation: ReplyExpectation, from requester: LaneRequester
    ) -> CommandAction {
        entryReceived(LaneEntry(frame, expecting: expectation), from: requester)
    }

    /// Somebody wants a command sent, perhaps others before it.
    public mutating func entryReceived(_ entry: LaneEntry, from requester: LaneRequester) -> CommandAction {
        guard isOpen else { return .refuseLinkAway }
        let waiting = queues[requester]?.count ?? 0
        guard waiting < configuration.queueLimit else { return .refuseQueueFull }
        if waiting == 0 { turn.append(requester) }
        queues[requester, default: []].append(entry)
        return .queued
    }

    /// Asks for the next thing to do; call it after every input until it says `wait`. `onlyFrom`: everybody else has to
    /// wait. `holdingMeshRequests`: the radio has one pending, which the next one would cancel. `lead`: what has to go right
    /// before an entry whose turn has come, in addition to what it brought along.
    public mutating func nextStep(
        now: Duration, onlyFrom: LaneRequester? = nil, holdingMeshRequests: Bool = false,
        lead: (LaneEntry, LaneRequester) -> [LaneEntry.Lead] = { _, _ in [] }
    ) -> Step {
        if case .betweenCommands(let entry, let requester) = state { return send(entry, requester, now) }
        guard case .idle = state, let index = nextTurn(onlyFrom, holdingMeshRequests) else { return .wait }
        let requester = turn.remove(at: index)
        guard var queue = queues.removeValue(forKey: requester), var entry = queue.first else {
            assertionFailure("a requester without entries has a turn")
            return .wait
        }
        queue.removeFirst()
        if !queue.isEmpty {
            queues[requester] = queue
            turn.append(requester)
        }
        entry.lead += lead(entry, requester)
        return send(entry, requester, now)
    }

    /// Whose turn it is: the first of those with the highest priority, but for those, and mesh requests, that have to wait.
    private func nextTurn(_ only: LaneRequester?, _ holdingMeshRequests: Bool) -> Int? {
        var best: (index: Int, priority: LanePriority)?
        for (index, requester) in turn.enumerated() {
            if let only, requester != only { continue }
            guard let entry = queues[requester]?.first, !(holdingMeshRequests && entry.isMeshRequest) else { continue }
            if best.map({ entry.priority > $0.priority }) ?? true { best = (index, entry.priority) }
        }
        return best?.index
    }

    private mutating func send(_ entry: LaneEntry, _ requester: LaneRequester, _ now: Duration) -> Step {
        var rest = entry
        let lead = rest.lead.isEmpty ? nil : rest.lead.removeFirst()
        let (frame, expectation) = lead.map { ($0.frame, $0.expectation) } ?? (entry.frame, entry.expectation)
        let timeout = expectation.isDeparture ? configuration.departureTimeout : configuration.replyTimeout
        state = .waitingForReply(
            InFlight(
                requester: requester, frame: frame, expectation: expectation, lead: lead?.isRequired, entry: rest,
                deadline: now + timeout))
        sendNumber += 1
        return .send(frame, from: requester)
    }

    /// The command with this ``sendNumber`` could not be sent. Answer the result, if any, with an error, and call
    /// ``nextStep(now:onlyFrom:holdingMeshRequests:)``. If it `mayHaveGone` all the same, the lane waits until a reply to it cannot come any more.
    public mutating func commandNotSent(_ number: UInt64, mayHaveGone: Bool, now: Duration) -> LaneRequester? {
        // Of a command that has ended nothing is left to do: the link's trouble, if any, is told by its end.
        guard number == sendNumber, case .waitingForReply(let inFlight) = state else { return nil }
        state = .idle
        if mayHaveGone { quarantine(inFlight, now) }
        return inFlight.requester
    }

    /// The requester is gone: what it has queued is dropped. A command in flight keeps the lane until its reply, which
    /// would otherwise be taken for the next command's.
    public mutating func requesterLeft(_ requester: LaneRequester) {
        if queues.removeValue(forKey: requester) != nil { turn.removeAll { $0 == requester } }
        switch state {
        case .waitingForReply(var inFlight) where inFlight.requester == requester:
            inFlight.requester = nil
            state = .waitingForReply(inFlight)
        case .betweenCommands(_, requester):
            state = .idle
        case .closed, .idle, .betweenCommands, .waitingForReply, .waitingForSilence, .waitingForFence, .dead:
            break
        }
    }

    /// A frame came from the radio.
    public mutating func frameReceived(_ frame: Data, now: Duration) -> FrameAction {
        let isPush = frame.first.map(PushCode.isPush) ?? false
        switch state {
        case .closed, .idle, .betweenCommands:
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
                return ended(inFlight, isRefused: frame.first == ReplyCode.error.rawValue)
            case .finalPush:
                return ended(inFlight, isRefused: false)
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

    private mutating func ended(_ inFlight: InFlight, isRefused: Bool) -> FrameAction {
        state = .idle
        guard let requester = inFlight.requester else { return .orphan(isLast: true) }
        guard let isRequired = inFlight.lead, !(isRequired && isRefused) else {
            return .reply(to: requester, isLast: true)
        }
        state = .betweenCommands(inFlight.entry, requester)
        return .leadAnswered
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
        case .closed, .idle, .betweenCommands, .dead:
            return .none
        case .waitingForReply(let inFlight):
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
