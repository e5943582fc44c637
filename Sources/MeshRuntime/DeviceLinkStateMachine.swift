// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// The life of one device's link: at most one attempt or link at any time, and none without intent.
///
/// ```
///            added                 admitted              linkEstablished          sessionReady
///              │     ┌───────────┐          ┌──────────┐                ┌───────────┐           ┌─────┐
///              └────▶│  waiting  │─────────▶│connecting│───────────────▶│handshaking│──────────▶│ready│
///                    └───────────┘          └──────────┘                └───────────┘           └─────┘
///                      ▲ │   ▲  ▲             │      │ linkEnded           │    │ linkEnded       │ │
///                      │ │   │  └─────────────┼──────┴─────────────────────┼────┴─────────────────┘ │
///                      │ │   │                │ deadline, disconnect, release, reconnect, adapter   │
///                      │ │   │ linkEnded      │ away, new settings, remove │                        │
///                      │ │   │            ┌──────┐                         │                        │
///                      │ │   └────────────│ending│◀────────────────────────┴────────────────────────┘
///                      │ │ remove         └──────┘
///                      │ │                   │ linkEnded, removed meanwhile
///                      │ │               ┌───────┐
///                      │ └──────────────▶│removed│
///                      └── why it waits changes
/// ```
///
/// - **waiting** for what its `WaitReason` says. Only the reason `slot` asks for admission. `backoff`, `breakerOpen`,
///   `contended` and some `adapter` waits end at a deadline; `disconnected`, `blocked` and `exhausted` with a person.
/// - **connecting** for the transport's `connect`. Holds a slot.
/// - **handshaking** for the device's answer. Holds a slot. A failure here is a failed attempt.
/// - **ready** until the link ends. Once in its life the deadline forgets earlier failures.
/// - **ending** for `linkEnded` of what was cancelled. Holds the slot of an attempt. Without a deadline on purpose:
///   a second attempt beside a first that has not ended is what must never be; a late end is reported instead.
/// - **removed** for nothing.
///
/// Reference: `reconnection.md` §1.3 (rules), §4.2–4.3 (requirements). It leaves open, and this machine chooses:
/// the loss of a link that held for `stableAfter` is no failure, so the first attempt after it comes within the first
/// window; failures while the adapter is known to be away are not counted; a close by the peer during the handshake is a
/// failed attempt and so speaks against contention, since proxies whose server is down accept and close, too.
///
/// `State` is copyable: Swift 6.3 does not match several patterns in one `case` of a non-copyable enum, which would treble
/// these switches. It holds plain values and no waiters, so a copy can own nothing twice; that each branch names the
/// next state is ensured by transitions being functions that return it.
struct DeviceLinkStateMachine {
    /// What an input asks for.
    enum Action {
        case none
        /// Start an attempt.
        case connect(generation: UInt64)
        /// End the attempt or link, and report `linkEnded` when nothing of it is left.
        case end(generation: UInt64)
        /// Tell that what was cancelled does not end.
        case reportUnended(generation: UInt64)
    }

    private var state: State
    private(set) var episode: LinkEpisode
    private(set) var generation: UInt64 = 0

    init(intent: LinkIntent, settings: DeviceLinkSettings, adapterIsAway: Bool, now: Duration) {
        var episode = LinkEpisode(intent: intent, settings: settings, adapterIsAway: adapterIsAway)
        state = .pursuing(&episode, now)
        self.episode = episode
    }

    /// The time by which ``deadlineReached(now:using:)`` wants to be called.
    var nextDeadline: Duration? {
        switch state {
        case .waiting(let wait): wait.deadline
        case .connecting(let attempt), .handshaking(let attempt): attempt.deadline
        case .ready(let link): link.stableAt
        case .ending(let ending): ending.warnAt
        case .removed: nil
        }
    }

    /// Whether it asks to be admitted.
    var wantsSlot: Bool {
        if case .waiting(let wait) = state, wait.reason == .slot { true } else { false }
    }

    /// Whether an attempt is under way or being ended.
    var holdsSlot: Bool {
        switch state {
        case .connecting, .handshaking: true
        case .ending(let ending): ending.wasAttempt
        case .waiting, .ready, .removed: false
        }
    }

    var isRemoved: Bool {
        if case .removed = state { true } else { false }
    }

    var phase: DeviceLinkSnapshot.Phase {
        switch state {
        case .waiting, .removed: .waiting
        case .connecting: .connecting
        case .handshaking: .handshaking
        case .ready: .ready
        case .ending: .ending
        }
    }

