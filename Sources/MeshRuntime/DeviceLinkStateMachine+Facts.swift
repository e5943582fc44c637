// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

extension DeviceLinkStateMachine.State {
    func admitted(_ generation: UInt64, _ episode: inout LinkEpisode, _ now: Duration) -> Step {
        switch self {
        case .waiting(let wait):
            // Rechecked here though only a wanted link asks for a slot: nothing may connect without intent.
            guard case .slot = wait.reason, case .connect = episode.intent else { return (self, .none) }
            episode.attempts += 1
            let attempt = Attempt(generation: generation, deadline: now + episode.policy.connectTimeout)
            return (.connecting(attempt), .connect(generation: generation))
        case .connecting, .handshaking, .ready, .ending, .removed: return (self, .none)
        }
    }

    func linkEstablished(_ episode: inout LinkEpisode, _ now: Duration) -> Step {
        switch self {
        case .connecting(let attempt):
            let deadline = now + episode.policy.handshakeTimeout
            return (.handshaking(Attempt(generation: attempt.generation, deadline: deadline)), .none)
        case .ending(let ending):
            // A late success: it was told to end and is told again.
            return (self, .end(generation: ending.generation))
        case .waiting, .handshaking, .ready, .removed:
            episode.staleFacts += 1
            return (self, .none)
        }
    }

    func sessionReady(_ episode: inout LinkEpisode, _ now: Duration) -> Step {
        switch self {
        case .handshaking(let attempt):
            let link = Ready(
                generation: attempt.generation, readySince: now, stableAt: now + episode.policy.stableAfter)
            return (.ready(link), .none)
        case .ending(let ending): return (self, .end(generation: ending.generation))
        case .waiting, .connecting, .ready, .removed:
            episode.staleFacts += 1
            return (self, .none)
        }
    }

    func linkEnded(
        _ reason: MeshError?, _ episode: inout LinkEpisode, _ now: Duration,
        _ generator: inout some RandomNumberGenerator
    ) -> Step {
        // A transport that ends without a reason, unasked: the link is closed, by whom is unknown.
        let error = reason ?? MeshError(.linkClosed, "the link ended without a reason")
        switch self {
        case .connecting:
            episode.attemptEnded(error)
            return (.afterFailure(error, &episode, now, &generator), .none)
        case .handshaking:
            let earlyClose = episode.handshakeEnded(error, now: now)
            return (.afterFailure(error, earlyClose, &episode, now, &generator), .none)
        case .ready(let link):
            episode.note(error)
            return (.afterLoss(of: link, error, &episode, now, &generator), .none)
        case .ending(let ending):
            if !ending.isRemoval, let failure = ending.failure {
                episode.attemptEnded(failure)
                return (.afterFailure(failure, &episode, now, &generator), .none)
            }
            // The adapter's own word on why it is away, which comes after its event.
            if let reason, reason.code == .adapterUnavailable { episode.lastError = reason }
            episode.lastEnd = nil
            return (ending.isRemoval ? .removed : .pursuing(&episode, now), .none)
        case .waiting, .removed: return (self, .none)
        }
    }

    func adapterWentAway(_ episode: inout LinkEpisode, _ now: Duration) -> Step {
        switch self {
        case .waiting(let wait):
            switch wait.reason {
            case .slot, .backoff, .breakerOpen, .adapter: (.awaitingAdapter(episode, now), .none)
            case .disconnected, .released, .contended, .blocked, .exhausted, .ending: (self, .none)
            }
        case .connecting, .handshaking: ended(episode, now)
        // Of a link that is up the transport knows best whether it is gone, and says so.
        case .ready, .ending, .removed: (self, .none)
        }
    }

    func adapterCameBack(_ episode: inout LinkEpisode, _ now: Duration) -> Step {
        switch self {
        case .waiting(let wait):
            switch wait.reason {
            case .adapter: return (.pursuing(&episode, now), .none)
            case .exhausted:
                episode.forgive()
                return (.pursuing(&episode, now), .none)
            case .disconnected, .released, .slot, .backoff, .breakerOpen, .contended, .blocked, .ending:
                return (self, .none)
            }
        case .connecting, .handshaking, .ready, .ending, .removed: return (self, .none)
        }
    }

    func deadlineReached(_ episode: inout LinkEpisode, _ now: Duration) -> Step {
        switch self {
        case .waiting(let wait):
            // Nobody may tell that the adapter is back: try.
            if case .adapter = wait.reason { return (.waiting(Waiting(reason: .slot)), .none) }
            return (.pursuing(&episode, now), .none)
        case .connecting:
            let limit = episode.policy.connectTimeout.optionText
            return ended(failure: MeshError(.connectionTimeout, "no link within \(limit)"), episode, now)
        case .handshaking:
            let limit = episode.policy.handshakeTimeout.optionText
            let failure = MeshError(
                .handshakeFailed, "the link is up but the device did not answer within \(limit)"
            )
            return ended(failure: failure, episode, now)
        case .ready(var link):
            episode.linkHeld()
            link.stableAt = nil
            return (.ready(link), .none)
        case .ending(var ending):
            ending.warnAt = nil
            return (.ending(ending), .reportUnended(generation: ending.generation))
        case .removed: return (.removed, .none)
        }
    }
}
