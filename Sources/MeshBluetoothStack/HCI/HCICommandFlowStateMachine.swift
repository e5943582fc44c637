// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Sends commands no faster than the controller takes them, and notices when it has stopped answering (Core
/// Specification 5.4, Vol 4 Part E §4.4).
///
///                 opened                       answer to Reset
///     ┌────────┐ ────────▶ ┌───────────┐ ────────────────────▶ ┌───────┐
///     │ closed │           │ resetting │                       │ ready │
///     └────────┘ ◀──────── └───────────┘ ◀──────────────────── └───────┘
///                 no answer to            no answer in 2 s, or a hardware error
///                 any Reset: give up
///
/// At most as many commands are under way as the last event allowed; before the first one it is one command. The
/// specification gives a command no deadline; 2 s is NimBLE's, and Linux's. One Reset may repair a controller that has
/// stopped; if not, its owner opens it anew. When a line has just been opened the first Reset may get lost (a UART that
/// wakes up), so it is sent four times, 200 ms apart, as BTstack does.
///
/// `Waiter` is whoever gets a command's outcome.
public struct HCICommandFlowStateMachine<Waiter>: ~Copyable {
    public struct Configuration: Sendable {
        /// How long a command may stay unanswered.
        public var commandTimeout: Duration = .seconds(2)
        /// How long the Reset of a line that was just opened waits before it is sent again.
        public var resetRepetition: Duration = .milliseconds(200)
        /// How often it is sent again.
        public var resetRepetitions = 3
        /// How many commands may wait.
        public var queueLimit = 256

        public init() {}
    }

    /// What to do; in this order.
    public struct Action {
        /// Waiters whose commands are over.
        public var finished: [(waiter: Waiter, outcome: HCICommandOutcome)] = []
        /// Commands to send now.
        public var commands: [HCICommand] = []
        public var change: Change?
    }

    /// What has become of the controller.
    public enum Change: Sendable, Hashable {
        /// It was reset, and knows nothing: set it up.
        case becameReady
        /// It is being reset: all links are gone.
        case beganReset(Cause)
        /// It does not answer: close it and open it anew.
        case gaveUp
    }

    /// Why the controller is reset.
    public enum Cause: Sendable, Hashable {
        case opened
        case commandTimedOut(HCIOpcode)
        case hardwareError(UInt8)
    }

    private struct Command {
        var command: HCICommand
        var waiter: Waiter
    }

    private enum State {
        /// Waits for the line to be opened.
        case closed
        /// Waits for the answer to Reset, of which `repetitions` more may be sent.
        case resetting(repetitions: Int, deadline: Duration)
        /// Waits for commands and answers.
        case ready
    }

    private let configuration: Configuration
    private var state = State.closed
    private var queue: [Command] = []
    private var underWay: [Command] = []
    /// How many commands the controller takes.
    private var allowance = 1
    /// Since when there is no answer to what is under way, or no allowance for what waits.
    private var waitingSince = Duration.zero
    /// Answers to commands that are not under way: a controller that answers twice, or was reset.
    public private(set) var strayAnswers: UInt64 = 0

    public init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// Whether commands are taken.
    public var isReady: Bool {
        if case .ready = state { true } else { false }
    }

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? {
        switch state {
        case .closed: nil
        case .resetting(_, let deadline): deadline
        case .ready: underWay.isEmpty && queue.isEmpty ? nil : waitingSince + configuration.commandTimeout
        }
    }

    // MARK: Inputs

    /// The line to the controller is open.
    public mutating func opened(now: Duration) -> Action {
        reset(.opened, repetitions: configuration.resetRepetitions, now: now)
    }

    /// The line is closed, or lost.
    public mutating func closed() -> Action {
        state = .closed
        return Action(finished: loseAll())
    }

