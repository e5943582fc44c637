// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI
internal import MeshWire

/// The way to a link.
extension BLELinkStateMachine.Context {
    typealias State = BLELinkStateMachine<Waiter, Write>.State
    typealias Attempt = BLELinkStateMachine<Waiter, Write>.Attempt
    typealias Ending = BLELinkStateMachine<Waiter, Write>.Ending
    typealias Stop = BLELinkStateMachine<Waiter, Write>.Stop

    /// An operation of the attempt succeeded: on to the next one.
    mutating func proceed(_ attempt: Attempt, _ outcome: BLEOutcome, _ now: Duration) -> State {
        var attempt = attempt
        guard let operation = attempt.operation else { return .attempting(attempt) }
        switch (operation.kind, outcome) {
        case (.removeBond, .bondRemoved):
            security.bondRemoved()
            return begin(adoptsNext ? .adopt : .connect, attempt, now)
        case (.adopt, .adopted(nil)):
            adoptsNext = false
            return begin(.connect, attempt, now)
        case (.adopt, .adopted(let isBonded?)), (.connect, .connected(let isBonded)):
            adoptsNext = false
            noteHeard()
            attempt.link = .init(generation: operation.generation, isBonded: isBonded)
            return begin(.discoverServices, attempt, now)
        case (.discoverServices, .services(let services)):
            guard let service = services.first(where: { $0.uuid == settings.profile.service }) else {
                return lacks(settings.profile.service, attempt, now)
            }
            return begin(.discoverCharacteristics(service), attempt, now)
        case (.discoverCharacteristics, .characteristics(let characteristics)):
            return choose(from: characteristics, attempt, now)
        case (.pair, .paired(let outcome)):
            attempt.link?.isBonded = true
            if security.paired(outcome) { emit(.warnPairedWithoutPasskey) }
            return begin(attempt.afterPairing ?? .discoverServices, attempt, now)
        case (.subscribe, .subscribed):
            guard let receive = attempt.link?.receive else { return end(attempt, .inconsistent, now) }
            return begin(.readWriteLength(receive), attempt, now)
        case (.readWriteLength, .writeLength(let length)):
            guard let link = attempt.link, let receive = link.receive, length > 0 else {
                return end(attempt, .inconsistent, now)
            }
            noteConnected()
            enter(.connected)
            emit(.bringUp(.init(generation: link.generation, receive: receive, maximumWriteLength: length)))
            if let waiter = attempt.caller?.waiter { emit(.succeed(waiter)) }
            if attempt.isAutomatic { emit(.tellReconnected) }
            return .connected(.init(link: link, maximumWriteLength: length))
        default:
            // The operation is over, whatever it was.
            attempt.operation = nil
            if outcome.bringsLink { attempt.link = .init(generation: operation.generation, isBonded: false) }
            return end(attempt, .inconsistent, now)
        }
    }

    private mutating func choose(
        from characteristics: [GATTCharacteristic], _ attempt: Attempt, _ now: Duration
    ) -> State {
        var attempt = attempt
        let profile = settings.profile
        guard
            let receive = characteristics.first(where: {
                $0.uuid == profile.receive && !$0.properties.isDisjoint(with: [.write, .writeWithoutResponse])
            })
        else { return lacks(profile.receive, attempt, now) }
        guard
            let transmit = characteristics.first(where: {
                $0.uuid == profile.transmit && !$0.properties.isDisjoint(with: [.notify, .indicate])
            })
        else { return lacks(profile.transmit, attempt, now) }
        attempt.link?.receive = receive
        attempt.link?.transmit = transmit
        guard security.pairsBeforeUse(isBonded: attempt.link?.isBonded ?? false) else {
            return begin(.subscribe(transmit), attempt, now)
        }
        attempt.afterPairing = .subscribe(transmit)
        return begin(.pair, attempt, now)
    }

    private mutating func lacks(_ uuid: BluetoothUUID, _ attempt: Attempt, _ now: Duration) -> State {
        let failure = failure(of: attempt, noteMissing(uuid), now: now)
        var attempt = attempt
        attempt.operation = nil
        return end(attempt, failure, cancels: false, now)
    }

