// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshTransportAPI

/// What the user writes for a device of the module `hci`.
struct HCISettings: Sendable, Hashable {
    var transport: BLETransportSettings
    var controller: HCIPort
    /// Empty: bonds are forgotten at the end.
    var bondDirectory: String
    var link: HCILinkOptions

    /// The option table of the module.
    static let options: [OptionSpec] =
        BLETransportSettings.targetOptions + [
            OptionSpec(
                "controller", .string, default: "",
                help: "Where the controller speaks H4, which nobody else may use: unix:PATH or tcp:HOST:PORT."),
            OptionSpec(
                "bond_dir", .string, default: "/var/lib/meshhost",
                help: "The folder that the keys of paired devices are kept in, in a file for each controller."),
        ] + HCILinkOptions.options + BLETransportSettings.securityOptions + BLETransportSettings.deadlineOptions

    /// Reads validated options; with issues there are no settings.
    static func read(_ options: OptionValues) -> (settings: HCISettings?, issues: [OptionIssue]) {
        var issues: [OptionIssue] = []
        let transport = BLETransportSettings.read(options, &issues)
        let controller = HCIPort(options.string("controller"))
        if controller == nil {
            issues.append(
                OptionIssue(
                    option: "controller", message: "\"\(options.string("controller"))\" is no controller",
                    hint: "for example unix:/run/hci0 or tcp:127.0.0.1:9000"))
        }
        let link = HCILinkOptions.read(options, &issues)
        guard let transport, let controller, let link, issues.isEmpty else { return (nil, issues) }
        return (
            HCISettings(
                transport: transport, controller: controller, bondDirectory: options.string("bond_dir"), link: link), []
        )
    }
}
