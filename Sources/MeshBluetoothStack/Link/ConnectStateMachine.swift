// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Makes one link at a time (Core Specification 5.4, Vol 4 Part E §7.8.12, §7.8.13).
///
///     ┌──────┐ connectRequested ┌──────────┐ status ┌────────────┐ Connection Complete
///     │ idle │ ───────────────▶ │ starting │ ─────▶ │ initiating │ ───────────────────▶ idle, connected
///     └──────┘                  └────┬─────┘        └─────┬──────┘
///        ▲  ▲       cancelRequested, │ deadline           │ cancelRequested, deadline
///        │  │                        ▼                    ▼
///        │  │   Connection     ┌─────────────────────────────┐ Connection Complete with success:
///        │  └───────────────── │         cancelling          │ the link was made meanwhile
///        │      Complete       └──────────────┬──────────────┘
///        │   Disconnection             ┌──────▼──────┐
///        └──────────────────────────── │   closing   │
///            Complete                  └─────────────┘
///
/// An attempt has no end of its own, so a deadline cancels it, and every cancellation waits for the Connection Complete
/// that has to follow: a controller that still initiates refuses the next attempt, and some radios share their antenna
/// with Wi-Fi, which then starves. Cancel may come too late (Command Disallowed); the link that was made then is
/// closed. A controller that does not tell the end is reset. An attempt that fails with 0x3E, the peer was there and
/// then silent, is begun again at once.
public struct ConnectStateMachine: ~Copyable, Sendable {
    public struct Configuration: Sendable {
        public var timeout: Duration = .seconds(10)
        /// How long the end of a cancelled attempt may take.
        public var cancelTimeout: Duration = .seconds(2)
        /// How long the end of an unwanted link may take: its supervision timeout, and some more.
        public var closeTimeout: Duration = .seconds(10)
        /// How often an attempt that failed with 0x3E is begun again.
        public var retries = 3

        public init() {}
    }

    public enum Action: Sendable, Hashable {
        case nothing
        /// Its outcome goes to ``createAnswered(_:now:)``, or ``cancelAnswered(_:)`` for a Cancel.
        case send(HCICommand)
        case finish(Result)
        /// The controller does not end what it began.
        case resetController
    }

    /// How an attempt ended.
    public enum Result: Sendable, Hashable {
        case connected(ConnectionComplete)
        case failed(HCIStatus)
        case timedOut
        case cancelled
        /// The controller was reset, or is gone.
        case controllerLost
        /// There is an attempt already.
        case busy
    }

    fileprivate struct Attempt: Sendable {
        var request: ConnectionRequest
        var family: ControllerDescriptor.CommandFamily
        var retries: Int
        var deadline: Duration

        var command: HCICommand {
            family == .extended ? .extendedCreateConnection(request) : .createConnection(request)
        }
    }

    fileprivate enum State: ~Copyable {
        /// Waits for `connectRequested`.
        case idle
        /// Waits for the command's status; `ending` if the attempt is to be cancelled then.
        case starting(Attempt, ending: Result?)
        /// Waits for Connection Complete.
        case initiating(Attempt)
        /// Waits for the Connection Complete of an attempt that was cancelled; without a deadline, for the controller's
        /// reset.
        case cancelling(Result, deadline: Duration?)
        /// Waits for the Disconnection Complete of a link that nobody wants.
        case closing(ConnectionHandle, Result, deadline: Duration?)
    }

    private let configuration: Configuration
    private var state: State = .idle

    public init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? {
        switch state {
        case .idle: nil
        case .starting(let attempt, _): attempt.deadline
        case .initiating(let attempt): attempt.deadline
        case .cancelling(_, let deadline): deadline
        case .closing(_, _, let deadline): deadline
        }
    }

    /// Whether an attempt can begin.
    public var isIdle: Bool {
        switch state {
        case .idle: true
        case .starting: false
        case .initiating: false
        case .cancelling: false
        case .closing: false
        }
    }

    // MARK: Inputs

    public mutating func connectRequested(
        _ request: ConnectionRequest, family: ControllerDescriptor.CommandFamily, now: Duration
    ) -> Action {
        guard isIdle else { return .finish(.busy) }
        let attempt = Attempt(
            request: request, family: family, retries: configuration.retries, deadline: now + configuration.timeout)
        state = .starting(attempt, ending: nil)
        return .send(attempt.command)
    }

    /// Nobody wants the link any more. The action that finishes it comes when the controller is done.
    public mutating func cancelRequested(now: Duration) -> Action {
        state.end(.cancelled, deadline: now + configuration.cancelTimeout)
    }

    /// The command that creates the connection was answered.
    public mutating func createAnswered(_ outcome: HCICommandOutcome, now: Duration) -> Action {
        state.createAnswered(outcome, cancelDeadline: now + configuration.cancelTimeout)
    }

    /// Cancel was answered; the attempt's end is told by its event, also when Cancel came too late.
    public mutating func cancelAnswered(_ outcome: HCICommandOutcome) -> Action {
        outcome == .lost ? controllerLost() : .nothing
    }

    /// Connection Complete came, with the role of central.
    public mutating func connectionCompleted(_ event: ConnectionComplete, now: Duration) -> Action {
        state.connectionCompleted(event, now: now, closeDeadline: now + configuration.closeTimeout)
    }

    /// A link has ended.
    public mutating func disconnected(_ handle: ConnectionHandle) -> Action {
        state.disconnected(handle)
    }

    /// The controller was reset or is gone, and with it whatever it was doing.
    public mutating func controllerLost() -> Action {
        if isIdle { return .nothing }
        state = .idle
        return .finish(.controllerLost)
    }

