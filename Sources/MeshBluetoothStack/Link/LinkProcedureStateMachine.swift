// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What a link layer is asked to do.
public enum LinkProcedure: Sendable, Hashable {
    case readRemoteFeatures
    case setDataLength(DataLength)
    case setPHY(PHYSet)
    case updateParameters(ConnectionParameters)
}

/// One link's own procedures, one at a time, and its end (Core Specification 5.4, Vol 6 Part B §5.1, §5.3).
///
///     ┌──────┐ requested  ┌───────────┐ status ┌─────────┐ event
///     │ idle │ ─────────▶ │ commanded │ ─────▶ │ running │ ──────▶ the next, or idle
///     └──────┘            └─────┬─────┘        └────┬────┘
///                               │ collision, busy   │ collision
///                               ▼                   ▼
///                         ┌─────────────────────────────┐ 100 ms: command again, three times
///                         │           pausing           │
///                         └─────────────────────────────┘
///     any ── disconnectRequested ──▶ closing ── Disconnection Complete ──▶ ended
///
/// A link layer can run one procedure that both sides take part in, and two at once collide (0x23, 0x2A, 0x3A), so they
/// are queued here. None of them has to succeed: a peer may lack the feature, and the link goes on as it is. Which are
/// run, and when, is ``LinkTuningStateMachine``'s to say.
public struct LinkProcedureStateMachine: ~Copyable, Sendable {
    public struct Configuration: Sendable {
        /// How long one procedure may take. The link layer's own limit is 40 s, and then the link is lost (§5.2).
        public var procedureTimeout: Duration = .seconds(5)
        public var collisionPause: Duration = .milliseconds(100)
        public var collisionRetries = 3
        /// How much longer than the supervision timeout the end of the link may take: a controller whose peer is out of
        /// reach tells the end only then (Vol 6 Part B §4.5.12).
        public var closeMargin: Duration = .seconds(2)
        /// How many procedures may wait.
        public var queueLimit = 16

        public init() {}
    }

    /// What to do.
    public struct Action: Sendable, Hashable {
        /// Send these; their outcomes go to ``commandFinished(_:_:now:)``.
        public var commands: [HCICommand] = []
        public var finished: [Outcome] = []
        public var end: End?
    }

    /// How a procedure ended.
    public struct Outcome: Sendable, Hashable {
        public var procedure: LinkProcedure
        public var status: HCIStatus
    }

    /// How a link ended.
    public enum End: Sendable, Hashable {
        /// For this reason.
        case disconnected(HCIStatus)
        /// The controller does not tell; it has to be reset.
        case unanswered
    }

    private struct Running: Sendable {
        var procedure: LinkProcedure
        var retries: Int
        var deadline: Duration
    }

    private enum State: Sendable {
        case idle
        /// Waits for the command's answer.
        case commanded(Running)
        /// Waits for the event.
        case running(Running)
        /// Waits until the command may be sent again.
        case pausing(Running)
        /// Waits for Disconnection Complete.
        case closing(deadline: Duration)
        case ended
    }

    public let handle: ConnectionHandle
    private let configuration: Configuration
    private var state = State.idle
    private var queue: [LinkProcedure] = []
    /// What the peer can do; nil until it was asked.
    public private(set) var remoteFeatures: LEFeatures?
    public private(set) var parameters: HCIEvent.CurrentParameters
    /// What one packet to the peer carries.
    public private(set) var dataLength = DataLength.minimum
    /// 1: 1M, 2: 2M, 3: coded.
    public private(set) var transmitPHY: UInt8 = 1

    public init(_ link: ConnectionComplete, configuration: Configuration = Configuration()) {
        handle = link.handle
        parameters = link.parameters
        self.configuration = configuration
    }

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? {
        switch state {
        case .idle, .ended: nil
        case .commanded(let running), .running(let running), .pausing(let running): running.deadline
        case .closing(let deadline): deadline
        }
    }

    // MARK: Inputs

