// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshTransportAPI

/// How a link is to run, as far as the user has a say.
struct HCILinkOptions: Sendable, Hashable {
    /// The fastest mode that is asked for.
    enum Mode: String, CaseIterable, Sendable {
        case oneMegabit = "1m"
        case twoMegabit = "2m"
    }

    var mode = Mode.twoMegabit
    /// In units of 1.25 ms; nil leaves the choice to the device.
    var interval: UInt16?

    static let options: [OptionSpec] = [
        OptionSpec(
            "connection_interval", .duration, default: "0ms",
            help: "How often both ends of a link in use meet, 8ms to 4s; 0ms: as the device asks, else 15 to 30 ms."
        ),
        OptionSpec(
            "phy", .string, default: "2m",
            help: "2m asks for the fast radio mode where both sides have it; 1m keeps to the old one."
        ),
    ]

    /// Reads validated options. With issues, which are added, there are none.
    static func read(_ options: OptionValues, _ issues: inout [OptionIssue]) -> HCILinkOptions? {
        let mode: Mode? = options.word("phy", &issues)
        let interval = options.duration("connection_interval")
        let range: ClosedRange<Duration> = .microseconds(7_500) ... .seconds(4)
        guard interval == .zero || range.contains(interval) else {
            issues.append(
                OptionIssue(
                    option: "connection_interval",
                    message: "connection_interval must be 0ms, or from 8ms to 4s", hint: "for example 30ms"))
            return nil
        }
        guard let mode else { return nil }
        // The nearest that there is.
        let units = Int((interval / .microseconds(1_250)).rounded())
        return HCILinkOptions(mode: mode, interval: units == 0 ? nil : UInt16(units))
    }

    func tuning(on controller: ControllerDescriptor) -> LinkTuningStateMachine.Configuration {
        .init(controller, allowsTwoMegabit: mode == .twoMegabit, interval: interval)
    }
}
