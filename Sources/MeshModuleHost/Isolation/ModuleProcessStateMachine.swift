// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The life of one process that runs a module.
///
/// ```
/// waitingForHello ──hello──▶ waitingForStart ──started──▶ running ──stop──▶ stopping ──stopped──▶ leaving ─▶ over
///        │ deadline               │ deadline                │ no pong        │ deadline             │ TERM, KILL
///        └────────────────────────┴────────────▶ killed ◀───┴────────────────┴──────────────────────┘
/// ```
///
/// A process that ends in `leaving`, in `stopping` or by ``stop(now:)`` has ended as it should; every other end is a crash.
struct ModuleProcessStateMachine: ~Copyable {
    struct Configuration: Sendable {
        /// For what is loaded, and for the module's own start.
        var helloDeadline: Duration = .seconds(5)
        var startDeadline: Duration = .seconds(10)
        var pingInterval: Duration = .seconds(5)
        /// Without an answer for so long it hangs.
        var pingDeadline: Duration = .seconds(15)
        /// How long it may take to stop its module.
        var stopDeadline: Duration = .seconds(5)
        /// How long it may take to end when its socket is closed, and again after SIGTERM.
        var exitDeadline: Duration = .seconds(1)
    }

    private enum State {
        case waitingForHello(deadline: Duration)
        case waitingForStart(deadline: Duration)
        /// Waits for pongs.
        case running(nextPing: Duration, answered: Duration)
        /// Waits for `stopped`.
        case stopping(deadline: Duration)
        /// Its socket is closed; waits for its end.
        case leaving(deadline: Duration, isTerminated: Bool)
        /// It got SIGKILL; waits for its end.
        case killed(isCrash: Bool)
        case over
    }

    /// What a deadline asks for.
    enum DeadlineAction: Sendable {
        case none
        case ping
        /// SIGTERM.
        case terminate
        /// SIGKILL; why.
        case kill(String)
    }

    /// What a wish to stop asks for.
    enum StopAction: Sendable {
        /// Ask the module.
        case sendStop
        /// It has begun nothing: SIGKILL.
        case kill
        case none
    }

    private let configuration: Configuration
    private var state: State

    init(_ configuration: Configuration = Configuration(), now: Duration) {
        self.configuration = configuration
        state = .waitingForHello(deadline: now + configuration.helloDeadline)
    }

    /// When ``deadlineReached(now:)`` is to be called.
    var nextDeadline: Duration? {
        switch state {
        case .waitingForHello(let deadline), .waitingForStart(let deadline), .stopping(let deadline),
            .leaving(let deadline, _):
            deadline
        case .running(let nextPing, let answered): min(nextPing, answered + configuration.pingDeadline)
        case .killed, .over: nil
        }
    }

    /// Whether it can be asked for something.
    var isUsable: Bool {
        switch state {
        case .waitingForStart, .running: true
        case .waitingForHello, .stopping, .leaving, .killed, .over: false
        }
    }

    /// Its description has come. False: not now.
    mutating func helloReceived(now: Duration) -> Bool {
        guard case .waitingForHello = state else { return false }
        state = .waitingForStart(deadline: now + configuration.startDeadline)
        return true
    }

    /// Its module runs. False: not now.
    mutating func started(now: Duration) -> Bool {
        switch state {
        case .waitingForStart:
            state = .running(nextPing: now + configuration.pingInterval, answered: now)
            return true
        // It was on its way when the stop was asked for.
        case .stopping: return true
        case .waitingForHello, .running, .leaving, .killed, .over: return false
        }
    }

    mutating func pongReceived(now: Duration) {
        if case .running(let nextPing, _) = state { state = .running(nextPing: nextPing, answered: now) }
    }

    mutating func stop(now: Duration) -> StopAction {
        switch state {
        case .waitingForHello:
            state = .killed(isCrash: false)
            return .kill
        case .waitingForStart, .running:
            state = .stopping(deadline: now + configuration.stopDeadline)
            return .sendStop
        case .stopping, .leaving, .killed, .over: return .none
        }
    }

    /// The module has stopped, asked or not: the socket is closed.
    mutating func stopped(now: Duration) {
        switch state {
        case .waitingForHello, .waitingForStart, .running, .stopping:
            state = .leaving(deadline: now + configuration.exitDeadline, isTerminated: false)
        case .leaving, .killed, .over: break
        }
    }

    /// It is killed. True when that is a crash: it broke the protocol, or hangs, and nobody wanted its end.
    mutating func killed() -> Bool {
        switch state {
        case .waitingForHello, .waitingForStart, .running:
            state = .killed(isCrash: true)
            return true
        case .stopping, .leaving:
            state = .killed(isCrash: false)
            return false
        case .killed, .over: return false
        }
    }

    /// The process is no more. True when nobody wanted that, and it has not been counted.
    mutating func exited() -> Bool {
        defer { state = .over }
        switch state {
        case .waitingForHello, .waitingForStart, .running: return true
        case .stopping, .leaving, .killed, .over: return false
        }
    }

    mutating func deadlineReached(now: Duration) -> DeadlineAction {
        switch state {
        case .waitingForHello(let deadline) where deadline <= now:
            return .kill("said nothing within \(Self.text(configuration.helloDeadline)) s")
        case .waitingForStart(let deadline) where deadline <= now:
            return .kill("did not start within \(Self.text(configuration.startDeadline)) s")
        case .running(_, let answered) where answered + configuration.pingDeadline <= now:
            return .kill("hangs: it has not answered for \(Self.text(configuration.pingDeadline)) s")
        case .running(let nextPing, let answered) where nextPing <= now:
            state = .running(nextPing: now + configuration.pingInterval, answered: answered)
            return .ping
        case .stopping(let deadline) where deadline <= now:
            return .kill("does not stop")
        case .leaving(let deadline, false) where deadline <= now:
            state = .leaving(deadline: now + configuration.exitDeadline, isTerminated: true)
            return .terminate
        case .leaving(let deadline, true) where deadline <= now:
            return .kill("does not end")
        case .waitingForHello, .waitingForStart, .running, .stopping, .leaving, .killed, .over:
            return .none
        }
    }

    private static func text(_ duration: Duration) -> String { "\(duration.components.seconds)" }
}
