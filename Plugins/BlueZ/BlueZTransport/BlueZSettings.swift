// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshTransportAPI

/// What the user writes for a device of the module `bluez`.
struct BlueZSettings: Sendable, Hashable {
    /// How values reach us.
    enum Notifications: String, Sendable, Hashable, CaseIterable {
        /// `StartNotify`: every program on the system bus may read them.
        case signals
        /// `AcquireNotify`: a socket of our own.
        case acquire
    }

    var transport: BLETransportSettings
    /// A name such as `hci0`, or an address; empty for the first that is powered on.
    var adapter: String
    var notifications: Notifications
    /// Whether pairings that nobody asked this program for are answered by it, too.
    var isDefaultAgent: Bool
    /// Whether an adapter that is off is switched on.
    var powersOn: Bool

    /// The option table of the module.
    static let options: [OptionSpec] = [
        OptionSpec(
            "address", .string, default: "",
            help: "The device's Bluetooth address, such as C0:11:22:33:44:55; or give name."),
        OptionSpec("name", .string, default: "", help: "The name the device advertises, whole; or give address."),
        OptionSpec(
            "adapter", .string, default: "",
            help: "The local adapter by name or address, such as hci0; empty for the first that is powered on."),
        OptionSpec(
            "pin", .string, default: "", help: "The passkey the device shows or was built with, such as 123456.",
            secret: true),
        OptionSpec(
            "pairing", .string, default: "auto",
            help: "auto pairs when a pin is given or the device asks for it; always; never."),
        OptionSpec(
            "stale_bond_repairs", .int, default: "0",
            help: "How often a day a bond that the device has lost is made anew with the pin; 0 leaves it to a person."),
        OptionSpec(
            "notifications", .string, default: "signals",
            help: "signals, or acquire: a socket that other programs cannot read, and that only one program can have."),
        OptionSpec(
            "default_agent", .bool, default: "false",
            help: "Answer pairings of this device that other programs or the device begin, too."),
        OptionSpec("power_on", .bool, default: "false", help: "Switch the adapter on when it is off."),
        OptionSpec("connect_timeout", .duration, default: "10s", help: "Until the link is made, looking included."),
        OptionSpec(
            "discovery_timeout", .duration, default: "40s", help: "Until services and characteristics are known."),
        OptionSpec(
            "rediscovery_timeout", .duration, default: "15s", help: "The same for a device that was connected before."),
        OptionSpec("pairing_timeout", .duration, default: "65s", help: "Until a pairing must have ended."),
        OptionSpec("subscribe_timeout", .duration, default: "5s", help: "Until notifications are on."),
        OptionSpec("write_timeout", .duration, default: "5s", help: "Until the device has acknowledged a frame."),
        OptionSpec("write_pacing", .duration, default: "0ms", help: "The pause between two frames."),
    ]
}
