// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// The local hardware a device's link goes through, and what it can bear.
public struct AdapterSettings: Sendable, Hashable {
    /// Such as `hci0`.
    public var name: String
    /// How many attempts may be under way through it at a time. Where devices of one adapter differ, each waits until it is
    /// below its own number.
    public var slots: Int
    /// Whether somebody is sure to tell when it is back. If not, it is tried now and then though it is away.
    public var reportsChanges: Bool

    public init(name: String, slots: Int = 1, reportsChanges: Bool = true) {
        self.name = name
        self.slots = slots
        self.reportsChanges = reportsChanges
    }

    /// Whether devices wait for each other there.
    var takesTurns: Bool { slots < .max }

    /// The pseudo-adapter of everything that goes through sockets.
    public static let network = AdapterSettings(name: "network", slots: .max, reportsChanges: false)
}

/// What the reconnection machine has to know about a device.
public struct DeviceLinkSettings: Sendable, Hashable {
    public var policy: ReconnectionPolicy
    /// Nil for a device with a port of its own, such as a serial one.
    public var adapter: AdapterSettings?

    public init(policy: ReconnectionPolicy = ReconnectionPolicy(), adapter: AdapterSettings? = nil) {
        self.policy = policy
        self.adapter = adapter
    }
}
