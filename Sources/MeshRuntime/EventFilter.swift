// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Which events a subscriber wants.
public struct EventFilter: Sendable, Hashable {
    /// Types or families, such as `link.up` or `link`. Empty means everything but frames, which have to be named.
    public var types: [String]
    /// Device names. Nil means all, and events that concern no device.
    public var devices: Set<String>?

    public init(types: [String] = [], devices: Set<String>? = nil) {
        self.types = types
        self.devices = devices
    }

    /// Whether an event of this type can match, for some device.
    func wants(_ type: EventType) -> Bool {
        types.isEmpty ? !type.isFrame : types.contains { type.matches($0) }
    }

    func matches(_ type: EventType, _ device: String?) -> Bool {
        guard wants(type) else { return false }
        guard let devices else { return true }
        return device.map { devices.contains($0) } ?? false
    }
}

/// What happens when a subscriber is slower than the events.
public enum EventOverflow: String, Sendable, Hashable, CaseIterable {
    /// The oldest event not yet taken goes.
    case dropOldest
    /// The new event goes.
    case dropNewest
    /// The subscription ends after what it holds.
    case end
}
