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
    var link: HCILinkOptions

    /// The option table of the module.
    static let options: [OptionSpec] =
        BLETransportSettings.targetOptions + [
            OptionSpec(
                "controller", .string, default: "",
                help:
                    "The controller, which nobody else may use: hciN, or H4 at unix:PATH, tcp:HOST:PORT or h4:PATH@BAUD."
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
        ] + HCILinkOptions.options + BLETransportSettings.securityOptions + BLETransportSettings.deadlineOptions

    /// Reads validated options; with issues there are no settings.
    static func read(_ options: OptionValues) -> (settings: HCISettings?, issues: [OptionIssue]) {
        var issues: [OptionIssue] = []
        let transport = BLETransportSettings.read(options, &issues)
        let text = options.string("controller")
        let controller = HCIPort(text)
        if controller == nil {
            issues.append(
                OptionIssue(
                    option: "controller",
                    message: text.isEmpty ? "it has to be said which controller" : "\"\(text)\" is no controller",
                    hint: "for example \(HCIPort.examples)"))
        }
        let bondDirectory = options.string("bond_dir")
        if !bondDirectory.isEmpty, !bondDirectory.hasPrefix("/") {
            issues.append(
                OptionIssue(
                    option: "bond_dir", message: "\"\(bondDirectory)\" is no absolute path",
                    hint: "for example /var/lib/meshhost; empty to forget paired devices at the end"))
        }
        let link = HCILinkOptions.read(options, &issues)
        let capture = CaptureSettings.read(options, &issues)
        guard let transport, let controller, let link, issues.isEmpty else { return (nil, issues) }
        return (
            HCISettings(
                transport: transport, controller: controller, bondDirectory: bondDirectory, capture: capture, link: link
            ),
            []
        )
    }
}

extension CaptureSettings {
    /// Reads validated options; nil where nothing is to be recorded, or something is wrong.
    fileprivate static func read(_ options: OptionValues, _ issues: inout [OptionIssue]) -> CaptureSettings? {
        let limit = options.int("capture_limit")
        if !(1...4_096).contains(limit) {
            issues.append(OptionIssue(option: "capture_limit", message: "\(limit) is not 1 to 4096"))
            return nil
        }
        let path = options.string("capture")
        if path.isEmpty { return nil }
        guard path.hasPrefix("/") else {
            issues.append(
                OptionIssue(
                    option: "capture", message: "\"\(path)\" is no absolute path", hint: "for example /tmp/hci.log"))
            return nil
        }
        return CaptureSettings(path: path, limit: limit << 20)
    }
}
