// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI

/// Makes transports that do what their options say.
struct ScriptedFactory: TransportScanning {
    static let descriptor = TransportDescriptor(
        name: "scripted", version: "2.3.4", vendor: "fixture vendor", license: "Apache-2.0",
        capabilities: [.scanning, .pipelinedReads],
        options: [
            OptionSpec("script", .string, default: nil, help: "echo, burst, burst_thread, hang, fail or lose."),
            OptionSpec("count", .int, default: "0", help: "How many frames a burst has."),
            OptionSpec("code", .string, default: "", help: "The slug of the error of fail and lose."),
            OptionSpec("pause", .duration, default: "0ms", help: "How long a send takes."),
            OptionSpec("password", .string, default: "", help: "Not for anybody's eyes.", secret: true),
        ])

    let loop: MeshLoop

    var descriptor: TransportDescriptor { Self.descriptor }

    static func issues(_ options: OptionValues) -> [OptionIssue] {
        ["echo", "burst", "burst_thread", "hang", "fail", "lose"].contains(options.string("script"))
            ? []
            : [OptionIssue(option: "script", message: "no script \"\(options.string("script"))\"", hint: "use echo")]
    }

    func validate(_ options: OptionValues) -> [OptionIssue] { Self.issues(options) }

    func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
        ScriptedTransport(loop: loop, settings: settings)
    }

    func scan() async throws -> AsyncStream<ScanResult> {
        let (stream, continuation) = AsyncStream<ScanResult>.makeStream()
        continuation.yield(ScanResult(address: "aa:1", name: "první", rssi: -70, advertisement: [1, 2, 3]))
        continuation.yield(ScanResult(address: "aa:2", name: "", rssi: nil))
        return stream
    }
}
