// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What may happen next on one link over a byte stream. Pure: the driver is the transport that opens the stream.
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
/// A generation counts attempts; facts about an older one are stale and change nothing. What the end of a stream means is
/// not decided here: that differs between a socket and a port.
public struct StreamLinkStateMachine: ~Copyable {
    public enum ConnectAction: Equatable {
        case startAttempt(generation: UInt64)
        case refuse
    }

    public enum SuccessAction: Equatable {
        case bringLinkUp
        /// Nobody wants the stream any more.
        case closeStream
    }

    public enum DisconnectAction: Equatable {
        case nothing
        /// Cancel the attempt and wait for its end.
        case cancelAttempt
        case closeLink
    }

    /// Why a link ends without being asked to.
    public enum Loss: Equatable {
        /// The stream ended, so long after it was opened.
        case ended(after: Duration)
        /// No written frame went to the kernel in time.
        case writeStalled
    }

    public enum LossAction: Equatable {
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
        /// Waits for the end.
        case up(UpState)
    }

    fileprivate struct UpState {
        var generation: UInt64
        var since: Duration
        var writesUnderWay = 0
        /// When the last write finished, or the first of those under way began.
        var waitingSince = Duration.zero
    }

    private let writeTimeout: Duration
    private var state: State = .idle
    private var lastGeneration: UInt64 = 0

    /// `writeTimeout`: how long written frames may wait without any of them going to the kernel.
    public init(writeTimeout: Duration) {
        self.writeTimeout = writeTimeout
    }

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? {
        switch state {
        case .idle: nil
        case .connecting: nil
        case .cancellingAttempt: nil
        case .up(let up): up.writesUnderWay == 0 ? nil : up.waitingSince + writeTimeout
        }
    }

    // MARK: Inputs

    public mutating func connectRequested() -> ConnectAction {
        let action = state.connectRequested(generation: lastGeneration + 1)
        if case .startAttempt(let generation) = action { lastGeneration = generation }
        return action
    }

    /// `isCancelled`: the caller of `connect` gave up meanwhile.
    public mutating func attemptSucceeded(generation: UInt64, isCancelled: Bool, now: Duration) -> SuccessAction {
        if isCancelled {
            state.attemptFailed(generation)
            return .closeStream
        }
        return state.attemptSucceeded(generation, now)
    }

    public mutating func attemptFailed(generation: UInt64) {
        state.attemptFailed(generation)
    }

    public mutating func disconnectRequested() -> DisconnectAction {
        state.disconnectRequested()
    }

    /// The stream ended, or failed.
    public mutating func linkEnded(generation: UInt64, now: Duration) -> LossAction {
        state.linkEnded(generation, now)
    }

    public mutating func writeStarted(generation: UInt64, now: Duration) {
        state.changeWrites(generation) { up in
            if up.writesUnderWay == 0 { up.waitingSince = now }
            up.writesUnderWay += 1
        }
    }

    public mutating func writeFinished(generation: UInt64, now: Duration) {
        state.changeWrites(generation) { up in
            up.writesUnderWay -= 1
            up.waitingSince = now
        }
    }

    /// Early calls change nothing.
    public mutating func deadlineReached(now: Duration) -> LossAction {
        guard let nextDeadline, nextDeadline <= now else { return .nothing }
        state = .idle
        return .closeLink(.writeStalled)
    }
}

extension StreamLinkStateMachine.State {
    mutating func connectRequested(generation: UInt64) -> StreamLinkStateMachine.ConnectAction {
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

    mutating func attemptSucceeded(_ generation: UInt64, _ now: Duration) -> StreamLinkStateMachine.SuccessAction {
        switch consume self {
        case .connecting(generation):
            self = .up(.init(generation: generation, since: now))
            return .bringLinkUp
        case .cancellingAttempt(generation):
            self = .idle
            return .closeStream
        case .idle:
            self = .idle
            return .closeStream
        case .connecting(let current):
            self = .connecting(generation: current)
            return .closeStream
        case .cancellingAttempt(let current):
            self = .cancellingAttempt(generation: current)
            return .closeStream
        case .up(let up):
            self = .up(up)
            return .closeStream
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

    mutating func disconnectRequested() -> StreamLinkStateMachine.DisconnectAction {
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

    mutating func linkEnded(_ generation: UInt64, _ now: Duration) -> StreamLinkStateMachine.LossAction {
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
            return .closeLink(.ended(after: now - up.since))
        case .up(let up):
            self = .up(up)
            return .nothing
        }
    }

    mutating func changeWrites(_ generation: UInt64, _ change: (inout StreamLinkStateMachine.UpState) -> Void) {
        switch consume self {
        case .idle: self = .idle
        case .connecting(let current): self = .connecting(generation: current)
        case .cancellingAttempt(let current): self = .cancellingAttempt(generation: current)
        case .up(var up):
            if up.generation == generation { change(&up) }
            self = .up(up)
        }
    }
}
