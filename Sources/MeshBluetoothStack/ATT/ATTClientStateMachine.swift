// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The client of one bearer: one request at a time, in the order they were asked for (Core Specification 5.4, Vol 3
/// Part F §3.3.2).
///
///     ┌──────┐ procedureRequested   ┌─────────┐
///     │ idle │ ───────────────────▶ │ waiting │ ──┐ response: the procedure's next request,
///     └──┬───┘ ◀─────────────────── └────┬────┘ ◀─┘ or the next procedure
///        │      nothing waits            │
///        │ bearerEnded                   │ no response in time, bearerEnded, too much nonsense
///        ▼                               ▼
///     ┌────────────────────────────────────┐
///     │ ended: every procedure fails       │
///     └────────────────────────────────────┘
///
/// A request that is not answered ends the bearer, for no other may be sent on it ever again (§3.3.3): after 30 s, as
/// the specification says, and after 5 s for writes, since the link is useless to its user by then. Indications are
/// confirmed at once. Notifications are taken in whatever length, and for whatever handle: some peers send more than
/// the MTU allows.
///
/// `Waiter` is whoever gets a procedure's result.
public struct ATTClientStateMachine<Waiter>: ~Copyable {
    public struct Configuration: Sendable {
        /// What the exchange offers; 517 lets a write carry the longest value.
        public var ownMTU = 517
        public var transactionTimeout: Duration = .seconds(30)
        public var writeTimeout: Duration = .seconds(5)
        /// How many procedures may wait.
        public var queueLimit = 64
        /// How many packets without meaning a peer may send.
        public var faultLimit = 16

        public init() {}
    }

    /// What to do.
    public struct Action {
        /// Send these, in this order.
        public var packets: [[UInt8]] = []
        public var finished: [(waiter: Waiter, result: Result<GATTResult, GATTFailure>)] = []
        /// A notification or indication came.
        public var delivery: Delivery?
        /// The link is of no use any more.
        public var closing: Closing?
    }

    /// A value that the server sent by itself.
    public struct Delivery: Sendable, Hashable {
        public var handle: UInt16
        public var value: [UInt8]
        public var isIndication: Bool
    }

    /// Why a link has to be closed.
    public enum Closing: Sendable, Hashable {
        /// The server did not answer a request.
        case requestTimedOut
        /// The server sent too much that has no meaning.
        case peerMisbehaved
    }

    private struct Transaction {
        var machine: GATTProcedureStateMachine
        var waiter: Waiter
        /// Of the request, as an error response names it.
        var opcode: UInt8
        var deadline: Duration
    }

    private enum State {
        case idle
        /// Waits for the response to the last request.
        case waiting(Transaction)
        case ended
    }

    private let configuration: Configuration
    private var state = State.idle
    private var queue: [(procedure: GATTProcedure, waiter: Waiter)] = []
    private var hasAskedForMTU = false
    private var faults = 0
    /// How many requests were sent: round trips.
    public private(set) var requestCount = 0
    /// What a packet may have: the lesser of both offers, 23 before the exchange (Vol 3 Part F §3.2.8).
    public private(set) var mtu = 23

    public init(_ configuration: Configuration = Configuration()) {
        precondition(configuration.ownMTU >= 23)
        self.configuration = configuration
    }

    /// The longest value that one write carries.
    public var maximumWriteLength: Int { min(mtu - 3, 512) }

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? {
        switch state {
        case .idle, .ended: nil
        case .waiting(let transaction): transaction.deadline
        }
    }

    // MARK: Inputs

    /// Carries a procedure out after those that wait.
    public mutating func procedureRequested(_ procedure: GATTProcedure, waiter: Waiter, now: Duration) -> Action {
        if case .ended = state { return Action(finished: [(waiter, .failure(.bearerEnded))]) }
        guard queue.count < configuration.queueLimit else {
            return Action(finished: [(waiter, .failure(.queueFull))])
        }
        queue.append((procedure, waiter))
        var action = Action()
        startNext(now, &action)
        return action
    }

    /// A command: sent at once, never answered (§3.4.5.3). Nil if the value is too long, or the bearer has ended.
    public func writeCommand(_ handle: UInt16, _ value: [UInt8]) -> [UInt8]? {
        if case .ended = state { return nil }
        return value.count <= maximumWriteLength ? ATTPacket.writeCommand(handle, value).bytes : nil
    }

    /// The server of this host answered the peer's own exchange (§3.4.2.2); both sides may begin one.
    public mutating func peerExchangedMTU(_ peerMTU: Int) {
        mtu = min(configuration.ownMTU, max(23, peerMTU))
    }