    /// Runs a procedure after those that wait. New parameters take the place of others that wait, which are over with
    /// Command Disallowed: a peer can ask for some as often as it likes.
    public mutating func procedureRequested(_ procedure: LinkProcedure, now: Duration) -> Action {
        switch state {
        case .closing, .ended: return Action(finished: [Outcome(procedure: procedure, status: .unknownConnection)])
        case .idle, .commanded, .running, .pausing: break
        }
        var action = Action()
        if case .updateParameters = procedure, let index = queue.firstIndex(where: Self.isUpdate) {
            action.finished.append(Outcome(procedure: queue[index], status: .commandDisallowed))
            queue[index] = procedure
        } else if queue.count < configuration.queueLimit {
            queue.append(procedure)
        } else {
            action.finished.append(Outcome(procedure: procedure, status: .memoryExceeded))
        }
        startNext(now, &action)
        return action
    }

    /// Ends the link.
    public mutating func disconnectRequested(reason: HCIStatus = .remoteUserTerminated, now: Duration) -> Action {
        switch state {
        case .closing, .ended: return Action()
        case .idle, .commanded, .running, .pausing: break
        }
        let deadline = now + longestSilence + configuration.closeMargin
        let finished = failAll(.localHostTerminated)
        state = .closing(deadline: deadline)
        return Action(commands: [.disconnect(handle, reason: reason)], finished: finished)
    }

    /// A command of this machine was answered.
    public mutating func commandFinished(_ opcode: HCIOpcode, _ outcome: HCICommandOutcome, now: Duration) -> Action {
        switch state {
        case .commanded(let running) where command(running.procedure).opcode == opcode:
            return answered(running, outcome, now)
        case .closing where opcode == .disconnect:
            // The link has ended already, and its event was lost or came before the command.
            guard outcome == .refused(.unknownConnection) else { return Action() }
            return end(.disconnected(.localHostTerminated))
        case .idle, .commanded, .running, .pausing, .closing, .ended: return Action()
        }
    }

    /// An event of this link came; others are ignored.
    public mutating func eventReceived(_ event: HCIEvent, now: Duration) -> Action {
        if case .ended = state { return Action() }
        switch event {
        case .disconnectionComplete(.success, handle, let reason): return end(.disconnected(reason))
        case .remoteFeatures(let status, handle, let features):
            if status == .success { remoteFeatures = features }
            return completed(status, now) { if case .readRemoteFeatures = $0 { true } else { false } }
        case .connectionUpdated(let status, handle, let current):
            if status == .success { parameters = current }
            return completed(status, now) { Self.isUpdate($0) }
        case .phyUpdated(let status, handle, let transmit, _):
            if status == .success { transmitPHY = transmit }
            return completed(status, now) { if case .setPHY = $0 { true } else { false } }
        case .dataLengthChanged(handle, let transmit, _):
            dataLength = transmit
            return Action()
        default: return Action()
        }
    }

    /// Early calls change nothing.
    public mutating func deadlineReached(now: Duration) -> Action {
        guard let nextDeadline, nextDeadline <= now else { return Action() }
        var action = Action()
        switch state {
        case .idle, .ended: break
        case .commanded(let running), .running(let running):
            finish(running.procedure, .responseTimeout, now, &action)
        case .pausing(let running): send(running.procedure, retries: running.retries, now, &action)
        case .closing: return end(.unanswered)
        }
        return action
    }

    // MARK: Steps

    /// The supervision timeout, or the one that was ordered and may run already.
    private var longestSilence: Duration {
        var timeout = parameters.supervisionTimeout
        switch state {
        case .commanded(let running), .running(let running):
            if case .updateParameters(let ordered) = running.procedure {
                timeout = max(timeout, ordered.supervisionTimeout)
            }
        case .idle, .pausing, .closing, .ended: break
        }
        return .milliseconds(10 * Int64(timeout))
    }

    private static func isUpdate(_ procedure: LinkProcedure) -> Bool {
        if case .updateParameters = procedure { true } else { false }
    }

