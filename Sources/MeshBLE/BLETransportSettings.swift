// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How a ``BLETransport`` connects: what code hands in.
public struct BLETransportSettings: Sendable, Hashable {
    /// When a device is paired with before it is used.
    public enum Pairing: String, Sendable, Hashable, CaseIterable {
        /// When a passkey is given and no keys are stored, or when the device refuses something for lack of security.
        case automatic = "auto"
        /// Whenever no keys are stored.
        case always
        /// Not even when the device refuses.
        case never
    }

    public var target: BLETarget
    public var profile: GATTSerialProfile = .nordicUART
    public var passkey: BLEPasskey?
    public var pairing: Pairing = .automatic
    /// How often, at most, within a day a bond that the device has lost is removed and made anew with the passkey. 0 leaves
    /// that to a person.
    public var staleBondRepairs = 0

    /// Until Bluetooth is usable, before an attempt fails with `adapter.unavailable`: bridges a blip.
    public var bluetoothGrace: Duration = .seconds(1)
    /// Until the link is made, looking for the device included.
    public var connectionTimeout: Duration = .seconds(10)
    /// From then until the characteristics are known, for a device that has not been connected since the start.
    public var serviceDiscoveryTimeout: Duration = .seconds(40)
    /// The same for one that has been.
    public var autoReconnectDiscoveryTimeout: Duration = .seconds(15)
    /// Both sides give up a pairing that does not go on for 30 s (Core Specification, Vol 3 Part H §3.4).
    public var pairingTimeout: Duration = .seconds(35)
    public var subscriptionTimeout: Duration = .seconds(5)
    public var writeTimeout: Duration = .seconds(5)
    /// Between the end of a write and the next one.
    public var writePacingDelay: Duration = .zero
    /// Until an ended link, or a cancelled attempt, is given up for ended.
    public var disconnectionTimeout: Duration = .seconds(5)
    /// Whether a lost link is made anew by the transport itself, for ever, until ``BLETransport/disconnect()``. A host that
    /// has a reconnection coordinator leaves it to that one.
    public var reconnectsAutomatically = false
    /// Bounds of the pause before an attempt of its own, with full jitter.
    public var reconnectDelay: ClosedRange<Duration> = .milliseconds(250) ... .seconds(30)

    /// For all of an attempt: 50 s by default. With what may hang in its end, an error is told within a minute (R3), in
    /// whichever phases the time was lost.
    var attemptTimeout: Duration { connectionTimeout + max(serviceDiscoveryTimeout, pairingTimeout) }

    public init(target: BLETarget) {
        self.target = target
    }
}
