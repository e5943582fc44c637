// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// What a device's machine remembers across attempts: the intent, the settings, and the failures since it was last well.
///
/// It stands beside the state, not in it: a state is left behind, this is not.
struct LinkEpisode {
    var intent: LinkIntent
    var settings: DeviceLinkSettings
    /// The adapter was reported to be away.
    var adapterIsAway: Bool
    /// Since the device was added or a person last asked for it.
    var attempts = 0
    /// In a row, since the link was last stable or a person asked.
    var failures = 0
    var lastError: MeshError?
    /// How the last attempt or link ended; nil when this side ended it.
    var lastEnd: MeshError?
    /// Facts of a generation that is over, or that make no sense in the state they met.
    var staleFacts = 0
    /// When the peer closed young links, those still in their handshake included, with no other failed attempt in between.
    private var closes: [Duration] = []
    /// The last end was the peer's closing: of a link that was ready, or of one in its handshake right after such an end.
    private var followsClose = false
    /// The last such series was long enough. One more close then suffices, so that a host that is still there is not
    /// kicked out again and again after each pause.
    private var isContended = false

    init(intent: LinkIntent, settings: DeviceLinkSettings, adapterIsAway: Bool) {
        self.intent = intent
        self.settings = settings
        self.adapterIsAway = adapterIsAway
    }

    var policy: ReconnectionPolicy { settings.policy }

    var breaker: DeviceLinkSnapshot.Breaker { failures < max(1, policy.breakerThreshold) ? .closed : .open }

    /// A person asked, the settings changed, or the link held: the past no longer counts.
    mutating func forgive() {
        failures = 0
        noOtherHost()
    }

    private mutating func noOtherHost() {
        closes = []
        isContended = false
        followsClose = false
    }

    /// The link has been ready for ``ReconnectionPolicy/stableAfter``. What speaks for another host passes by its own rule.
    mutating func linkHeld() {
        failures = 0
    }

    /// The end of a link that was ready. Whether the next attempt is a ``ReconnectionPolicy/probeDelay(using:)`` or
    /// the device is left to another host; nil where it is neither.
    mutating func readyLinkEnded(_ error: MeshError, uptime: Duration, now: Duration) -> EarlyClose? {
        guard policy.contentionCloses > 0 else { return nil }
        if uptime > policy.contentionUptime {
            noOtherHost()
            followsClose = error.code == .linkClosedByPeer
            return nil
        }
        followsClose = error.code == .linkClosedByPeer
        guard followsClose else { return nil }
        return closedEarly(now)
    }

    private mutating func closedEarly(_ now: Duration) -> EarlyClose {
        let window = policy.contentionWindow
        closes.removeAll { now - $0 > window }
        closes.append(now)
        if isContended || closes.count >= policy.contentionCloses {
            isContended = true
            closes = []
            return .contended
        }
        return .suspicious
    }

    /// An attempt failed. A server that restarts refuses in between; a host that takes the device away does not.
    mutating func attemptEnded(_ error: MeshError) {
        note(error)
        noOtherHost()
    }

    /// A link ended in its handshake. Another host that comes back at once takes the device before the handshake is over:
    /// after the peer has closed a link, this speaks for such a host as much as the closing of a link that was ready. Of a
    /// device that has not been ready before it says nothing.
    mutating func handshakeEnded(_ error: MeshError, now: Duration) -> EarlyClose? {
        guard policy.contentionCloses > 0, followsClose, error.code == .linkClosedByPeer else {
            attemptEnded(error)
            return nil
        }
        note(error)
        return closedEarly(now)
    }

    /// Remembers what ended the attempt or link.
    mutating func note(_ error: MeshError) {
        lastError = error
        lastEnd = error
    }

    /// What the peer's closing of a young link means.
    enum EarlyClose {
        case suspicious
        case contended
    }
}

extension LinkEpisode {
    /// Whether somebody is sure to tell when the adapter is back.
    var adapterReportsChanges: Bool { settings.adapter?.reportsChanges ?? false }

    /// The deadline of a wait for the adapter. With none, somebody is sure to tell.
    func adapterDeadline(_ now: Duration) -> Duration? {
        if adapterIsAway, adapterReportsChanges { return nil }
        return now + policy.adapterRetryInterval
    }

    func contentionError(_ cause: MeshError) -> MeshError {
        MeshError(
            .contended,
            "another host is using this radio: the radio keeps closing the link right after it is up. It serves one"
                + " host; stop the other one, or run `reconnect`. Next attempt in \(policy.contentionDelay.optionText)",
            cause: cause, context: cause.context)
    }
}
