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
    /// How long the device has to acknowledge a frame; nil leaves it to the stack.
    var writeTimeout: Duration?

    static let options: [OptionSpec] = [
        OptionSpec(
            "connection_interval", .duration, default: "0ms",
            help:
                "How often both ends of a link in use meet, 8ms to 4s, a third of write_timeout at most; 0ms: as the device asks, else 15 to 30 ms."
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
        let writeTimeout = options.duration("write_timeout")
        // A frame and its acknowledgement take two of them.
        guard interval * 3 <= writeTimeout else {
            issues.append(
                OptionIssue(
                    option: "connection_interval",
                    message: "connection_interval must be no more than a third of write_timeout, which is "
                        + writeTimeout.optionText,
                    hint: "a frame and its acknowledgement take two intervals"))
            return nil
        }
        guard let mode else { return nil }
        // The nearest that there is.
        let units = Int((interval / .microseconds(1_250)).rounded())
        return HCILinkOptions(mode: mode, interval: units == 0 ? nil : UInt16(units), writeTimeout: writeTimeout)
    }

    /// A moment before the deadline of whoever writes, so that the device's silence ends the write, and no cancellation. The
    /// stack's own is the least, for it is that of all writes, and the longest is that of any request (Core Specification
    /// 5.4, Vol 3 Part F §3.3.3); behind a shorter `write_timeout` the writer cancels.
    func client(
        _ client: ATTClientStateMachine<HCILink.AttributeWaiter>.Configuration
    ) -> ATTClientStateMachine<HCILink.AttributeWaiter>.Configuration {
        guard let writeTimeout else { return client }
        var client = client
        client.writeTimeout = min(max(client.writeTimeout, writeTimeout), client.transactionTimeout) - Self.writeMargin
        return client
    }

    private static let writeMargin = Duration.milliseconds(100)

    func tuning(on controller: ControllerDescriptor) -> LinkTuningStateMachine.Configuration {
        .init(controller, allowsTwoMegabit: mode == .twoMegabit, interval: interval)
    }
}