    // MARK: Failing

    /// What a failed operation means.
    private enum Judgement {
        case pair
        case again
        case fail(BLELinkFailure.Cause)
    }

    private mutating func judge(_ attempt: Attempt, _ error: GATTError, _ now: Duration) -> Judgement {
        let verdict: BLESecurityPolicy.Verdict
        switch error.reason {
        case .pairingFailed: return .fail(.authentication(security.pairingFailed()))
        case .insufficientSecurity where attempt.operation?.kind == .pair:
            return .fail(.authentication(security.pairingFailed()))
        // A device that refuses before there is a link refuses the keys.
        case .insufficientSecurity: verdict = security.refused(isBonded: attempt.link?.isBonded ?? true)
        case .bondStale: verdict = security.bondFoundStale(now: now)
        case .bondSuspect:
            guard let repair = security.bondSuspected(now: now) else { return .fail(.operation(error)) }
            verdict = repair
        case .cancelled, .bluetoothUnavailable, .unreachable, .linkLost, .inUse, .notSupported, .other:
            return .fail(.operation(error))
        }
        switch verdict {
        case .fail(let reason): return .fail(.authentication(reason))
        case .pair where attempt.rounds < Self.maximumRounds: return .pair
        case .replaceBond where attempt.rounds < Self.maximumRounds:
            emit(.tellBondIsReplaced)
            return .again
        case .pair, .replaceBond: return .fail(.operation(error))
        }
    }

    mutating func operationFailed(_ attempt: Attempt, _ error: GATTError, _ now: Duration) -> State {
        var attempt = attempt
        if attempt.operation?.kind == .adopt {
            switch error.reason {
            // Whether there is a connection already could not be learned; that one cannot be made does not follow.
            case .unreachable, .linkLost, .notSupported, .cancelled, .other:
                adoptsNext = false
                return begin(.connect, attempt, now)
            case .bluetoothUnavailable, .insufficientSecurity, .bondStale, .bondSuspect, .pairingFailed, .inUse: break
            }
        }
        switch judge(attempt, error, now) {
        case .pair where attempt.link != nil:
            attempt.afterPairing = attempt.operation?.kind
            attempt.rounds += 1
            return begin(.pair, attempt, now)
        case .pair, .again:
            attempt.operation = nil
            return again(attempt, now)
        case .fail(let cause):
            let failure = failure(of: attempt, cause, now: now)
            attempt.operation = nil
            return end(attempt, failure, cancels: false, now)
        }
    }

    mutating func linkLost(_ attempt: Attempt, _ error: GATTError, _ now: Duration) -> State {
        var attempt = attempt
        let judgement: Judgement =
            switch error.reason {
            case .insufficientSecurity, .bondStale, .bondSuspect, .pairingFailed: judge(attempt, error, now)
            case .cancelled, .bluetoothUnavailable, .unreachable, .linkLost, .inUse, .notSupported, .other:
                .fail(.linkLost(error))
            }
        attempt.link = nil
        switch judgement {
        case .pair, .again: return again(attempt, now)
        case .fail(let cause):
            let failure = failure(of: attempt, cause, now: now)
            // An operation on a lost link ends by itself, and may say more than the loss: a radio that does not accept the
            // passkey drops the link first.
            return end(attempt, failure, cancels: false, awaitsReason: true, now)
        }
    }

    mutating func deadlineReached(_ attempt: Attempt, _ now: Duration) -> State {
        guard attempt.operation != nil else {
            reportAdapter()
            return end(attempt, .bluetooth(bluetooth ?? .serviceUnavailable), now)
        }
        if attempt.operation?.kind == .adopt { adoptsNext = false }
        let limit = attempt.deadline == attempt.end ? settings.attemptTimeout : attempt.deadline - attempt.since
        return end(attempt, .timedOut(after: limit), now)
    }

    // MARK: Ending

