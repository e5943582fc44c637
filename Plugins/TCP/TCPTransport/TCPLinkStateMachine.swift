// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What may happen next on one TCP link. Pure: the driver is ``TCPTransport``.
///
///              connectRequested              attemptSucceeded
///     ┌──────┐ ───────────────▶ ┌────────────┐ ─────────────▶ ┌────┐
///     │ idle │                  │ connecting │                │ up │
///     └──────┘ ◀─────────────── └─────┬──────┘                └──┬─┘
///       ▲  ▲     attemptFailed        │ disconnectRequested      │ disconnectRequested, linkEnded,
///       │  │                          ▼                          │ deadlineReached
///       │  └──────────────── cancellingAttempt                   │
///       │     attemptFailed or late attemptSucceeded             │
///       └────────────────────────────────────────────────────────┘
///
/// A generation counts attempts; facts about an older one are stale and change nothing. TCP itself is RFC 9293; that a
/// radio serves one client, the newest, and closes the others is companion-protocol §1.1.
struct TCPLinkStateMachine: ~Copyable {
    struct Configuration: Sendable {
        /// How long written frames may wait without any of them going to the kernel.
        var writeTimeout: Duration
        /// A close by the peer this soon after the connection was made looks like a radio that another host took.
        var contentionWindow: Duration = .seconds(10)
    }

    enum ConnectAction: Equatable {
        case startAttempt(generation: UInt64)
        case refuse
    }

    enum SuccessAction {
        case bringLinkUp
        /// Nobody wants the connection any more.
        case closeConnection
    }

    enum DisconnectAction {
        case nothing
        /// Cancel the attempt and wait for its end.
        case cancelAttempt
        case closeLink
    }

    /// Why a link ends without being asked to.
    enum Loss: Equatable {
        /// The peer closed or reset it.
        case closedByPeer(soonAfterConnect: Bool)
        /// The operating system gave it up.
        case failed
        /// No written frame went out in time.
        case writeStalled
    }

    enum LossAction: Equatable {
        case nothing
        case closeLink(Loss)
    }

    fileprivate enum State: ~Copyable {
        /// Waits for `connect`.
        case idle
        /// Waits for the attempt's result.
        case connecting(generation: UInt64)
        /// Waits for the cancelled attempt's end.
        case cancellingAttempt(generation: UInt64)
        /// Waits for frames, and for the end.
        case up(UpState)
    }

    fileprivate struct UpState {
        var generation: UInt64
        var since: Duration
        var writesUnderWay = 0
        /// When the last write finished, or the first of those under way began.
        var waitingSince = Duration.zero
    }

    private let configuration: Configuration
    private var state: State = .idle
    private var lastGeneration: UInt64 = 0

    init(_ configuration: Configuration) {
        self.configuration = configuration
    }

    /// When ``deadlineReached(now:)`` is due.
    var nextDeadline: Duration? {
        switch state {
        case .idle: nil
        case .connecting: nil
        case .cancellingAttempt: nil
        case .up(let up): up.writesUnderWay == 0 ? nil : up.waitingSince + configuration.writeTimeout
        }
    }

    // MARK: Inputs

    mutating func connectRequested() -> ConnectAction {
        let action = state.connectRequested(generation: lastGeneration + 1)
        if case .startAttempt(let generation) = action { lastGeneration = generation }
        return action
    }

    /// `isCancelled`: the caller of `connect` gave up meanwhile.
    mutating func attemptSucceeded(generation: UInt64, isCancelled: Bool, now: Duration) -> SuccessAction {
        if isCancelled {
            state.attemptFailed(generation)
            return .closeConnection
        }
        return state.attemptSucceeded(generation, now)
    }

    mutating func attemptFailed(generation: UInt64) {
        state.attemptFailed(generation)
    }

    mutating func disconnectRequested() -> DisconnectAction {
        state.disconnectRequested()
    }

    /// The connection ended at the transport level; `byPeer` tells an end or reset by the peer from a local failure.
    mutating func linkEnded(generation: UInt64, byPeer: Bool, now: Duration) -> LossAction {
        state.linkEnded(generation) { since in
            byPeer ? .closedByPeer(soonAfterConnect: now - since < configuration.contentionWindow) : .failed
        }
    }