    /// Why nothing is under way.
    var waitReason: WaitReason? {
        switch state {
        case .waiting(let wait): wait.reason
        case .ending: .ending
        case .connecting, .handshaking, .ready, .removed: nil
        }
    }

    func snapshot(device: String, now: Duration) -> DeviceLinkSnapshot {
        var readySince: Duration?
        var breaker = episode.breaker
        if case .ready(let link) = state { readySince = link.readySince }
        if breaker == .open, phase != .waiting { breaker = .halfOpen }
        return DeviceLinkSnapshot(
            device: device, phase: phase, intent: episode.intent, attempts: episode.attempts,
            consecutiveFailures: episode.failures, breaker: breaker, lastError: episode.lastError,
            waiting: waitReason, remaining: phase == .ready ? nil : nextDeadline.map { max(.zero, $0 - now) },
            readySince: readySince, generation: generation, staleFacts: episode.staleFacts)
    }

    // MARK: Commands

    /// A person wants the link.
    mutating func connect(now: Duration) -> Action {
        personAsks(for: .connect)
        return move(state.linkWanted(&episode, now))
    }

    /// A person wants a new link at once.
    mutating func reconnect(now: Duration) -> Action {
        personAsks(for: .connect)
        return move(state.newLinkWanted(&episode, now))
    }

    /// A person does not want the link.
    mutating func disconnect(now: Duration) -> Action {
        // The intent goes first: whatever is cancelled below finds it gone.
        personAsks(for: .disconnect)
        return move(state.linkUnwanted(&episode, now))
    }

    /// A person lends the device to somebody else.
    mutating func release(until: Duration?, now: Duration) -> Action {
        personAsks(for: .release(until: until))
        return move(state.linkUnwanted(&episode, now))
    }

    /// The configuration changed. What waits because of the old one tries again.
    mutating func settingsChanged(
        _ settings: DeviceLinkSettings, adapterIsAway: Bool, needsNewLink: Bool, now: Duration
    ) -> Action {
        episode.settings = settings
        episode.adapterIsAway = adapterIsAway
        episode.forgive()
        return move(needsNewLink ? state.newLinkWanted(&episode, now) : state.linkWanted(&episode, now))
    }

    /// The device is no longer configured.
    mutating func remove(now: Duration) -> Action {
        move(state.deviceUnwanted(&episode, now))
    }

    private mutating func personAsks(for intent: LinkIntent) {
        episode.intent = intent
        episode.attempts = 0
        episode.forgive()
    }

    // MARK: Facts

    /// A slot is free for it.
    mutating func admitted(generation: UInt64, now: Duration) -> Action {
        self.generation = generation
        return move(state.admitted(generation, &episode, now))
    }

    /// The transport's `connect` returned.
    mutating func linkEstablished(generation: UInt64, now: Duration) -> Action {
        guard isCurrent(generation) else { return .none }
        return move(state.linkEstablished(&episode, now))
    }

    /// The device answered the handshake.
    mutating func sessionReady(generation: UInt64, now: Duration) -> Action {
        guard isCurrent(generation) else { return .none }
        return move(state.sessionReady(&episode, now))
    }

    /// Nothing of the attempt or link is left. `reason` is what ended it; nil where this side asked for it.
    mutating func linkEnded(
        generation: UInt64, reason: MeshError?, now: Duration, using generator: inout some RandomNumberGenerator
    ) -> Action {
        guard isCurrent(generation) else { return .none }
        return move(state.linkEnded(reason, &episode, now, &generator))
    }

    /// The adapter became usable or unusable.
    mutating func adapterChanged(isAvailable: Bool, now: Duration) -> Action {
        let wasAway = episode.adapterIsAway
        episode.adapterIsAway = !isAvailable
        if isAvailable { return move(state.adapterCameBack(&episode, now)) }
        // Said twice, it must not end the occasional attempt on an adapter that reports nothing.
        return wasAway ? .none : move(state.adapterWentAway(&episode, now))
    }

    /// Time has passed. Early and repeated calls change nothing.
    mutating func deadlineReached(now: Duration) -> Action {
        guard let deadline = nextDeadline, deadline <= now else { return .none }
        return move(state.deadlineReached(&episode, now))
    }

    private mutating func move(_ step: State.Step) -> Action {
        state = step.next
        return step.action
    }

    /// Whether a fact belongs to what is under way; if not, it is counted.
    private mutating func isCurrent(_ generation: UInt64) -> Bool {
        let isUnderWay =
            switch state {
            case .connecting, .handshaking, .ready, .ending: true
            case .waiting, .removed: false
            }
        if isUnderWay, generation == self.generation { return true }
        episode.staleFacts += 1
        return false
    }
}
