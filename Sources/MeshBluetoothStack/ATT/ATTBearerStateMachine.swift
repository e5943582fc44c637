// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Both ends of one ATT bearer: the client that asks the peer and the server that answers it, with the one MTU that
/// they share (Core Specification 5.4, Vol 3 Part F §3.2.8, §3.4.2).
///
///                       ┌─ responses, notifications ─▶ client ─┐
///     packet received ──┤                                      ├──▶ packets to send, results, values, events
///                       └─ requests, commands ───────▶ server ─┘
///
/// Each side may begin the exchange of MTUs, and what either learns holds for both. Neither waits for the other: a
/// request of the peer is answered while an own one is under way.
public struct ATTBearerStateMachine<Waiter>: ~Copyable {
    /// What to do.
    public struct Action {
        /// Send these on channel 4, in this order.
        public var packets: [[UInt8]] = []
        public var finished: [(waiter: Waiter, result: Result<GATTResult, GATTFailure>)] = []
        /// The peer's server sent a value.
        public var delivery: ATTClientStateMachine<Waiter>.Delivery?
        /// The peer's client did something.
        public var event: ATTServerStateMachine.Event?
        /// The link is of no use any more.
        public var closesLink = false
    }

    private var client: ATTClientStateMachine<Waiter>
    private var server: ATTServerStateMachine

    public init(
        client: ATTClientStateMachine<Waiter>.Configuration = .init(), server: consuming ATTServerStateMachine
    ) {
        self.client = ATTClientStateMachine(client)
        self.server = server
    }

    /// What a packet may have.
    public var mtu: Int { client.mtu }
    /// The longest value that one write or notification carries.
    public var maximumWriteLength: Int { client.maximumWriteLength }
    /// How many requests the client has sent.
    public var requestCount: Int { client.requestCount }
    /// CCCDs that are not 0, to be kept with the bond.
    public var subscriptions: [UInt16: UInt16] { server.subscriptions }

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? {
        switch (client.nextDeadline, server.nextDeadline) {
        case (let one?, let other?): min(one, other)
        case (let one, let other): one ?? other
        }
    }

    // MARK: Inputs

    /// The payload of a frame on channel 4 came.
    public mutating func packetReceived(_ bytes: [UInt8], now: Duration) -> Action {
        guard let opcode = bytes.first else { return Action() }
        guard ATTOpcode.isForClient(opcode) else { return follow(server.packetReceived(bytes)) }
        let before = client.mtu
        let action = client.packetReceived(bytes, now: now)
        if client.mtu != before { server.clientExchangedMTU(client.mtu) }
        return follow(action)
    }

    /// Carries a procedure out at the peer's server.
    public mutating func procedureRequested(_ procedure: GATTProcedure, waiter: Waiter, now: Duration) -> Action {
        follow(client.procedureRequested(procedure, waiter: waiter, now: now))
    }

    /// A write that the peer's server does not answer; nil if the value is too long, or the bearer has ended.
    public func writeCommand(_ handle: UInt16, _ value: [UInt8]) -> [UInt8]? {
        client.writeCommand(handle, value)
    }

    /// A notification to the peer's client; nil if it does not want it, or the value is too long.
    public func notification(_ handle: UInt16, _ value: [UInt8]) -> [UInt8]? {
        server.notification(handle, value)
    }

    /// An indication to the peer's client; nil if it does not want it, has not confirmed the last, or the value is too
    /// long.
    public mutating func indicationRequested(_ handle: UInt16, _ value: [UInt8], now: Duration) -> [UInt8]? {
        server.indicationRequested(handle, value, now: now)
    }

    /// What a read of an own value gives from here on.
    public mutating func valueChanged(_ handle: UInt16, _ value: [UInt8]) {
        server.database.setValue(value, at: handle)
    }

    /// The link has become more secure.
    public mutating func protectionChanged(_ protection: AttributeDatabase.Protection) {
        server.protection = protection
    }

    /// The link has ended.
    public mutating func bearerEnded() -> Action {
        server.bearerEnded()
        return follow(client.bearerEnded())
    }

    /// Early calls change nothing.
    public mutating func deadlineReached(now: Duration) -> Action {
        var action = follow(client.deadlineReached(now: now))
        let other = follow(server.deadlineReached(now: now))
        action.event = other.event
        action.closesLink = action.closesLink || other.closesLink
        return action
    }

    // MARK: Steps

    private func follow(_ action: ATTClientStateMachine<Waiter>.Action) -> Action {
        Action(
            packets: action.packets, finished: action.finished, delivery: action.delivery,
            closesLink: action.closing != nil)
    }

    private mutating func follow(_ action: ATTServerStateMachine.Action) -> Action {
        var result = Action()
        if let response = action.response { result.packets = [response] }
        switch action.event {
        case .mtuExchanged(let peer):
            client.peerExchangedMTU(peer)
            server.clientExchangedMTU(client.mtu)
        case .closeLink: result.closesLink = true
        case .written, .subscriptionChanged, .indicationConfirmed, nil: result.event = action.event
        }
        return result
    }
}
