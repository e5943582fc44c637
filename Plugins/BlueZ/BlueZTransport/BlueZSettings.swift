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
    /// Whether attempts of other programs to connect to the device are ended as often as it takes.
    var takesOver: Bool

    /// The option table of the module.
    static let options: [OptionSpec] =
        BLETransportSettings.targetOptions + [
            OptionSpec(
                "adapter", .string, default: "",
                help: "The local adapter by name or address, such as hci0; empty for the first that is powered on.")
        ] + BLETransportSettings.securityOptions + [
            OptionSpec(
                "notifications", .string, default: "signals",
                help:
                    "signals, or acquire: a socket that other programs cannot read, and that only one program can have."
            ),
            OptionSpec(
                "default_agent", .bool, default: "false",
                help: "Answer pairings of this device that other programs or the device begin, too."),
            OptionSpec("power_on", .bool, default: "false", help: "Switch the adapter on when it is off."),
            OptionSpec(
                "takeover", .bool, default: "false",
                help: "End other programs' attempts to connect to this device each time, not only the first."),
        ] + BLETransportSettings.deadlineOptions

    /// Reads validated options; with issues there are no settings.
    static func read(_ options: OptionValues) -> (settings: BlueZSettings?, issues: [OptionIssue]) {
        var issues: [OptionIssue] = []
        let transport = BLETransportSettings.read(options, &issues)
        let notifications: Notifications? = options.word("notifications", &issues)
        let adapter = options.string("adapter")
        if adapter.contains(where: { !$0.isASCII || $0.isWhitespace || $0 == "/" }) {
            issues.append(
                OptionIssue(
                    option: "adapter", message: "\"\(adapter)\" is no adapter",
                    hint: "for example hci0; `bluetoothctl list` names them"))
        }
        guard let transport, let notifications, issues.isEmpty else { return (nil, issues) }
        let settings = BlueZSettings(
            transport: transport, adapter: adapter, notifications: notifications,
            isDefaultAgent: options.bool("default_agent"), powersOn: options.bool("power_on"),
            takesOver: options.bool("takeover"))
        return (settings, [])
    }
}
