// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// One link from Connection Complete to its end, with everything that belongs to it: its link-layer procedures,
/// signalling, security, and the attribute bearer. A new link is a new machine, so nothing of an old one can be taken
/// for something of the new one (R28).
///
///     pieces ──▶ reassembly ─┬─ channel 4 ─▶ ATTBearerStateMachine ───┐
///                            ├─ channel 5 ─▶ SignallingStateMachine ──┤
///                            └─ channel 6 ─▶ SecurityStateMachine ────┼──▶ actions, in order
///     events, command outcomes ────────────▶ LinkProcedureStateMachine┘ ◀─ LinkTuningStateMachine says which
///
///     ┌──────┐  disconnectRequested, or a child gives the link up   ┌─────────┐  Disconnection Complete   ┌───────┐
///     │ open │ ───────────────────────────────────────────────────▶ │ closing │ ────────────────────────▶ │ ended │
///     └──┬───┘                                                      └─────────┘                           └───▲───┘
///        └──────────────── Disconnection Complete, controllerLost ────────────────────────────────────────────┘
///
/// What the driver does around it: it gives each link its events and pieces (``InboundOrderStateMachine``), sends
/// frames through ``ACLTransmitStateMachine`` and commands through ``HCICommandFlowStateMachine``, keeps one timer for
/// ``nextDeadline``, and drops the machine after ``Action/ended(_:)``, behind which no action comes.
public struct LinkStateMachine<Waiter>: ~Copyable {
    public struct Configuration: Sendable {
        public var client = ATTClientStateMachine<Waiter>.Configuration()
        public var procedures = LinkProcedureStateMachine.Configuration()
        public var tuning = LinkTuningStateMachine.Configuration()
        public var security: SecurityStateMachine.Configuration
        /// What this host serves.
        public var database = AttributeDatabase()
        /// What this client had asked for when the bond was last used.
        public var subscriptions: [UInt16: UInt16] = [:]

        public init(security: SecurityStateMachine.Configuration) {
            self.security = security
        }
    }

    public enum Action {
        case sendFrame(L2CAPFrame)
        /// Its outcome goes to ``commandFinished(_:_:now:)``.
        case sendCommand(HCICommand)
        case finish(Waiter, Result<GATTResult, GATTFailure>)
        /// A notification or indication of the peer's server.
        case deliver(ATTClientStateMachine<Waiter>.Delivery)
        /// The peer's client did something at this host's server.
        case serve(ATTServerStateMachine.Event)
        /// A link-layer procedure is over; none of them has to succeed.
        case finishProcedure(LinkProcedureStateMachine.Outcome)
        /// The peripheral's request for parameters was answered.
        case finishParameterRequest(isAccepted: Bool)
        /// Of ``SecurityStateMachine``; those that send something are done here.
        case preparePairing
        case askForPasskey(PairingMethod.OwnPart)
        case secured(AttributeDatabase.Protection)
        case storeBond(Bond)
        case forgetBond
        case failSecurity(PairingFailure)
        /// Nothing comes after it.
        case ended(LinkProcedureStateMachine.End)
    }

    public let connection: ConnectionComplete
    var reassembler = ACLReassembler()
    var bearer: ATTBearerStateMachine<Waiter>
    var signalling: SignallingStateMachine
    var security: SecurityStateMachine
    var procedures: LinkProcedureStateMachine
    var tuning: LinkTuningStateMachine
    private var hasEnded = false

    public init(_ connection: ConnectionComplete, configuration: Configuration) {
        self.connection = connection
        bearer = ATTBearerStateMachine(
            client: configuration.client,
            server: ATTServerStateMachine(configuration.database, subscriptions: configuration.subscriptions))
        signalling = SignallingStateMachine(role: connection.role)
        security = SecurityStateMachine(configuration.security)
        procedures = LinkProcedureStateMachine(connection, configuration: configuration.procedures)
        tuning = LinkTuningStateMachine(role: connection.role, configuration: configuration.tuning)
    }

