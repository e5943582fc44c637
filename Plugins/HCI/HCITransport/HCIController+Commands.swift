// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// Commands, and what their outcomes lead to.
extension HCIController {
    func send(_ command: HCICommand, _ waiter: CommandWaiter) {
        // The peer may encrypt at once, and its data overtake the event.
        if command.opcode == .enableEncryption, case .link(let link) = waiter { inbound.encryptionBegan(link.handle) }
        if command.opcode == .longTermKeyReply, case .link(let link) = waiter { inbound.encryptionBegan(link.handle) }
        perform(flow.commandRequested(command, waiter: waiter, now: loop.now), sent: command.opcode)
        armTimer()
    }

    /// `sent` is the command that led to it: a refusal at once has no other name.
    func perform(_ action: HCICommandFlowStateMachine<CommandWaiter>.Action, sent: HCIOpcode = .none) {
        write(.command, action.commands.map(\.packet))
        for (waiter, outcome) in action.finished { finish(waiter, sent, outcome) }
        switch action.change {
        case .becameReady?:
            var configuration = ControllerSetupStateMachine.Configuration(randomAddress: book.randomAddress)
            configuration.identities = book.identities
            setup = ControllerSetupStateMachine(configuration)
            perform(setup.start())
        case .beganReset(.opened)?: break
        case .beganReset(let cause)?:
            log(.notice, "the controller is reset", [("controller", "\(port)"), ("cause", "\(cause)")])
            resetCause = cause
            loseController()
        case .gaveUp?: endLine(HCIOutage.silent.error(port))
        case nil: break
        }
    }

    func finish(_ waiter: CommandWaiter, _ opcode: HCIOpcode, _ outcome: HCICommandOutcome) {
        switch waiter {
        case .setup: if let action = setup.commandFinished(outcome) { perform(action) }
        case .scan: if scan != nil { perform(scan!.commandFinished(opcode, outcome)) }
        case .creation: perform(creation.createAnswered(outcome, now: loop.now))
        case .cancellation: perform(creation.cancelAnswered(outcome))
        case .link(let link):
            let held = refusedEncryption(link.handle, opcode, outcome)
            link.assumeIsolated { $0.commandFinished(opcode, outcome) }
            deliver(held)
        case .nobody: break
        }
    }

    /// What was held back for an encryption that the controller does not begin: no event follows a refusal.
    private func refusedEncryption(
        _ handle: ConnectionHandle, _ opcode: HCIOpcode, _ outcome: HCICommandOutcome
    ) -> [ACLPacket] {
        guard opcode == .enableEncryption || opcode == .longTermKeyReply, case .refused = outcome else { return [] }
        return inbound.encryptionChanged(handle)
    }

    private func perform(_ action: ControllerSetupStateMachine.Action) {
        switch action {
        case .send(let command): send(command, .setup)
        case .finish(let found):
            descriptor = found
            resetCause = nil
            outbound = ACLTransmitStateMachine(.init(buffers: found.buffers))
            scan = ScanStateMachine(found)
            log(
                .info, "the controller is ready",
                [("controller", "\(port)"), ("address", "\(found.ownAddress)"), ("version", "\(found.hciVersion)")])
            reopening.becameReady()
            tellState()
            updateScan()
            tellInquirers(.success(found))
        case .fail(.interrupted): break
        case .fail(let failure): endLine(HCIOutage.unfit(failure).error(port))
        }
    }
}
