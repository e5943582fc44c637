// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshCrypto
internal import MeshLoop

/// What the machine orders.
extension HCILink {
    func perform(_ actions: [LinkStateMachine<AttributeWaiter>.Action]) {
        for action in actions { perform(action) }
        // Each input of the machine comes by here.
        notifications.isShortWayOpen = machine.takesWholeNotifications
        armTimer()
    }

    private func perform(_ action: LinkStateMachine<AttributeWaiter>.Action) {
        switch action {
        case .sendFrame(let frame): send(frame)
        case .sendCommand(let command): controller.assumeIsolated { $0.send(command, .link(self)) }
        case .finish(let waiter, let result): waiter.resume(returning: result)
        case .deliver(let delivery):
            notifications[delivery.handle]?(Data(delivery.value))
            if delivery.isIndication { follow(cache.indicationReceived(delivery.handle)) }
        case .serve, .finishProcedure, .finishParameterRequest, .askForPasskey: answerUnasked(action)
        case .preparePairing: preparePairing()
        case .secured(let protection): secured(.success(protection))
        case .storeBond(let bond):
            self.bond = bond
            unsentBond = bond
            storeSentBond()
        case .forgetBond: secured(.failure(staleBond))
        case .failSecurity(let failure):
            let passes = if case .linkEnded = failure { false } else { blockPairing(failure) }
            secured(.failure(GATTError(failure, passes: passes, peerName)))
        case .ended(let end): ended(end)
        }
    }

    /// Actions that need an answer here, or none.
    private func answerUnasked(_ action: LinkStateMachine<AttributeWaiter>.Action) {
        // There is no person: without a passkey in the settings there is none.
        if case .askForPasskey = action { perform(machine.passkeyEntered(passkey?.value, now: loop.now)) }
    }

    /// A frame that the machine orders is a request, an answer or a confirmation; one that is not taken would leave the
    /// peer waiting for ever.
    private func send(_ frame: L2CAPFrame) {
        if offer(frame) == .full { perform(machine.disconnectRequested(now: loop.now)) }
    }

    func offer(_ frame: L2CAPFrame, isValue: Bool = false) -> ACLTransmitStateMachine.Admission {
        controller.assumeIsolated { controller in
            let admission =
                controller.outbound?.frameRequested(frame.bytes, on: handle, isValue: isValue) ?? .noLink
            controller.sendPackets()
            return admission
        }
    }

    private func ended(_ reason: LinkProcedureStateMachine.End) {
        let error: GATTError =
            isControllerLost
            ? .controllerGone("\(controller.port)", .connect, peerName)
            : GATTError(reason, provedKeys: bond == nil || machine.protection != .open, peerName)
        end = error
        timer = nil
        unsentBond = nil
        notifications.removeAll()
        secured(.failure(error))
        packetsCompleted()
        drained()
        let handler = disconnectionHandler
        disconnectionHandler = nil
        let waiting = closers
        closers = []
        for closer in waiting { closer.resume() }
        // The controller does not tell the end of what it was asked to end: it is reset.
        if reason == .unanswered {
            loop.performLater { [controller] in controller.assumeIsolated { $0.endLine() } }
        }
        handler?(error)
    }

    private func armTimer() {
        guard end == nil, let next = machine.nextDeadline else {
            timer?.cancel()
            return
        }
        if timer == nil { timer = LoopTimer(loop) }
        timer?.schedule(after: max(.zero, next - loop.now)) {
            self.perform(self.machine.deadlineReached(now: self.loop.now))
        }
    }
}
