// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// The one command lane of a radio: one command in flight, replies to the asker only, no reply ever given to the next
/// command after a timeout.
///
///                 linkReady                      commandReceived / nextCommand
///     closed ───────────────▶ idle ◀────────────────────────────▶ waitingForReply
///        ▲                      ▲                                        │ deadline
///        │ linkLost (from all)  │ fence answered                         ▼
///        └──────────────────────┴───────── waitingForFence ◀──── waitingForSilence
///                                          │ second deadline
///                                          ▼
///                                     link declared dead (driver reconnects)
///
/// - `closed` waits for a link; commands are refused at once, never left unanswered.
/// - `idle` waits for a command.
/// - `waitingForReply` waits for the last reply to the command in flight, or its deadline.
/// - `waitingForSilence` waits until no reply has come for a moment: some radios merge two writes into one.
/// - `waitingForFence` waits for the answer to GET_DEVICE_TIME. Replies come in order, so whatever was late has come
///   before it and is dropped.
///
/// The protocol leaves open what a late reply belongs to; the fence is the firmware documentation's "one in flight,
/// 5 s, matched by type" made safe. Requesters take turns (round robin), each with its own FIFO.
public struct CommandLaneStateMachine: Sendable {
    /// What to do with a command that came.
    public enum CommandAction: Sendable, Hashable {
        /// It waits for its turn; call ``nextCommand(now:)``.
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
        /// Give it to everybody; it also ended the command in flight.
        case pushEndsCommand
        /// Give it to the asker; when it `isLast`, call ``nextCommand(now:)``.
        case reply(to: LaneRequester, isLast: Bool)
        /// A reply whose asker has gone: drop it.
        case orphan(isLast: Bool)
        /// A reply nobody asked for: firmware 1.17 sends replies to every interface. Look at it, give it to nobody.
        case observation
        /// A reply that came after its command had timed out: drop it.
        case late
        /// The fence was answered; call ``nextCommand(now:)``.
        case fenceAnswered
    }

    /// What to do next on the wire.
    public enum NextAction: Sendable, Hashable {
        /// Send this command.
        case send(Data, from: LaneRequester)
        /// Nothing to send now.
        case wait
    }

    /// What a deadline means.
    public enum DeadlineAction: Sendable, Hashable {
        /// It was early or repeated.
        case none
        /// The command in flight got no reply: answer its asker with an error. The lane goes on by itself.
        case timedOut(LaneRequester?)
        /// Send this fence.
        case sendFence(Data)
        /// No fence was answered: the link is dead.
        case linkDead
    }

    private struct Command {
        var frame: Data
        var expectation: ReplyExpectation
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
        case waitingForSilence(until: Duration, attempt: Int)
        case waitingForFence(deadline: Duration, attempt: Int)
    }

    private let configuration: CommandLaneConfiguration
    private var state = State.closed
    private var queues: [LaneRequester: [Command]] = [:]
    /// Requesters with something queued, the next one first.
    private var turn: [LaneRequester] = []

    /// A lane without a link.
    public init(configuration: CommandLaneConfiguration = CommandLaneConfiguration()) {
        self.configuration = configuration
    }

    /// Whether commands are taken.
    public var isOpen: Bool {
        if case .closed = state { false } else { true }
    }

    /// How many commands wait, the one in flight not counted.
    public func queuedCommands(of requester: LaneRequester) -> Int {
        queues[requester]?.count ?? 0
    }

