// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// Why a device has no attempt under way. Either the wait has a deadline, or the reason names the event that ends it.
public enum WaitReason: Sendable, Equatable {
    /// The intent is `disconnect`. Ends with a command.
    case disconnected
    /// The intent is `release`. Ends at its time, or with a command.
    case released
    /// Others are being connected. Ends when one of them is through.
    case slot
    /// The pause after a failure. Has a deadline.
    case backoff(after: MeshError)
    /// The adapter or the network is away. Ends when it is back; has a deadline where nobody may tell.
    case adapter(name: String?)
    /// Another host is using the device. Has a deadline.
    case contended(MeshError)
    /// Many failures in a row. Has a deadline.
    case breakerOpen(after: MeshError)
    /// An error that only a person can mend. Ends with a command or changed settings.
    case blocked(MeshError)
    /// The configured number of retries is used up. Ends with a command, changed settings or an adapter that comes back.
    case exhausted(MeshError)
    /// What was cancelled has not ended yet.
    case ending

    /// A stable short name for events and JSON.
    public var slug: String {
        switch self {
        case .disconnected: "disconnected"
        case .released: "released"
        case .slot: "slot"
        case .backoff: "backoff"
        case .adapter: "adapter"
        case .contended: "contended"
        case .breakerOpen: "breaker-open"
        case .blocked: "blocked"
        case .exhausted: "exhausted"
        case .ending: "ending"
        }
    }

    /// The failure behind it, if there is one.
    public var error: MeshError? {
        switch self {
        case .backoff(let error), .contended(let error), .breakerOpen(let error), .blocked(let error),
            .exhausted(let error):
            error
        case .disconnected, .released, .slot, .adapter, .ending: nil
        }
    }
}

extension WaitReason: CustomStringConvertible {
    /// One line for people.
    public var description: String {
        switch self {
        case .disconnected: "disconnected on request; `connect` brings it back"
        case .released: "released for another program"
        case .slot: "waiting for its turn to connect"
        case .backoff(let error): "waiting before the next attempt, after: \(error.message)"
        case .adapter(let name?): "waiting for \(name) to come back"
        case .adapter(nil): "waiting for the port to come back"
        case .contended(let error): error.message
        case .breakerOpen(let error): "failing again and again, now tried rarely; last: \(error.message)"
        case .blocked(let error): "needs a person: \(error.message)"
        case .exhausted(let error): "gave up after the configured number of retries; last: \(error.message)"
        case .ending: "waiting for the cancelled link to end"
        }
    }
}