    mutating func end(
        _ attempt: Attempt, _ cause: BLELinkFailure.Cause, stop: Stop? = nil, _ now: Duration
    ) -> State {
        end(attempt, failure(of: attempt, cause, now: now), stop: stop, cancels: true, now)
    }

    private mutating func end(
        _ attempt: Attempt, _ failure: BLELinkFailure, stop: Stop? = nil, cancels: Bool, awaitsReason: Bool = false,
        _ now: Duration
    ) -> State {
        var ending = Ending(attempt: attempt, link: attempt.link?.generation, awaitsReason: awaitsReason)
        if let stop {
            ending.stops = [stop]
            ending.failure = failure
            if attempt.isAutomatic { ending.announcement = .disconnected(nil) }
        } else {
            settle(&ending, failure)
        }
        return windUp(ending, attempt.operation, cancels: cancels, now)
    }

    /// What follows a failure: a caller's attempt is over, one of the machine's own goes on after a pause.
    private func settle(_ ending: inout Ending, _ failure: BLELinkFailure) {
        ending.failure = failure
        ending.next = .rest
        guard ending.attempt?.isAutomatic == true else { return }
        if failure.isFinal { ending.announcement = .disconnected(failure) } else { ending.next = .reconnect }
    }

    private mutating func again(_ attempt: Attempt, _ now: Duration) -> State {
        windUp(
            Ending(attempt: attempt, next: .again, link: attempt.link?.generation), attempt.operation, cancels: false,
            now)
    }

    /// Waits for the end of the operation, then closes the link.
    mutating func windUp(
        _ ending: Ending, _ operation: BLELinkStateMachine<Waiter, Write>.RunningOperation?, cancels: Bool,
        _ now: Duration
    ) -> State {
        guard let operation else { return closeLink(ending, now) }
        var ending = ending
        enter(.disconnecting)
        ending.awaited = operation
        ending.deadline = now + settings.disconnectionTimeout
        if cancels { emit(.cancelOperation(generation: operation.generation)) }
        return .disconnecting(ending)
    }

    private mutating func closeLink(_ ending: Ending, _ now: Duration) -> State {
        guard let link = ending.link else { return finish(ending, now) }
        var ending = ending
        let generation = nextGeneration()
        enter(.disconnecting)
        ending.link = nil
        ending.awaited = .init(kind: .close, generation: generation)
        ending.deadline = now + settings.disconnectionTimeout
        emit(.start(.close, generation: generation, link: link))
        return .disconnecting(ending)
    }

    /// What was awaited has ended.
    mutating func operationEnded(_ ending: Ending, error: GATTError? = nil, _ now: Duration) -> State {
        var ending = ending
        // Who came meanwhile makes an attempt of its own, and this one is over: its reason would begin it anew.
        if let error, ending.awaitsReason, ending.stops.isEmpty, ending.queued == nil, let attempt = ending.attempt {
            switch error.reason {
            case .insufficientSecurity, .bondStale, .bondSuspect, .pairingFailed:
                switch judge(attempt, error, now) {
                case .pair, .again: ending.next = .again
                case .fail(let cause):
                    settle(
                        &ending, .init(cause, phase: ending.failure?.phase ?? phase, operation: ending.awaited?.kind))
                }
            case .cancelled, .bluetoothUnavailable, .unreachable, .linkLost, .inUse, .notSupported, .other: break
            }
        }
        ending.awaited = nil
        return closeLink(ending, now)
    }

    /// What was awaited did not end: it is let go of. Whatever comes of it later is stale.
    mutating func force(_ ending: Ending, _ now: Duration) -> State {
        var ending = ending
        if let awaited = ending.awaited { emit(.cancelOperation(generation: awaited.generation)) }
        if let link = ending.link { emit(.closeStrayLink(generation: link)) }
        ending.awaited = nil
        ending.link = nil
        return finish(ending, now)
    }
}

extension BLESecurityPolicy {
    init(_ settings: BLETransportSettings) {
        self.init(
            pairing: settings.pairing, hasPasskey: settings.passkey != nil, staleBondRepairs: settings.staleBondRepairs)
    }
}
