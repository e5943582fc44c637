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
    var capture: CaptureSettings?

    /// The option table of the module.
    static let options: [OptionSpec] =
        BLETransportSettings.targetOptions + [
            OptionSpec(
                "controller", .string, default: "",
                help:
                    "The controller, which nobody else may use: hciN of this machine, or H4 at unix:PATH or tcp:HOST:PORT."
            ),
            OptionSpec(
                "bond_dir", .string, default: "/var/lib/meshhost",
                help: "The folder that the keys of paired devices are kept in, in a file for each controller."),
            OptionSpec(
                "capture", .string, default: "",
                help: "A file that all between host and controller is recorded in, keys and messages too (btsnoop)."),
            OptionSpec(
                "capture_limit", .int, default: "16",
                help: "The most MiB that the recording takes; then a new one begins, and one with .1 is kept."),
        ] + BLETransportSettings.securityOptions + BLETransportSettings.deadlineOptions

    /// Reads validated options; with issues there are no settings.
    static func read(_ options: OptionValues) -> (settings: HCISettings?, issues: [OptionIssue]) {
        var issues: [OptionIssue] = []
        let transport = BLETransportSettings.read(options, &issues)
        let controller = HCIPort(options.string("controller"))
        if controller == nil {
            issues.append(
                OptionIssue(
                    option: "controller", message: "\"\(options.string("controller"))\" is no controller",
                    hint: "for example \(HCIPort.examples)"))
        }
        let limit = options.int("capture_limit")
        if !(1...4_096).contains(limit) {
            issues.append(OptionIssue(option: "capture_limit", message: "\(limit) is not 1 to 4096"))
        }
        let path = options.string("capture")
        if !path.isEmpty, !path.hasPrefix("/") {
            issues.append(
                OptionIssue(
                    option: "capture", message: "\"\(path)\" is no absolute path", hint: "for example /tmp/hci.log"))
        }
        let capture = path.isEmpty ? nil : CaptureSettings(path: path, limit: limit << 20)
        guard let transport, let controller, issues.isEmpty else { return (nil, issues) }
        return (
            HCISettings(
                transport: transport, controller: controller, bondDirectory: options.string("bond_dir"),
                capture: capture),
            []
        )
    }
}
