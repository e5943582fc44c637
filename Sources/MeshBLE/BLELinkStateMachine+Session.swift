// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// A link that is up.
extension BLELinkStateMachine.Context {
    typealias Session = BLELinkStateMachine<Waiter, Write>.Session

    mutating func write(_ session: Session, _ write: Write, id: UInt64, length: Int, _ now: Duration) -> State {
        var session = session
        if length == 0 {
            emit(.failWrite(write, .empty))
        } else if length > session.maximumWriteLength {
            emit(.failWrite(write, .tooLong(limit: session.maximumWriteLength)))
        } else if session.writes.isFull {
            emit(.failWrite(write, .queueFull))
        } else {
            session.writes.add(write, id: id)
            return startNextWrite(session, now)
        }
        return .connected(session)
    }

    private mutating func startNextWrite(_ session: Session, _ now: Duration) -> State {
        var session = session
        let generation = nextGeneration()
        if let write = session.writes.startNext(generation: generation, now: now, timeout: settings.writeTimeout) {
            emit(.startWrite(write, generation: generation))
        }
        return .connected(session)
    }

    mutating func writeEnded(
        _ session: Session, _ generation: UInt64, _ error: GATTError?, isProof: Bool, _ now: Duration
    ) -> State {
        var session = session
        guard
            let (write, isTimeout) = session.writes.ended(
                generation: generation, succeeded: error == nil, now: now, pause: settings.writePacingDelay)
        else { return .connected(session) }
        guard let error else {
            if isProof { security.proved() }
            if let write { emit(.succeedWrite(write)) }
            return startNextWrite(session, now)
        }
        // A central for which no write may follow has ended the link.
        let endsLink = error.reason == .linkLost
        if isTimeout || endsLink && error.error.code == .operationTimeout {
            if let write { emit(.failWrite(write, .timedOut(after: settings.writeTimeout, endsLink: endsLink))) }
            if endsLink { return end(session, .linkLost(error), now) }
            return session.writes.timeoutsInARow < 2
                ? startNextWrite(session, now) : end(session, .writesTimedOut(after: settings.writeTimeout), now)
        }
        switch error.reason {
        case .insufficientSecurity, .bondStale, .bondSuspect, .pairingFailed, .linkLost, .bluetoothUnavailable,
            .unreachable:
            return end(session, lossCause(session, error, now), failing: write, now)
        case .cancelled, .inUse, .notSupported, .other:
            if let write { emit(.failWrite(write, .failed(error))) }
            return startNextWrite(session, now)
        }
    }

    mutating func linkLost(_ session: Session, _ error: GATTError, _ now: Duration) -> State {
        var session = session
        // Its time was over before the link was.
        if case .cancelling(let running) = session.writes.state, let write = session.writes.callerLeft(running.id) {
            emit(.failWrite(write, .timedOut(after: settings.writeTimeout, endsLink: true)))
        }
        return end(session, lossCause(session, error, now), isLost: true, now)
    }

    /// What a link that does not go on means for the next one.
    private mutating func lossCause(
        _ session: Session, _ error: GATTError, _ now: Duration
    ) -> BLELinkFailure.Cause {
        let verdict: BLESecurityPolicy.Verdict
        switch error.reason {
        case .insufficientSecurity: verdict = security.refused(isBonded: session.link.isBonded)
        case .bondStale: verdict = security.bondFoundStale(now: now)
        case .pairingFailed: verdict = .fail(security.pairingFailed())
        case .bondSuspect, .bluetoothUnavailable, .cancelled, .unreachable, .linkLost, .inUse, .notSupported, .other:
            return .linkLost(error)
        }
        switch verdict {
        case .fail(let reason): return .authentication(reason)
        case .pair: return .pairingNeeded
        case .replaceBond:
            emit(.tellBondIsReplaced)
            return .pairingNeeded
        }
    }

    mutating func deadlineReached(_ session: Session, _ now: Duration) -> State {
        var session = session
        switch session.writes.state {
        case .idle: return startNextWrite(session, now)
        case .writing(let running):
            if session.writes.cancelRunning(until: now + settings.disconnectionTimeout) {
                emit(.cancelOperation(generation: running.generation))
            }
            return .connected(session)
        case .cancelling: return end(session, .writesTimedOut(after: settings.writeTimeout), now)
        }
    }

    /// `isLost`: the link is gone, it need not be closed. `failing`: a write that is out of the queue already.
    mutating func end(
        _ session: Session, _ cause: BLELinkFailure.Cause, stop: Stop? = nil, isLost: Bool = false,
        failing write: Write? = nil, _ now: Duration
    ) -> State {
        var session = session
        let failure = BLELinkFailure(cause, phase: .connected)
        var ending = Ending(failure: failure, link: isLost ? nil : session.link.generation)
        if let stop {
            ending.stops = [stop]
            ending.announcement = .disconnected(nil)
        } else if settings.reconnectsAutomatically, !failure.isFinal {
            ending.next = .reconnect
            ending.announcement = .autoReconnecting(failure)
        } else {
            ending.announcement = .disconnected(failure)
        }
        emit(.endSession(stop == nil ? failure : nil))
        if let write { emit(.failWrite(write, .linkEnded(failure))) }
        let running = session.writes.running
        for write in session.writes.takeAll() { emit(.failWrite(write, .linkEnded(failure))) }
        return windUp(
            ending, running.map { .init(kind: .write, generation: $0) }, cancels: !isLost, now)
    }
}
