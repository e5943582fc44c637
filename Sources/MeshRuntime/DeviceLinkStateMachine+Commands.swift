// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

extension DeviceLinkStateMachine.State {
    /// The link is wanted by a person or by new settings. What is under way goes on; a place in the queue is kept.
    func linkWanted(_ episode: inout LinkEpisode, _ now: Duration) -> Step {
        switch self {
        case .waiting(let wait):
            switch (wait.reason, episode.intent) {
            case (.slot, .connect) where !episode.adapterIsAway || !episode.adapterReportsChanges:
                return (self, .none)
            case (.adapter, .connect) where !episode.adapterReportsChanges:
                // Nobody may tell that it is back, so the person is believed.
                return (.waiting(Waiting(reason: .slot)), .none)
            default: return (.pursuing(&episode, now), .none)
            }
        case .ending(var ending):
            // The failure is forgiven: the next attempt follows at once.
            ending.failure = nil
            return (.ending(ending), .none)
        case .connecting, .handshaking, .ready, .removed: return (self, .none)
        }
    }

    /// A new link is wanted in the place of whatever there is.
    func newLinkWanted(_ episode: inout LinkEpisode, _ now: Duration) -> Step {
        switch self {
        case .connecting, .handshaking, .ready: ended(episode, now)
        case .waiting, .ending, .removed: linkWanted(&episode, now)
        }
    }

    /// The intent is gone; what is under way follows it.
    func linkUnwanted(_ episode: inout LinkEpisode, _ now: Duration) -> Step {
        switch self {
        case .waiting: return (.pursuing(&episode, now), .none)
        case .connecting, .handshaking, .ready: return ended(episode, now)
        case .ending(var ending):
            ending.failure = nil
            return (.ending(ending), .none)
        case .removed: return (.removed, .none)
        }
    }

    func deviceUnwanted(_ episode: inout LinkEpisode, _ now: Duration) -> Step {
        switch self {
        case .waiting, .removed: return (.removed, .none)
        case .connecting, .handshaking, .ready: return ended(isRemoval: true, episode, now)
        case .ending(var ending):
            ending.isRemoval = true
            return (.ending(ending), .none)
        }
    }
}
