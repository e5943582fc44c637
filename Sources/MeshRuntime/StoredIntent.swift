// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// An intent as it survives a restart: its time is that of the wall clock.
public enum StoredIntent: Sendable, Hashable {
    case connect
    case disconnect
    /// Until so many seconds after 1970-01-01 UTC, and how long that was when it was said.
    case release(until: Int64?, length: Duration?)

    /// What a command leaves to be stored.
    init(_ command: LinkCommand, wallClock: Duration) {
        switch command {
        case .connect, .reconnect: self = .connect
        case .disconnect: self = .disconnect
        case .release(let length):
            // Rounded up: a release never ends early by the rounding.
            self = .release(
                until: length.map { (wallClock + $0 + .milliseconds(999)).components.seconds }, length: length)
        }
    }

    /// The intent on the monotonic clock.
    func intent(now: Duration, wallClock: Duration) -> LinkIntent {
        switch self {
        case .connect: return .connect
        case .disconnect: return .disconnect
        case .release(nil, _): return .release(until: nil)
        case .release(let until?, let length):
            var remaining = .seconds(until) - wallClock
            // A host without a battery clock starts in the past; a release must not last for years there.
            if let length { remaining = min(remaining, length) }
            return remaining > .zero ? .release(until: now + remaining) : .connect
        }
    }
}

extension StoredIntent {
    /// The entry of the intents file; nil for one that another version wrote.
    init?(json: JSONValue) {
        switch json["intent"]?.stringValue {
        case "connect": self = .connect
        case "disconnect": self = .disconnect
        case "release":
            self = .release(until: json["until"]?.intValue, length: json["seconds"]?.intValue.map { .seconds($0) })
        default: return nil
        }
    }

    var json: JSONValue {
        switch self {
        case .connect: return ["intent": "connect"]
        case .disconnect: return ["intent": "disconnect"]
        case .release(let until, let length):
            var members: [String: JSONValue] = ["intent": "release"]
            if let until { members["until"] = .int(until) }
            if let length { members["seconds"] = .int((length + .milliseconds(999)).components.seconds) }
            return .object(members)
        }
    }
}
