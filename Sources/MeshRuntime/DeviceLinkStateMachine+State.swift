// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

extension DeviceLinkStateMachine {
    /// See the diagram of the machine.
    enum State {
        case waiting(Waiting)
        case connecting(Attempt)
        case handshaking(Attempt)
        case ready(Ready)
        case ending(Ending)
        case removed

        struct Waiting {
            var reason: WaitReason
            /// Nil where an event ends the wait.
            var deadline: Duration?
        }

        struct Attempt {
            var generation: UInt64
            var deadline: Duration
        }

        struct Ready {
            var generation: UInt64
            var readySince: Duration
            /// When earlier failures are forgotten; nil once they are.
            var stableAt: Duration?
        }

        struct Ending {
            var generation: UInt64
            var wasAttempt: Bool
            /// What to count when it has ended; nil where somebody asked for the end.
            var failure: MeshError?
            var isRemoval = false
            /// Nil once it was reported.
            var warnAt: Duration?
        }
    }
}

extension DeviceLinkStateMachine.State {
    /// The next state and what to do. Each transition is a function from state to step: a branch without a next state
    /// does not compile.
    typealias Step = (next: Self, action: DeviceLinkStateMachine.Action)

    /// Nothing is under way: what the intent says to wait for.
    static func pursuing(_ episode: inout LinkEpisode, _ now: Duration) -> Self {
        switch episode.intent {
        case .disconnect: return .waiting(Waiting(reason: .disconnected))
        case .release(let until):
            if let until, until <= now {
                episode.intent = .connect
                return pursuing(&episode, now)
            }
            return .waiting(Waiting(reason: .released, deadline: until))
        case .connect:
            return episode.adapterIsAway ? awaitingAdapter(episode, now) : .waiting(Waiting(reason: .slot))
        }
    }

    /// Nothing is under way after a failure. The link is wanted: losing the intent makes the end of an attempt no failure.
    static func afterFailure(
        _ error: MeshError, _ episode: inout LinkEpisode, _ now: Duration,
        _ generator: inout some RandomNumberGenerator
    ) -> Self {
        if error.code == .contended { return contended(error, &episode, now) }
        switch error.disposition {
        case .permanent, .fatal:
            episode.failures += 1
            return .waiting(Waiting(reason: .blocked(error)))
        case .transient:
            if episode.adapterIsAway || error.code == .adapterUnavailable { return awaitingAdapter(episode, now) }
            episode.failures += 1
            if let limit = episode.policy.maximumRetries, episode.failures > limit {
                return .waiting(Waiting(reason: .exhausted(error)))
            }
            if episode.breaker == .open {
                let delay = episode.policy.breakerDelay(using: &generator)
                return .waiting(Waiting(reason: .breakerOpen(after: error), deadline: now + delay))
            }
            let delay = episode.policy.delay(afterFailures: episode.failures, using: &generator)
            return .waiting(Waiting(reason: .backoff(after: error), deadline: now + delay))
        }
    }

    /// Nothing is under way after a link that was ready.
    static func afterLoss(
        of link: Ready, _ error: MeshError, _ episode: inout LinkEpisode, _ now: Duration,
        _ generator: inout some RandomNumberGenerator
    ) -> Self {
        let uptime = now - link.readySince
        let earlyClose = episode.readyLinkEnded(error, uptime: uptime, now: now)
        if earlyClose == nil, uptime >= episode.policy.stableAfter, canRetrySoon(error, episode) {
            episode.linkHeld()
            // It has shown that it can be made. On a network attempts are spread, so that a server is not called by all at once;
            // an adapter takes its devices one by one anyway.
            if episode.settings.adapter?.takesTurns == true { return .waiting(Waiting(reason: .slot)) }
            let delay = episode.policy.delay(afterFailures: 0, using: &generator)
            return .waiting(Waiting(reason: .backoff(after: error), deadline: now + delay))
        }
        return afterFailure(error, earlyClose, &episode, now, &generator)
    }

    /// Nothing is under way after a failure that may speak for another host.
    static func afterFailure(
        _ error: MeshError, _ earlyClose: LinkEpisode.EarlyClose?, _ episode: inout LinkEpisode, _ now: Duration,
        _ generator: inout some RandomNumberGenerator
    ) -> Self {
        guard let earlyClose, canRetrySoon(error, episode) else {
            return afterFailure(error, &episode, now, &generator)
        }
        switch earlyClose {
        case .contended: return contended(episode.contentionError(error), &episode, now)
        case .suspicious:
            episode.failures += 1
            let delay = episode.policy.probeDelay(using: &generator)
            return .waiting(Waiting(reason: .backoff(after: error), deadline: now + delay))
        }
    }

    private static func canRetrySoon(_ error: MeshError, _ episode: LinkEpisode) -> Bool {
        error.disposition == .transient && error.code != .contended && error.code != .adapterUnavailable
            && !episode.adapterIsAway
    }

    private static func contended(_ error: MeshError, _ episode: inout LinkEpisode, _ now: Duration) -> Self {
        episode.lastError = error
        return .waiting(Waiting(reason: .contended(error), deadline: now + episode.policy.contentionDelay))
    }

    static func awaitingAdapter(_ episode: LinkEpisode, _ now: Duration) -> Self {
        .waiting(
            Waiting(
                reason: .adapter(name: episode.settings.adapter?.name), deadline: episode.adapterDeadline(now)))
    }

    /// The step that ends what is under way. `failure` is counted when it has ended.
    func ended(
        failure: MeshError? = nil, isRemoval: Bool = false, _ episode: LinkEpisode, _ now: Duration
    ) -> Step {
        let generation: UInt64
        let wasAttempt: Bool
        switch self {
        case .connecting(let attempt), .handshaking(let attempt):
            (generation, wasAttempt) = (attempt.generation, true)
        case .ready(let link): (generation, wasAttempt) = (link.generation, false)
        case .waiting, .ending, .removed: return (self, .none)
        }
        let ending = Ending(
            generation: generation, wasAttempt: wasAttempt, failure: failure, isRemoval: isRemoval,
            warnAt: now + episode.policy.endWarningAfter)
        return (.ending(ending), .end(generation: generation))
    }
}
