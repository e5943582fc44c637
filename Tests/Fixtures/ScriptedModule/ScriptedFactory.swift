// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshTransportAPI
internal import Synchronization

/// Makes transports that do what their options say.
struct ScriptedFactory: TransportFactory {
    static let descriptor = TransportDescriptor(
        name: "scripted", version: "2.3.4", vendor: "fixture vendor", license: "Apache-2.0",
        capabilities: [.scanning, .pairing, .pipelinedReads, .adapter, .ownDeadlines],
        options: [
            OptionSpec("script", .string, default: "echo", help: "What a link does, and a pairing."),
            OptionSpec("count", .int, default: "0", help: "How many frames a burst has."),
            OptionSpec("code", .string, default: "", help: "The slug of the error of fail and lose."),
            OptionSpec("pause", .duration, default: "0ms", help: "How long a send takes."),
            OptionSpec("password", .string, default: "", help: "Not for anybody's eyes.", secret: true),
            OptionSpec("address", .string, default: "", help: "Where the device is."),
            OptionSpec("adapter", .string, default: "", help: "What its links go through."),
            OptionSpec("pin", .string, default: "", help: "For pairings.", secret: true),
            OptionSpec("connect_timeout", .duration, default: "10s", help: "Not used."),
        ])

    private static let scripts = ["adapter", "burst", "burst_thread", "count", "echo", "fail", "hang", "lose"]

    let loop: EventLoop
    /// Addresses whose keys are stored.
    let bonds = Bonds()
    /// Off, for links whose script is `adapter`, until somebody examines it.
    let adapter = ScriptedAdapter()

    var descriptor: TransportDescriptor { Self.descriptor }

    static func issues(_ options: OptionValues) -> [OptionIssue] {
        scripts.contains(options.string("script"))
            ? []
            : [OptionIssue(option: "script", message: "no script \"\(options.string("script"))\"", hint: "use echo")]
    }

    /// That without an address may be any.
    static func device(_ options: OptionValues) -> String? {
        let address = options.string("address").lowercased()
        return address.isEmpty ? nil : address
    }

    func validate(_ options: OptionValues) -> [OptionIssue] { Self.issues(options) }

    func makeTransport(_ settings: TransportSettings) throws(MeshError) -> any MeshTransport {
        ScriptedTransport(loop: loop, settings: settings, adapter: adapter)
    }
}

/// An adapter that those who find it off are told of when it is on.
final class ScriptedAdapter: Sendable {
    private let waiting = Mutex<[@Sendable () -> Void]>([])

    var isOn: Bool { waiting.withLock(\.isEmpty) }

    func whenItIsOn(_ tell: @escaping @Sendable () -> Void) {
        waiting.withLock { $0.append(tell) }
    }

    func switchOn() {
        let waiting = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for tell in waiting { tell() }
    }
}

/// What is paired with; lives as long as the instance.
final class Bonds: Sendable {
    let addresses = Mutex<Set<String>>([])
}
