// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshLoop
import MeshTransportAPI
import Testing

@testable import MeshRuntime

/// A loop thread with a bus, an intent store in a directory of its own, and a coordinator.
struct Host {
    let thread: LoopThread
    let loop: EventLoop
    let actor: LoopActor
    let directory: String
    let events: EventBus
    let intents: IntentStore
    let coordinator: ReconnectionCoordinator
    let transports: Inbox<ScriptedTransport>

    /// Runs `body` with a host, then checks that nothing of it is left.
    static func run(limit: Int = 50, _ body: (Host) async throws -> Void) async throws {
        let directory = try temporaryDirectory()
        defer { removeDirectory(directory) }
        try await run(in: directory, limit: limit, body)
    }

    static func run(in directory: String, limit: Int = 50, _ body: (Host) async throws -> Void) async throws {
        let thread = LoopThread()
        let loop = thread.loop
        let intents = try await IntentStore.open(directory: directory, loop: loop, log: .none)
        let events = EventBus(loop: loop, wallClock: Host.wallClock)
        let coordinator = ReconnectionCoordinator(
            loop: loop, events: events, intents: intents, log: .none, maximumConcurrentAttempts: limit,
            wallClock: Host.wallClock)
        let host = Host(
            thread: thread, loop: loop, actor: LoopActor(loop), directory: directory, events: events,
            intents: intents, coordinator: coordinator, transports: Inbox(loop))
        try await body(host)
        let isEnded = await coordinator.shutDown(within: patience)
        #expect(isEnded)
        #expect(await coordinator.runningTasks == 0)
        try await thread.shutDown()
    }

    /// How long the end may take before it counts as failed. Tests share the processors: it decides no more than that.
    static let patience = Duration.seconds(600)
    static let wallClock: @Sendable () -> Duration = { .seconds(1_772_366_400) }

    static func temporaryDirectory() throws -> String {
        var template = Array("/tmp/meshruntime-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { mkdtemp($0.baseAddress!) != nil }
        try #require(made)
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static func removeDirectory(_ path: String) {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Short delays, so that what waits in real time waits for milliseconds.
    static var hasty: ReconnectionPolicy {
        var policy = ReconnectionPolicy()
        policy.firstDelay = .milliseconds(1)
        policy.maximumDelay = .milliseconds(4)
        return policy
    }

    /// Adds a device whose transports are announced in ``transports``.
    func add(
        _ name: String = "roof", session: any LinkSession = DrainSession(), intent: LinkIntent = .connect,
        policy: ReconnectionPolicy = Host.hasty, isWilling: Bool = false
    ) async throws {
        try await coordinator.addDevice(
            settings(name, session: session, intent: intent, policy: policy, isWilling: isWilling))
    }

    func settings(
        _ name: String = "roof", session: any LinkSession = DrainSession(), intent: LinkIntent = .connect,
        policy: ReconnectionPolicy = Host.hasty, isWilling: Bool = false
    ) -> DeviceSettings {
        DeviceSettings(
            name: name, link: DeviceLinkSettings(policy: policy), session: session, initialIntent: intent
        ) { [loop, transports] environment in
            let transport = ScriptedTransport(loop, environment)
            // Made on the loop, where the coordinator is.
            if isWilling { transport.assumeIsolated { $0.beWilling() } }
            transports.assumeIsolated { $0.put(transport) }
            return transport
        }
    }

    func phase(_ name: String = "roof") async throws -> DeviceLinkSnapshot.Phase {
        try await coordinator.status(of: name).link.phase
    }

    /// The types and devices of events, as they come.
    func listen(_ filter: EventFilter = EventFilter()) async -> Listener {
        await actor.run { _ in Listener(loop: loop, subscription: events.subscribe(filter, capacity: 10_000)) }
    }
}

/// Takes events for a test that is not on the loop.
actor Listener {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    let subscription: EventSubscription

    init(loop: EventLoop, subscription: EventSubscription) {
        self.loop = loop
        self.subscription = subscription
    }

    func next() async -> HostEvent? {
        var iterator = subscription.makeAsyncIterator()
        return await iterator.next()
    }

    /// The next event of that type; others are passed over.
    @discardableResult
    func next(_ type: EventType, device: String? = nil) async -> HostEvent {
        while let event = await next() {
            if event.type == type, device == nil || event.device == device { return event }
        }
        fatalError("the events ended before \(type)")
    }
}