    mutating func writeStarted(now: Duration) {
        state.writeStarted(now)
    }

    mutating func writeFinished(generation: UInt64, now: Duration) {
        state.writeFinished(generation, now)
    }

    /// Early calls change nothing.
    mutating func deadlineReached(now: Duration) -> LossAction {
        guard let nextDeadline, nextDeadline <= now else { return .nothing }
        state = .idle
        return .closeLink(.writeStalled)
    }
}

extension TCPLinkStateMachine.State {
    mutating func connectRequested(generation: UInt64) -> TCPLinkStateMachine.ConnectAction {
        switch consume self {
        case .idle:
            self = .connecting(generation: generation)
            return .startAttempt(generation: generation)
        case .connecting(let current):
            self = .connecting(generation: current)
            return .refuse
        case .cancellingAttempt(let current):
            self = .cancellingAttempt(generation: current)
            return .refuse
        case .up(let up):
            self = .up(up)
            return .refuse
        }
    }

    mutating func attemptSucceeded(_ generation: UInt64, _ now: Duration) -> TCPLinkStateMachine.SuccessAction {
        switch consume self {
        case .connecting(generation):
            self = .up(.init(generation: generation, since: now))
            return .bringLinkUp
        case .cancellingAttempt(generation):
            self = .idle
            return .closeConnection
        case .idle:
            self = .idle
            return .closeConnection
        case .connecting(let current):
            self = .connecting(generation: current)
            return .closeConnection
        case .cancellingAttempt(let current):
            self = .cancellingAttempt(generation: current)
            return .closeConnection
        case .up(let up):
            self = .up(up)
            return .closeConnection
        }
    }

    mutating func attemptFailed(_ generation: UInt64) {
        switch consume self {
        case .connecting(generation): self = .idle
        case .cancellingAttempt(generation): self = .idle
        case .idle: self = .idle
        case .connecting(let current): self = .connecting(generation: current)
        case .cancellingAttempt(let current): self = .cancellingAttempt(generation: current)
        case .up(let up): self = .up(up)
        }
    }

    mutating func disconnectRequested() -> TCPLinkStateMachine.DisconnectAction {
        switch consume self {
        case .idle:
            self = .idle
            return .nothing
        case .connecting(let generation):
            self = .cancellingAttempt(generation: generation)
            return .cancelAttempt
        case .cancellingAttempt(let generation):
            self = .cancellingAttempt(generation: generation)
            return .cancelAttempt
        case .up:
            self = .idle
            return .closeLink
        }
    }

    mutating func linkEnded(
        _ generation: UInt64, _ loss: (_ since: Duration) -> TCPLinkStateMachine.Loss
    ) -> TCPLinkStateMachine.LossAction {
        switch consume self {
        case .idle:
            self = .idle
            return .nothing
        case .connecting(let current):
            self = .connecting(generation: current)
            return .nothing
        case .cancellingAttempt(let current):
            self = .cancellingAttempt(generation: current)
            return .nothing
        case .up(let up) where up.generation == generation:
            self = .idle
            return .closeLink(loss(up.since))
        case .up(let up):
            self = .up(up)
            return .nothing
        }
    }

    mutating func writeStarted(_ now: Duration) {
        switch consume self {
        case .idle: self = .idle
        case .connecting(let current): self = .connecting(generation: current)
        case .cancellingAttempt(let current): self = .cancellingAttempt(generation: current)
        case .up(var up):
            if up.writesUnderWay == 0 { up.waitingSince = now }
            up.writesUnderWay += 1
            self = .up(up)
        }
    }

    mutating func writeFinished(_ generation: UInt64, _ now: Duration) {
        switch consume self {
        case .idle: self = .idle
        case .connecting(let current): self = .connecting(generation: current)
        case .cancellingAttempt(let current): self = .cancellingAttempt(generation: current)
        case .up(var up):
            if up.generation == generation {
                up.writesUnderWay -= 1
                up.waitingSince = now
            }
            self = .up(up)
        }
    }
}
