// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Acme
import FoundationEssentials
import Glibc
import MeshLoop
import MeshRuntime
import MeshTransportAPI

/// What the daemon does for its devices, for one device of this program: a transport of its own behind the registry, a link
/// that comes back by itself, and a bus that everything is told on.
///
/// An actor on the loop, as all that it talks to.
actor RadioHost {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let path: String

    init(loop: EventLoop, path: String) {
        self.loop = loop
        self.path = path
    }

    /// Returns after a signal, when nothing of the link is left.
    func run() async throws {
        // The kinds of transport that this program knows. Those of the libraries, such as TCPTransportFactory, go here, too.
        var registry = TransportRegistry()
        try registry.register(AcmeTransportFactory(loop: loop))

        // What a config would say, judged by the transport's own table.
        let written: [String: JSONValue] = ["path": .string(path)]
        let (options, issues) = try registry.factory("acme").check(written)
        if let issue = issues.first { throw MeshError(.configurationInvalid, issue.message) }

        let events = EventBus(loop: loop, wallClock: Self.wallClock)
        // Before the first event, so that none is missed.
        let subscription = events.subscribe(EventFilter(), capacity: 1_024)
        let coordinator = ReconnectionCoordinator(
            loop: loop, events: events, intents: IntentStore(inMemory: loop), log: Self.log, wallClock: Self.wallClock)

        let kinds = registry
        var policy = ReconnectionPolicy()
        policy.maximumDelay = .seconds(5)
        try await coordinator.addDevice(
            DeviceSettings(
                name: "roof", link: DeviceLinkSettings(policy: policy), session: Greeting(loop: loop),
                initialIntent: .connect
            ) { environment throws(MeshError) in
                try kinds.makeTransport(
                    "acme",
                    TransportSettings(device: "roof", options: options, written: written, environment: environment))
            })

        let signals = try [SIGINT, SIGTERM].map { try LoopSignal(loop, $0) { subscription.cancel() } }
        for await event in subscription {
            Output.line(String(decoding: event.json.serialized(), as: UTF8.self), to: STDOUT_FILENO)
        }
        withExtendedLifetime(signals) {}

        // Ends the link, awaits its end, and takes on nothing more.
        if await !coordinator.shutDown(within: .seconds(10)) {
            throw MeshError(.operationTimeout, "the link did not end within 10 s")
        }
    }

    private static let wallClock: @Sendable () -> Duration = { .seconds(Date().timeIntervalSince1970) }

    private static let log = LogSink(threshold: .info) { level, message, fields in
        Output.line("\(level): \(message)\(fields.map { " \($0.0)=\($0.1)" }.joined())", to: STDERR_FILENO)
    }
}
