// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop

/// What may happen next on one serial link. Pure: the driver is ``SerialTransport``.
///
///              connectRequested              attemptSucceeded
///     ┌──────┐ ───────────────▶ ┌────────────┐ ─────────────▶ ┌────┐
///     │ idle │                  │ connecting │                │ up │
///     └──────┘ ◀─────────────── └─────┬──────┘                └──┬─┘
///       ▲  ▲     attemptFailed        │ disconnectRequested      │ disconnectRequested, linkEnded,
///       │  │                          ▼                          │ deadlineReached (write)
///       │  └──────────────── cancellingAttempt                   │
///       │     attemptFailed or late attemptSucceeded             │
///       └────────────────────────────────────────────────────────┘
///
/// A generation counts attempts; facts about an older one are stale and change nothing. What DTR and RTS are to be is the
/// business of the ``ControlLineStateMachine`` in it, which outlives the links. There is no connection to a serial port: that
/// it can be opened says nothing about a radio behind it (companion-protocol §1.1).
struct SerialLinkStateMachine: ~Copyable {
    struct Configuration: Sendable {
        /// How long written frames may wait without any of them going to the kernel.
        var writeTimeout: Duration
        var lines: ControlLineStateMachine.Configuration
        /// A port that hangs up this soon and is still there is broken rather than unplugged.
        var flapWindow: Duration = .seconds(10)
    }

    enum ConnectAction: Equatable {
        case startAttempt(generation: UInt64)
        case refuse
    }

    enum SuccessAction: Equatable {
        case bringLinkUp
        /// Nobody wants the port any more.
        case closePort
    }

    enum DisconnectAction: Equatable {
        case nothing
        /// Cancel the attempt and wait for its end.
        case cancelAttempt
        case closeLink
    }

    /// Why a link ends without being asked to.
    enum Loss: Equatable {
        /// The device went away.
        case unplugged
        /// The port hung up soon after it was opened, though its device is there.
        case hungUp
        /// The device takes no bytes.
        case writeStalled
    }

    enum LossAction: Equatable {
        case nothing
        case closeLink(Loss)
        case setControl(SerialControl)
    }

    fileprivate enum State {
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
    private var state = State.idle
    private var lastGeneration: UInt64 = 0
    private(set) var lines: ControlLineStateMachine

    init(_ configuration: Configuration) {
        self.configuration = configuration
        lines = ControlLineStateMachine(configuration.lines)
    }

    /// When ``deadlineReached(now:)`` is due.
    var nextDeadline: Duration? {
        guard case .up(let up) = state else { return nil }
        let write = up.writesUnderWay == 0 ? nil : up.waitingSince + configuration.writeTimeout
        return [write, lines.nextDeadline].compactMap { $0 }.min()
    }

    // MARK: Making and ending the link

    mutating func connectRequested() -> ConnectAction {
        switch state {
        case .idle:
            lastGeneration += 1
            state = .connecting(generation: lastGeneration)
            return .startAttempt(generation: lastGeneration)
        case .connecting, .cancellingAttempt, .up: return .refuse
        }
    }

    /// The attempt has found its port; `candidates` is what its board may want of DTR and RTS, most likely first.
    mutating func boardFound(_ candidates: [SerialControl]) {
        lines.boardFound(candidates)
    }

    /// `isCancelled`: the caller of `connect` gave up meanwhile.
    mutating func attemptSucceeded(generation: UInt64, isCancelled: Bool, now: Duration) -> SuccessAction {
        switch state {
        case .connecting(generation) where !isCancelled:
            state = .up(UpState(generation: generation, since: now))
            lines.linkOpened()
            return .bringLinkUp
        case .connecting(generation), .cancellingAttempt(generation):
            state = .idle
            return .closePort
        case .idle, .connecting, .cancellingAttempt, .up: return .closePort
        }
    }

    mutating func attemptFailed(generation: UInt64) {
        switch state {
        case .connecting(generation), .cancellingAttempt(generation): state = .idle
        case .idle, .connecting, .cancellingAttempt, .up: break
        }
    }

    mutating func disconnectRequested() -> DisconnectAction {
        switch state {
        case .idle: return .nothing
        case .connecting(let generation), .cancellingAttempt(let generation):
            state = .cancellingAttempt(generation: generation)
            return .cancelAttempt
        case .up:
            close()
            return .closeLink
        }
    }

    /// The port hung up or failed. `isPresent`: its device is still there.
    mutating func linkEnded(generation: UInt64, isPresent: Bool, now: Duration) -> LossAction {
        guard case .up(let up) = state, up.generation == generation else { return .nothing }
        let isFlapping = isPresent && now - up.since < configuration.flapWindow
        close()
        return .closeLink(isFlapping ? .hungUp : .unplugged)
    }

    private mutating func close() {
        state = .idle
        lines.linkClosed()
    }

    // MARK: On the link

    mutating func frameSent(generation: UInt64, now: Duration) {
        if isUp(generation) { lines.frameSent(now: now) }
    }

    mutating func frameReceived(generation: UInt64) {
        if isUp(generation) { lines.frameReceived() }
    }

    mutating func writeStarted(generation: UInt64, now: Duration) {
        guard case .up(var up) = state, up.generation == generation else { return }
        if up.writesUnderWay == 0 { up.waitingSince = now }
        up.writesUnderWay += 1
        state = .up(up)
    }

    mutating func writeFinished(generation: UInt64, now: Duration) {
        guard case .up(var up) = state, up.generation == generation else { return }
        up.writesUnderWay -= 1
        up.waitingSince = now
        state = .up(up)
    }

    /// Early calls change nothing.
    mutating func deadlineReached(now: Duration) -> LossAction {
        guard case .up(let up) = state else { return .nothing }
        if up.writesUnderWay > 0, up.waitingSince + configuration.writeTimeout <= now {
            close()
            return .closeLink(.writeStalled)
        }
        switch lines.deadlineReached(now: now) {
        case .nothing: return .nothing
        case .setControl(let control): return .setControl(control)
        }
    }

    private func isUp(_ generation: UInt64) -> Bool {
        if case .up(let up) = state { up.generation == generation } else { false }
    }
}
