// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What the machines inside a link order, as the link's own actions.
extension LinkStateMachine {
    mutating func frameReceived(_ frame: L2CAPFrame, _ now: Duration) -> [Action] {
        switch frame.channel {
        case L2CAPFrame.attributeChannel: follow(bearer.packetReceived(frame.payload, now: now), now)
        case L2CAPFrame.signallingChannel: follow(signalling.frameReceived(frame.payload), now)
        case L2CAPFrame.securityChannel: follow(security.packetReceived(frame.payload, now: now), now)
        // Channels that this host never opened (Core Specification 5.4, Vol 3 Part A §2.1: frames for them are
        // ignored).
        default: []
        }
    }

    mutating func follow(_ action: ATTBearerStateMachine<Waiter>.Action, _ now: Duration) -> [Action] {
        var actions: [Action] = action.packets.map { .sendFrame(Self.attributeFrame($0)) }
        actions += action.finished.map { .finish($0.waiter, $0.result) }
        if let delivery = action.delivery { actions.append(.deliver(delivery)) }
        if let event = action.event { actions.append(.serve(event)) }
        if action.closesLink { actions += disconnectRequested(now: now) }
        return actions
    }

    mutating func follow(_ action: SignallingStateMachine.Action, _ now: Duration) -> [Action] {
        switch action {
        case .nothing: []
        case .send(let frame): [.sendFrame(frame)]
        case .consider(let wanted, let identifier): consider(wanted, identifier, now)
        case .finishUpdate(let isAccepted): [.finishParameterRequest(isAccepted: isAccepted)]
        }
    }

    /// The peer asks for parameters by signalling; the answer goes before the order.
    private mutating func consider(_ wanted: ConnectionParameters, _ identifier: UInt8, _ now: Duration) -> [Action] {
        let verdict = tuning.parametersRequested(wanted, current: procedures.parameters, now: now)
        let answer = Action.sendFrame(signalling.answer(toRequest: identifier, isGranted: verdict != .refuse))
        guard case .grant(let granted) = verdict else { return [answer] }
        return [answer] + order(granted, now)
    }

    /// The peer asks for parameters by its link layer.
    mutating func answerLinkLayer(_ wanted: ConnectionParameters, _ now: Duration) -> [Action] {
        let granted = tuning.linkLayerRequested(wanted, now: now)
        return [
            .sendCommand(
                granted.map { .connectionParameterReply(connection.handle, $0) }
                    ?? .connectionParameterNegativeReply(connection.handle))
        ]
    }

    /// Runs the link with these, if there are any.
    mutating func order(_ parameters: ConnectionParameters?, _ now: Duration) -> [Action] {
        guard let parameters else { return [] }
        return follow(procedures.procedureRequested(.updateParameters(parameters), now: now), now)
    }

    mutating func follow(_ orders: [SecurityStateMachine.Action], _ now: Duration) -> [Action] {
        var actions: [Action] = []
        for order in orders {
            switch order {
            case .send(let packet):
                actions.append(
                    .sendFrame(L2CAPFrame(channel: L2CAPFrame.securityChannel, payload: packet.bytes)))
            case .encrypt(let key):
                actions.append(
                    .sendCommand(
                        .enableEncryption(
                            connection.handle, key: key.key, random: key.random, diversifier: key.diversifier)))
            case .answerKeyRequest(let key):
                let reply: HCICommand =
                    key.map { .longTermKeyReply(connection.handle, key: $0.key) }
                    ?? .longTermKeyNegativeReply(connection.handle)
                actions.append(.sendCommand(reply))
            case .preparePairing: actions.append(.preparePairing)
            case .askForPasskey(let part): actions.append(.askForPasskey(part))
            case .secured(let protection):
                bearer.protectionChanged(protection)
                actions.append(.secured(protection))
            case .storeBond(let bond): actions.append(.storeBond(bond))
            case .forgetBond: actions.append(.forgetBond)
            case .fail(let failure): actions.append(.failSecurity(failure))
            case .closeLink: actions += disconnectRequested(reason: .authenticationFailure, now: now)
            }
        }
        return actions
    }

    mutating func follow(_ action: LinkProcedureStateMachine.Action, _ now: Duration) -> [Action] {
        var actions: [Action] = action.commands.map { .sendCommand($0) }
        actions += action.finished.map { .finishProcedure($0) }
        if let end = action.end { actions += self.end(end, now) }
        return actions
    }
}