    /// Sends a command when the controller takes it. Without a controller that is ready it is over at once.
    public mutating func commandRequested(_ command: HCICommand, waiter: Waiter, now: Duration) -> Action {
        guard isReady else { return Action(finished: [(waiter, .lost)]) }
        guard queue.count < configuration.queueLimit else {
            return Action(finished: [(waiter, .refused(.memoryExceeded))])
        }
        if underWay.isEmpty && queue.isEmpty { waitingSince = now }
        queue.append(Command(command: command, waiter: waiter))
        return Action(commands: takeAllowed())
    }

    /// Command Complete came.
    public mutating func commandCompleted(
        _ opcode: HCIOpcode, parameters: [UInt8], allowance: UInt8, now: Duration
    ) -> Action {
        if case .resetting = state {
            guard opcode == .reset, HCICommandOutcome(returned: parameters) == .completed([]) else {
                strayAnswers += 1
                return Action()
            }
            state = .ready
            self.allowance = max(1, Int(allowance))
            return Action(change: .becameReady)
        }
        return answered(opcode, HCICommandOutcome(returned: parameters), allowance, now)
    }

    /// Command Status came. Some controllers refuse unknown commands with it, others with Command Complete.
    public mutating func commandStatusReported(
        _ opcode: HCIOpcode, _ status: HCIStatus, allowance: UInt8, now: Duration
    ) -> Action {
        answered(opcode, HCICommandOutcome(status), allowance, now)
    }

    /// The controller reports that it has failed (§7.7.16).
    public mutating func hardwareErrorReported(_ code: UInt8, now: Duration) -> Action {
        guard isReady else { return Action() }
        return reset(.hardwareError(code), repetitions: 0, now: now)
    }

    /// Early calls change nothing.
    public mutating func deadlineReached(now: Duration) -> Action {
        guard let nextDeadline, nextDeadline <= now else { return Action() }
        switch state {
        case .closed: return Action()
        case .resetting(0, _):
            state = .closed
            return Action(finished: loseAll(), change: .gaveUp)
        case .resetting(let repetitions, _):
            state = .resetting(repetitions: repetitions - 1, deadline: resetDeadline(repetitions - 1, now))
            return Action(commands: [.reset])
        case .ready:
            let late = underWay.first ?? queue.first
            return reset(.commandTimedOut(late?.command.opcode ?? .none), repetitions: 0, now: now)
        }
    }

    // MARK: Steps

    private func resetDeadline(_ repetitions: Int, _ now: Duration) -> Duration {
        now + (repetitions > 0 ? configuration.resetRepetition : configuration.commandTimeout)
    }

    private mutating func reset(_ cause: Cause, repetitions: Int, now: Duration) -> Action {
        state = .resetting(repetitions: repetitions, deadline: resetDeadline(repetitions, now))
        return Action(finished: loseAll(), commands: [.reset], change: .beganReset(cause))
    }

    private mutating func loseAll() -> [(waiter: Waiter, outcome: HCICommandOutcome)] {
        defer {
            underWay.removeAll()
            queue.removeAll()
        }
        return (underWay + queue).map { ($0.waiter, .lost) }
    }

    private mutating func answered(
        _ opcode: HCIOpcode, _ outcome: HCICommandOutcome, _ newAllowance: UInt8, _ now: Duration
    ) -> Action {
        guard isReady else {
            strayAnswers += 1
            return Action()
        }
        var action = Action()
        allowance = Int(newAllowance)
        if let index = underWay.firstIndex(where: { $0.command.opcode == opcode }) {
            action.finished = [(underWay.remove(at: index).waiter, outcome)]
            waitingSince = now
        } else {
            if opcode != .none { strayAnswers += 1 }
            // An answer to nothing must not keep a controller alive that owes one.
            if underWay.isEmpty { waitingSince = now }
        }
        action.commands = takeAllowed()
        return action
    }

    private mutating func takeAllowed() -> [HCICommand] {
        let count = min(queue.count, max(0, allowance - underWay.count))
        let taken = Array(queue.prefix(count))
        queue.removeFirst(count)
        underWay += taken
        return taken.map(\.command)
    }
}