    /// Early calls change nothing.
    public mutating func deadlineReached(now: Duration) -> Action {
        guard let nextDeadline, nextDeadline <= now else { return .nothing }
        return state.deadlineReached(cancelDeadline: now + configuration.cancelTimeout)
    }
}

extension ConnectStateMachine.State {
    fileprivate mutating func end(
        _ result: ConnectStateMachine.Result, deadline: Duration
    ) -> ConnectStateMachine.Action {
        switch consume self {
        case .idle:
            self = .idle
            return .nothing
        // A Cancel before the status would be refused; it follows it.
        case .starting(var attempt, let ending):
            attempt.deadline = deadline
            self = .starting(attempt, ending: ending ?? result)
            return .nothing
        case .initiating:
            self = .cancelling(result, deadline: deadline)
            return .send(.createConnectionCancel)
        case .cancelling(let current, let deadline):
            self = .cancelling(current, deadline: deadline)
            return .nothing
        case .closing(let handle, let current, let deadline):
            self = .closing(handle, current, deadline: deadline)
            return .nothing
        }
    }

    fileprivate mutating func createAnswered(
        _ outcome: HCICommandOutcome, cancelDeadline: Duration
    ) -> ConnectStateMachine.Action {
        switch consume self {
        case .starting(let attempt, let ending):
            switch outcome {
            // Command Complete instead of Command Status: some controllers do not know the difference.
            case .started, .completed:
                guard let ending else {
                    self = .initiating(attempt)
                    return .nothing
                }
                self = .cancelling(ending, deadline: cancelDeadline)
                return .send(.createConnectionCancel)
            case .refused(let status):
                self = .idle
                return .finish(ending ?? .failed(status))
            case .lost:
                self = .idle
                return .finish(.controllerLost)
            }
        case .idle:
            self = .idle
            return .nothing
        case .initiating(let attempt):
            self = .initiating(attempt)
            return .nothing
        case .cancelling(let result, let deadline):
            self = .cancelling(result, deadline: deadline)
            return .nothing
        case .closing(let handle, let result, let deadline):
            self = .closing(handle, result, deadline: deadline)
            return .nothing
        }
    }

    fileprivate mutating func connectionCompleted(
        _ event: ConnectionComplete, now: Duration, closeDeadline: Duration
    ) -> ConnectStateMachine.Action {
        switch consume self {
        // A link that nobody asked for.
        case .idle:
            self = .idle
            return event.status == .success ? .send(.disconnect(event.handle)) : .nothing
        case .starting(let attempt, nil):
            var action = ConnectStateMachine.Action.nothing
            self = Self.completed(event, attempt, now: now, &action)
            return action
        case .initiating(let attempt):
            var action = ConnectStateMachine.Action.nothing
            self = Self.completed(event, attempt, now: now, &action)
            return action
        case .starting(_, let ending?):
            var action = ConnectStateMachine.Action.nothing
            self = Self.ended(event, ending, closeDeadline, &action)
            return action
        case .cancelling(let result, _):
            var action = ConnectStateMachine.Action.nothing
            self = Self.ended(event, result, closeDeadline, &action)
            return action
        case .closing(let handle, let result, let deadline):
            self = .closing(handle, result, deadline: deadline)
            return .nothing
        }
    }

    /// An attempt that is wanted ended.
    private static func completed(
        _ event: ConnectionComplete, _ attempt: ConnectStateMachine.Attempt, now: Duration,
        _ action: inout ConnectStateMachine.Action
    ) -> Self {
        if event.status == .success {
            action = .finish(.connected(event))
            return .idle
        }
        guard event.status == .failedToEstablish, attempt.retries > 0, now < attempt.deadline else {
            action = .finish(.failed(event.status))
            return .idle
        }
        var next = attempt
        next.retries -= 1
        action = .send(next.command)
        return .starting(next, ending: nil)
    }

    /// An attempt that is not wanted any more ended.
    private static func ended(
        _ event: ConnectionComplete, _ result: ConnectStateMachine.Result, _ closeDeadline: Duration,
        _ action: inout ConnectStateMachine.Action
    ) -> Self {
        guard event.status == .success else {
            action = .finish(result)
            return .idle
        }
        action = .send(.disconnect(event.handle))
        return .closing(event.handle, result, deadline: closeDeadline)
    }

    fileprivate mutating func disconnected(_ gone: ConnectionHandle) -> ConnectStateMachine.Action {
        switch consume self {
        case .closing(gone, let result, _):
            self = .idle
            return .finish(result)
        case .idle: self = .idle
        case .starting(let attempt, let ending): self = .starting(attempt, ending: ending)
        case .initiating(let attempt): self = .initiating(attempt)
        case .cancelling(let result, let deadline): self = .cancelling(result, deadline: deadline)
        case .closing(let handle, let result, let deadline): self = .closing(handle, result, deadline: deadline)
        }
        return .nothing
    }

    fileprivate mutating func deadlineReached(cancelDeadline: Duration) -> ConnectStateMachine.Action {
        switch consume self {
        case .idle:
            self = .idle
            return .nothing
        case .initiating:
            self = .cancelling(.timedOut, deadline: cancelDeadline)
            return .send(.createConnectionCancel)
        case .starting(let attempt, nil):
            var late = attempt
            late.deadline = cancelDeadline
            self = .starting(late, ending: .timedOut)
            return .nothing
        // The reset is an input again: `controllerLost` ends the attempt. Until then nothing else may begin, and the
        // deadline does not come twice.
        case .starting(_, let result?):
            self = .cancelling(result, deadline: nil)
            return .resetController
        case .cancelling(let result, _):
            self = .cancelling(result, deadline: nil)
            return .resetController
        case .closing(let handle, let result, _):
            self = .closing(handle, result, deadline: nil)
            return .resetController
        }
    }
}
