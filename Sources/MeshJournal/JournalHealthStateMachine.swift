// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Whether the journal takes what it is given, and when it is tried again though nobody asks for it.
///
///               failed                wrote                 deadlineReached
///     working ─────────▶ failing ─────────────▶ proving ─────────────────────▶ working
///                         │   ▲                    │
///          deadlineReached└───┘◀───── failed ──────┘
///
/// - `working` waits for nothing.
/// - `failing` waits for a write that succeeds: any call's, or one of its own at each deadline, rarer and rarer.
/// - `proving` waits for whether that was all: on a disk that is full there is often room for a little and not for a message,
///   and nobody is helped by hearing of it again and again.
///
/// A failure soon after all that goes on with the delay that it had.
struct JournalHealthStateMachine: ~Copyable {
    static let firstDelay = Duration.seconds(1)
    static let longestDelay = Duration.seconds(60)
    /// How long nothing may fail until it counts as working.
    static let provingTime = Duration.seconds(5)
    /// So long after that a failure is a new one.
    static let calm = Duration.seconds(120)

    /// What a failure means.
    enum FailureAction: Sendable, Hashable {
        /// Tell of it.
        case tell
        /// It is known.
        case none
    }

    /// What a success means.
    enum WriteAction: Sendable, Hashable {
        /// Have those who have something to store try it now.
        case haveOthersTry
        /// It is as it was.
        case none
    }

    /// What a deadline means.
    enum DeadlineAction: Sendable, Hashable {
        /// Write something, and call ``failed(now:)`` or ``wrote(now:)``.
        case tryWriting
        /// Tell that it works.
        case tell
        /// It was early or repeated.
        case none
    }

    fileprivate enum State: ~Copyable {
        /// `since`: when it last began to work again, and what the delay was then.
        case working(since: Duration?, delay: Duration)
        case failing(delay: Duration, until: Duration)
        case proving(delay: Duration, until: Duration)
    }

    private var state = State.working(since: nil, delay: Self.firstDelay)

    /// When ``deadlineReached(now:)`` wants to be called.
    var nextDeadline: Duration? {
        switch state {
        case .working: nil
        case .failing(_, let until): until
        case .proving(_, let until): until
        }
    }

    // MARK: Inputs

    /// A call could not read or write the file.
    mutating func failed(now: Duration) -> FailureAction { state.failed(now: now) }

    /// A call has written to the file.
    mutating func wrote(now: Duration) -> WriteAction { state.wrote(now: now) }

    /// Time has passed.
    mutating func deadlineReached(now: Duration) -> DeadlineAction { state.deadlineReached(now: now) }
}

extension JournalHealthStateMachine.State {
    fileprivate mutating func failed(now: Duration) -> JournalHealthStateMachine.FailureAction {
        switch consume self {
        case .working(let since, let lastDelay):
            let isNew = since.map { now - $0 >= JournalHealthStateMachine.calm } ?? true
            let delay = isNew ? JournalHealthStateMachine.firstDelay : lastDelay
            self = .failing(delay: delay, until: now + delay)
            return .tell
        case .failing(let delay, let until):
            self = .failing(delay: delay, until: until)
            return .none
        case .proving(let delay, _):
            self = .failing(delay: delay, until: now + delay)
            return .none
        }
    }

    fileprivate mutating func wrote(now: Duration) -> JournalHealthStateMachine.WriteAction {
        switch consume self {
        case .working(let since, let delay):
            self = .working(since: since, delay: delay)
            return .none
        case .failing(let delay, _):
            self = .proving(delay: delay, until: now + JournalHealthStateMachine.provingTime)
            return .haveOthersTry
        case .proving(let delay, let until):
            self = .proving(delay: delay, until: until)
            return .none
        }
    }

    fileprivate mutating func deadlineReached(now: Duration) -> JournalHealthStateMachine.DeadlineAction {
        switch consume self {
        case .working(let since, let delay):
            self = .working(since: since, delay: delay)
            return .none
        case .failing(let delay, let until):
            guard now >= until else {
                self = .failing(delay: delay, until: until)
                return .none
            }
            let next = min(delay * 2, JournalHealthStateMachine.longestDelay)
            self = .failing(delay: next, until: now + next)
            return .tryWriting
        case .proving(let delay, let until):
            guard now >= until else {
                self = .proving(delay: delay, until: until)
                return .none
            }
            self = .working(since: now, delay: delay)
            return .tell
        }
    }
}