    /// A packet for which ``ATTOpcode/isForClient(_:)`` holds.
    public mutating func packetReceived(_ bytes: [UInt8], now: Duration) -> Action {
        if case .ended = state { return Action() }
        let packet: ATTPacket
        do {
            packet = try ATTPacket.decode(bytes.span.bytes)
        } catch {
            return malformed(bytes.first ?? 0, now)
        }
        switch packet {
        case .notification(let handle, let value):
            return Action(delivery: Delivery(handle: handle, value: value, isIndication: false))
        case .indication(let handle, let value):
            return Action(
                packets: [ATTPacket.confirmation.bytes],
                delivery: Delivery(handle: handle, value: value, isIndication: true))
        default: return responseReceived(packet, opcode: bytes[0], now)
        }
    }

    /// The link has ended.
    public mutating func bearerEnded() -> Action {
        end(.bearerEnded)
    }

    /// Early calls change nothing.
    public mutating func deadlineReached(now: Duration) -> Action {
        guard let nextDeadline, nextDeadline <= now else { return Action() }
        var action = end(.timedOut)
        action.closing = .requestTimedOut
        return action
    }

    // MARK: Steps

    private mutating func responseReceived(_ packet: ATTPacket, opcode: UInt8, _ now: Duration) -> Action {
        guard case .waiting(var transaction) = state else { return fault() }
        // A response's opcode is its request's and one more (§3.3.1); an error names the request.
        if case .errorResponse(let request, _, _) = packet {
            guard request == transaction.opcode else { return fault() }
        } else if opcode != transaction.opcode + 1 {
            return fault()
        }
        let step = transaction.machine.responseReceived(packet)
        return follow(step, &transaction, now)
    }

    /// A packet that cannot be read. If it was to be the response, there will be no other.
    private mutating func malformed(_ opcode: UInt8, _ now: Duration) -> Action {
        var action = fault()
        guard case .waiting(let transaction) = state, opcode == transaction.opcode + 1 else { return action }
        state = .idle
        action.finished.append((transaction.waiter, .failure(.meaninglessAnswer)))
        startNext(now, &action)
        return action
    }

    private mutating func follow(
        _ step: GATTProcedureStateMachine.Action, _ transaction: inout Transaction, _ now: Duration
    ) -> Action {
        var action = Action()
        switch step {
        case .send(let packet): send(packet, transaction.machine, transaction.waiter, now, &action)
        case .finish(let result):
            state = .idle
            action.finished.append((transaction.waiter, settled(result)))
            startNext(now, &action)
        }
        return action
    }

    private mutating func settled(_ result: Result<GATTResult, GATTFailure>) -> Result<GATTResult, GATTFailure> {
        guard case .success(.mtu(let peer)) = result else { return result }
        peerExchangedMTU(peer)
        return .success(.mtu(mtu))
    }

    private mutating func startNext(_ now: Duration, _ action: inout Action) {
        while case .idle = state, !queue.isEmpty {
            let (procedure, waiter) = queue.removeFirst()
            if procedure == .exchangeMTU {
                // A client asks once (§3.4.2.1).
                if hasAskedForMTU {
                    action.finished.append((waiter, .success(.mtu(mtu))))
                    continue
                }
                hasAskedForMTU = true
            }
            var machine = GATTProcedureStateMachine(procedure, mtu: mtu)
            switch machine.start(ownMTU: configuration.ownMTU) {
            case .send(let packet): send(packet, machine, waiter, now, &action)
            case .finish(let result): action.finished.append((waiter, result))
            }
        }
    }

    private mutating func send(
        _ packet: ATTPacket, _ machine: GATTProcedureStateMachine, _ waiter: Waiter, _ now: Duration,
        _ action: inout Action
    ) {
        let bytes = packet.bytes
        let timeout =
            switch machine.procedure {
            case .write: configuration.writeTimeout
            case .exchangeMTU, .discoverServices, .discoverService, .discoverCharacteristics, .discoverDescriptors,
                .read, .readByType:
                configuration.transactionTimeout
            }
        state = .waiting(Transaction(machine: machine, waiter: waiter, opcode: bytes[0], deadline: now + timeout))
        requestCount += 1
        action.packets.append(bytes)
    }

    private mutating func fault() -> Action {
        faults += 1
        guard faults > configuration.faultLimit else { return Action() }
        var action = end(.meaninglessAnswer)
        action.closing = .peerMisbehaved
        return action
    }

    private mutating func end(_ failure: GATTFailure) -> Action {
        var action = Action()
        if case .waiting(let transaction) = state { action.finished.append((transaction.waiter, .failure(failure))) }
        state = .ended
        action.finished += queue.map { ($0.waiter, .failure(.bearerEnded)) }
        queue.removeAll()
        return action
    }
}