    // MARK: Facts

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? {
        if hasEnded { return nil }
        return bearer.nextDeadline.orEarlier(signalling.nextDeadline).orEarlier(security.nextDeadline)
            .orEarlier(procedures.nextDeadline).orEarlier(tuning.nextDeadline)
    }

    public var mtu: Int { bearer.mtu }
    /// The longest value that one write or notification carries.
    public var maximumWriteLength: Int { bearer.maximumWriteLength }
    public var protection: AttributeDatabase.Protection { security.protection }
    /// What the link runs with.
    public var parameters: HCIEvent.CurrentParameters { procedures.parameters }
    public var dataLength: DataLength { procedures.dataLength }
    /// 1: 1M, 2: 2M, 3: coded.
    public var transmitPHY: UInt8 { procedures.transmitPHY }
    public var remoteFeatures: LEFeatures? { procedures.remoteFeatures }
    /// Round trips of attributes so far.
    public var attributeRequests: Int { bearer.requestCount }
    /// Requests for parameters that were not granted.
    public var parameterRefusals: UInt64 { tuning.refusals }
    /// What the peer's client has asked for, to be kept with its bond.
    public var subscriptions: [UInt16: UInt16] { bearer.subscriptions }

    // MARK: From the controller

    /// Whether ``pieceReceived(_:_:now:)`` would do nothing with a ``WholeNotification`` but deliver it: no piece waits for
    /// its rest, and the bearer lives. It changes with inputs only.
    public var takesWholeNotifications: Bool { !hasEnded && reassembler.isIdle && bearer.isOpen }

    /// A piece of the link's data came.
    public mutating func pieceReceived(_ boundary: ACLPacket.Boundary, _ payload: [UInt8], now: Duration) -> [Action] {
        if hasEnded { return [] }
        switch reassembler.pieceReceived(boundary, payload) {
        case .incomplete: return []
        case .frame(let frame): return frameReceived(frame, now)
        case .dropped: return reassembler.takeWholeFrame().map { frameReceived($0, now) } ?? []
        }
    }

    /// An event of this link came.
    public mutating func eventReceived(_ event: HCIEvent, now: Duration) -> [Action] {
        if hasEnded { return [] }
        switch event {
        case .encryptionChange(let status, connection.handle, let isEncrypted):
            return follow(security.encryptionChanged(status, isEncrypted: isEncrypted, now: now), now)
        case .encryptionKeyRefreshed(let status, connection.handle):
            return follow(security.encryptionChanged(status, isEncrypted: status == .success, now: now), now)
        case .longTermKeyRequested(connection.handle, let random, let diversifier):
            return follow(security.keyRequested(random: random, diversifier: diversifier, now: now), now)
        case .parametersRequested(connection.handle, let wanted): return answerLinkLayer(wanted, now)
        default: return follow(procedures.eventReceived(event, now: now), now)
        }
    }

    /// A command of this link was answered.
    public mutating func commandFinished(_ opcode: HCIOpcode, _ outcome: HCICommandOutcome, now: Duration) -> [Action] {
        if hasEnded { return [] }
        // No event follows a refusal.
        if opcode == .enableEncryption, case .refused(let status) = outcome {
            return follow(security.encryptionChanged(status, isEncrypted: false, now: now), now)
        }
        return follow(procedures.commandFinished(opcode, outcome, now: now), now)
    }

    /// The controller was reset or is gone, and all its links with it.
    public mutating func controllerLost(now: Duration) -> [Action] {
        hasEnded ? [] : end(.disconnected(.connectionTimeout), now)
    }

    /// Early calls change nothing.
    public mutating func deadlineReached(now: Duration) -> [Action] {
        if hasEnded { return [] }
        var actions = follow(bearer.deadlineReached(now: now), now)
        actions += follow(signalling.deadlineReached(now: now), now)
        actions += follow(security.deadlineReached(now: now), now)
        actions += order(tuning.deadlineReached(now: now), now)
        return actions + follow(procedures.deadlineReached(now: now), now)
    }

    // MARK: From the host