    /// When ``deadlineReached(now:)`` wants to be called.
    public var nextDeadline: Duration? {
        switch state {
        case .closed, .idle: nil
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

    /// The link is gone. Everybody in the result, in order, is owed an error for each time it is listed.
    public mutating func linkLost() -> [LaneRequester] {
        var owed: [LaneRequester] = []
        if case .waitingForReply(let inFlight) = state, let requester = inFlight.requester { owed.append(requester) }
        state = .closed
        for requester in turn {
            owed += Array(repeating: requester, count: queues[requester]?.count ?? 0)
        }
        turn = []
        queues = [:]
        return owed
    }

    /// Somebody wants a command sent.
    public mutating func commandReceived(
        _ frame: Data, expecting expectation: ReplyExpectation, from requester: LaneRequester
    ) -> CommandAction {
        guard isOpen else { return .refuseLinkAway }
        let waiting = queues[requester]?.count ?? 0
        guard waiting < configuration.queueLimit else { return .refuseQueueFull }
        if waiting == 0 { turn.append(requester) }
        queues[requester, default: []].append(Command(frame: frame, expectation: expectation))
        return .queued
    }

    /// Asks for the next thing to send; call it after every input until it says `wait`.
    public mutating func nextCommand(now: Duration) -> NextAction {
        guard case .idle = state, !turn.isEmpty else { return .wait }
        let requester = turn.removeFirst()
        guard var queue = queues.removeValue(forKey: requester), !queue.isEmpty else { return .wait }
        let command = queue.removeFirst()
        if !queue.isEmpty {
            queues[requester] = queue
            turn.append(requester)
        }
        if !command.expectation.needsNoReply {
            state = .waitingForReply(
                InFlight(
                    requester: requester, expectation: command.expectation,
                    deadline: now + configuration.replyTimeout))
        }
        return .send(command.frame, from: requester)
    }

    /// The requester is gone: what it has queued is dropped. A command in flight keeps the lane until its reply, which
    /// would otherwise be taken for the next command's.
    public mutating func requesterLeft(_ requester: LaneRequester) {
        queues[requester] = nil
        turn.removeAll { $0 == requester }
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
                state = .idle
                return inFlight.requester.map { .reply(to: $0, isLast: true) } ?? .orphan(isLast: true)
            case .finalPush:
                state = .idle
                return .pushEndsCommand
            }
        case .waitingForSilence(_, let attempt):
            // Pushes say nothing of late replies; were they to extend the wait, a busy mesh would make it endless.
            if isPush { return .push }
            state = .waitingForSilence(until: now + configuration.fenceSilence, attempt: attempt)
            return .late
        case .waitingForFence:
            if isPush { return .push }
            guard frame.first == ReplyCode.currentTime.rawValue else { return .late }
            state = .idle
            return .fenceAnswered
        }
    }

    /// Time has passed.
    public mutating func deadlineReached(now: Duration) -> DeadlineAction {
        guard let deadline = nextDeadline, now >= deadline else { return .none }
        switch state {
        case .closed, .idle:
            return .none
        case .waitingForReply(let inFlight):
            state = .waitingForSilence(until: now + configuration.fenceSilence, attempt: 1)
            return .timedOut(inFlight.requester)
        case .waitingForSilence(_, let attempt):
            state = .waitingForFence(deadline: now + configuration.fenceTimeout, attempt: attempt)
            return .sendFence(CompanionFrame.getTime)
        case .waitingForFence(_, let attempt):
            guard attempt < configuration.fenceAttempts else {
                // The driver drops the link; until it has, nothing more is sent.
                state = .waitingForFence(deadline: now + configuration.fenceTimeout, attempt: attempt)
                return .linkDead
            }
            state = .waitingForSilence(until: now + configuration.fenceSilence, attempt: attempt + 1)
            return .none
        }
    }
}

/// Who wants a command sent: the host itself, or a client by its number.
public struct LaneRequester: Sendable, Hashable, ExpressibleByIntegerLiteral {
    /// The client's number; 0 for the host.
    public let client: UInt64

    /// A client's numbers begin at 1.
    public init(client: UInt64) {
        self.client = client
    }

    /// The same as ``init(client:)``.
    public init(integerLiteral value: UInt64) {
        client = value
    }

    /// The host, on its own behalf.
    public static let host = LaneRequester(client: 0)
}

/// Times and limits of a ``CommandLaneStateMachine``.
public struct CommandLaneConfiguration: Sendable {
    /// How long a reply may take; also between two frames of a series. (Five seconds: the firmware's documentation.)
    public var replyTimeout: Duration = .seconds(5)
    /// Silence needed before the fence is sent (nRF52 radios merge writes that come within one loop).
    public var fenceSilence: Duration = .milliseconds(100)
    /// How long the fence's answer may take.
    public var fenceTimeout: Duration = .seconds(3)
    /// How many fences are tried before the link is given up.
    public var fenceAttempts = 2
    /// Commands that may wait per requester.
    public var queueLimit = 64

    public init() {}
}
