// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Whether a link is wanted, as opposed to whether it is up. Times are those of the monotonic clock.
public enum LinkIntent: Sendable, Hashable {
    /// Keep the link up.
    case connect
    /// Leave the device alone until somebody says otherwise.
    case disconnect
    /// The device is lent to somebody else: until a time, or until somebody says otherwise. Then `connect` again.
    case release(until: Duration?)

    /// The name a person sees.
    public var name: String {
        switch self {
        case .connect: "connect"
        case .disconnect: "disconnect"
        case .release: "release"
        }
    }
}

/// What a person asks of a device's link.
public enum LinkCommand: Sendable, Hashable {
    /// Wants the link, now: ends every wait but that for a free slot or an absent adapter.
    case connect
    /// Does not want the link, also after a restart.
    case disconnect
    /// Lends the device to somebody else, for so long or until `connect`.
    case release(for: Duration?)
    /// Drops the link if there is one and makes a new one at once; wants it from now on.
    case reconnect
}