    /// Carries a procedure out at the peer's server.
    public mutating func procedureRequested(_ procedure: GATTProcedure, waiter: Waiter, now: Duration) -> [Action] {
        follow(bearer.procedureRequested(procedure, waiter: waiter, now: now), now)
    }

    /// The frame of a write without an answer; nil if the value is too long, or the link has ended.
    public func writeCommand(_ handle: UInt16, _ value: [UInt8]) -> L2CAPFrame? {
        bearer.writeCommand(handle, value).map(Self.attributeFrame)
    }

    /// The frame of a notification; nil if the peer does not want it, or the value is too long.
    public func notification(_ handle: UInt16, _ value: [UInt8]) -> L2CAPFrame? {
        bearer.notification(handle, value).map(Self.attributeFrame)
    }

    /// The frame of an indication; nil if the peer does not want it, has not confirmed the last, or the value is too
    /// long.
    public mutating func indicationRequested(_ handle: UInt16, _ value: [UInt8], now: Duration) -> L2CAPFrame? {
        bearer.indicationRequested(handle, value, now: now).map(Self.attributeFrame)
    }

    /// What a read of an own value gives from here on.
    public mutating func valueChanged(_ handle: UInt16, _ value: [UInt8]) {
        bearer.valueChanged(handle, value)
    }

    /// The link has to be secure.
    public mutating func secureRequested(now: Duration) -> [Action] {
        follow(security.secureRequested(), now)
    }

    /// What ``Action/preparePairing`` asked for.
    public mutating func pairingPrepared(_ machine: consuming PairingStateMachine, now: Duration) -> [Action] {
        follow(security.pairingPrepared(machine, now: now), now)
    }

    /// What ``Action/askForPasskey(_:)`` asked for; nil: there is none.
    public mutating func passkeyEntered(_ passkey: UInt32?, now: Duration) -> [Action] {
        follow(security.passkeyEntered(passkey, now: now), now)
    }

    /// A pairing has failed: the peer may not begin another before (``PairingAttemptPolicy``).
    public mutating func pairingBlocked(until: Duration?) {
        security.pairingBlocked(until: until)
    }

    /// The link is to be made fast, as far as both sides can. To be called when its encryption is under way no more: one
    /// procedure at a time.
    public mutating func setUpBegan(now: Duration) -> [Action] {
        if hasEnded { return [] }
        var actions: [Action] = []
        for procedure in tuning.linkOpened() {
            actions += follow(procedures.procedureRequested(procedure, now: now), now)
        }
        return actions
    }

    /// The link is in use from here on, and need not be fast any more.
    public mutating func setUpFinished(now: Duration) -> [Action] {
        hasEnded ? [] : order(tuning.setUpFinished(), now)
    }

    /// Runs a link-layer procedure. A peripheral's wish for parameters goes to the central, which may refuse; a second
    /// one, while the first is not answered, is not taken.
    public mutating func linkProcedureRequested(_ procedure: LinkProcedure, now: Duration) -> [Action] {
        if !hasEnded, case .updateParameters(let parameters) = procedure, connection.role == .peripheral {
            return switch signalling.updateRequested(parameters, now: now) {
            case .send(let frame): [.sendFrame(frame)]
            case .refuse: [.finishParameterRequest(isAccepted: false)]
            }
        }
        return follow(procedures.procedureRequested(procedure, now: now), now)
    }

    /// Ends the link.
    public mutating func disconnectRequested(reason: HCIStatus = .remoteUserTerminated, now: Duration) -> [Action] {
        follow(procedures.disconnectRequested(reason: reason, now: now), now)
    }

    // MARK: Ends

    /// Whatever waits fails, and the last action says so.
    mutating func end(_ end: LinkProcedureStateMachine.End, _ now: Duration) -> [Action] {
        hasEnded = true
        var actions = follow(bearer.bearerEnded(), now)
        actions += follow(signalling.linkEnded(), now)
        actions += follow(security.linkEnded(), now)
        return actions + [.ended(end)]
    }

    static func attributeFrame(_ packet: [UInt8]) -> L2CAPFrame {
        L2CAPFrame(channel: L2CAPFrame.attributeChannel, payload: packet)
    }
}