    private func command(_ procedure: LinkProcedure) -> HCICommand {
        switch procedure {
        case .readRemoteFeatures: .read(.readRemoteFeatures, of: handle)
        case .setDataLength(let length): .setDataLength(handle, length)
        case .setPHY(let phys): .setPHY(handle, phys)
        case .updateParameters(let parameters): .updateConnection(handle, parameters)
        }
    }

    private mutating func startNext(_ now: Duration, _ action: inout Action) {
        while case .idle = state, !queue.isEmpty {
            let procedure = queue.removeFirst()
            if isImpossible(procedure) {
                action.finished.append(Outcome(procedure: procedure, status: .unsupportedRemoteFeature))
            } else {
                send(procedure, retries: configuration.collisionRetries, now, &action)
            }
        }
    }

    /// The peer has said that it cannot do this.
    private func isImpossible(_ procedure: LinkProcedure) -> Bool {
        guard let remoteFeatures else { return false }
        switch procedure {
        case .setDataLength: return !remoteFeatures.contains(.dataLengthExtension)
        case .setPHY: return remoteFeatures.isDisjoint(with: [.twoMegabit, .coded])
        case .readRemoteFeatures, .updateParameters: return false
        }
    }

    private mutating func send(_ procedure: LinkProcedure, retries: Int, _ now: Duration, _ action: inout Action) {
        state = .commanded(
            Running(procedure: procedure, retries: retries, deadline: now + configuration.procedureTimeout))
        action.commands.append(command(procedure))
    }

    private mutating func answered(_ running: Running, _ outcome: HCICommandOutcome, _ now: Duration) -> Action {
        var action = Action()
        switch outcome {
        case .started: state = .running(running)
        // The data length has no event when it stays as it is, and Command Complete ends its command; any other
        // procedure that was answered so has an event still to come.
        case .completed:
            if case .setDataLength = running.procedure {
                finish(running.procedure, .success, now, &action)
            } else {
                state = .running(running)
            }
        case .refused(let status): settle(running, status, now, &action)
        case .lost: finish(running.procedure, .unspecified, now, &action)
        }
        return action
    }

    private mutating func completed(
        _ status: HCIStatus, _ now: Duration, _ isOwn: (LinkProcedure) -> Bool
    ) -> Action {
        var action = Action()
        switch state {
        case .commanded(let running), .running(let running):
            if isOwn(running.procedure) { settle(running, status, now, &action) }
        case .idle, .pausing, .closing, .ended: break
        }
        return action
    }

    private mutating func settle(_ running: Running, _ status: HCIStatus, _ now: Duration, _ action: inout Action) {
        let collisions: [HCIStatus] = [.procedureCollision, .differentTransactionCollision, .controllerBusy]
        guard collisions.contains(status), running.retries > 0 else {
            finish(running.procedure, status, now, &action)
            return
        }
        state = .pausing(
            Running(
                procedure: running.procedure, retries: running.retries - 1,
                deadline: now + configuration.collisionPause))
    }

    private mutating func finish(
        _ procedure: LinkProcedure, _ status: HCIStatus, _ now: Duration, _ action: inout Action
    ) {
        state = .idle
        action.finished.append(Outcome(procedure: procedure, status: status))
        startNext(now, &action)
    }

    private mutating func failAll(_ status: HCIStatus) -> [Outcome] {
        var procedures = queue
        queue.removeAll()
        switch state {
        case .commanded(let running), .running(let running), .pausing(let running):
            procedures.insert(running.procedure, at: 0)
        case .idle, .closing, .ended: break
        }
        return procedures.map { Outcome(procedure: $0, status: status) }
    }

    private mutating func end(_ end: End) -> Action {
        let status: HCIStatus =
            switch end {
            case .disconnected(let reason): reason
            case .unanswered: .unspecified
            }
        let finished = failAll(status)
        state = .ended
        return Action(finished: finished, end: end)
    }
}
