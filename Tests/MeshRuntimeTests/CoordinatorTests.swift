// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshRuntime

@Suite(.timeLimit(.minutes(20)))
struct CoordinatorTests {
    @Test func `a device connects, shakes hands and is ready`() async throws {
        try await Host.run { host in
            let session = ScriptedSession(host.loop)
            let events = await host.listen()
            try await host.add(session: session)
            let transport = await host.transports.take()
            #expect(await events.next()?.type == "link.connecting")
            await transport.answerConnect()
            #expect(await session.told.take() == .established(1))
            #expect(await events.next()?.type == "link.up")
            #expect(try await host.phase() == .handshaking)
            #expect(await session.link?.info?.peer == "script")
            await session.answer()
            #expect(await events.next()?.type == "link.ready")
            #expect(try await host.phase() == .ready)
            #expect(try await host.coordinator.status(of: "roof").info?.maximumFrameLength == 172)
        }
    }

    @Test func `a pause ends the link, and is over before anything else is tried`() async throws {
        try await Host.run { host in
            let events = await host.listen(EventFilter(types: ["link.ready", "link.connecting"]))
            try await host.add(session: ScriptedSession(host.loop, isWilling: true), isWilling: true)
            await events.next("link.ready")
            #expect(try await host.coordinator.pause("roof"))
            #expect(try await host.phase() == .waiting)
            #expect(try await host.coordinator.status(of: "roof").link.waiting == .released)
            // Somebody else's pause.
            #expect(try await !host.coordinator.pause("roof"))
            await host.coordinator.resume("roof")
            await events.next("link.ready")
            #expect(try await host.coordinator.status(of: "roof").link.intent == .connect)
        }
    }

    @Test func `a pause ends an attempt, and a person's word outlasts it`() async throws {
        try await Host.run { host in
            try await host.add()
            _ = await host.transports.take()
            #expect(try await host.coordinator.pause("roof"))
            #expect(try await host.phase() == .waiting)
            try await host.coordinator.perform(.release(for: nil), "roof")
            await host.coordinator.resume("roof")
            #expect(try await host.coordinator.status(of: "roof").link.waiting == .released)
        }
    }

    @Test func `a pause returns wherever the end of the link falls`() async throws {
        try await Host.run { host in
            let events = await host.listen(EventFilter(types: ["link.ready"]))
            try await host.add(session: ScriptedSession(host.loop, isWilling: true), isWilling: true)
            let transport = await host.transports.take()
            for rounds in 0..<24 {
                await events.next("link.ready")
                let pause = await host.actor.run { [coordinator = host.coordinator, loop = host.loop] _ in
                    let executor = loop.taskExecutor
                    loop.performLater { transport.assumeIsolated { $0.lose(MeshError(.linkClosed, "gone")) } }
                    return await withCheckedContinuation { continuation in
                        loop.perform(afterRounds: rounds) {
                            let pause = Task(executorPreference: executor) { try await coordinator.pause("roof") }
                            continuation.resume(returning: pause)
                        }
                    }
                }
                #expect(try await pause.value)
                await host.coordinator.resume("roof")
            }
        }
    }

    @Test func `the session hears of the link before its first frame`() async throws {
        try await Host.run { host in
            let session = ScriptedSession(host.loop)
            try await host.add(session: session)
            let transport = await host.transports.take()
            await transport.greet("early")
            await transport.answerConnect()
            #expect(await session.told.take() == .established(1))
            #expect(await session.told.take() == .frame("early"))
        }
    }

    @Test func `frames and sends are told on the bus`() async throws {
        try await Host.run { host in
            let session = ScriptedSession(host.loop, isWilling: true)
            let frames = await host.listen(EventFilter(types: ["frame"]))
            try await host.add(session: session, isWilling: true)
            let transport = await host.transports.take()
            _ = await session.told.take()
            await transport.receive("in")
            let received = await frames.next("frame.rx")
            #expect(received.device == "roof")
            #expect(received.data["hex"] == "696e")
            let link = try #require(await session.link)
            try await host.actor.run { _ in try await link.send(Data("out".utf8)) }
            #expect(await frames.next("frame.tx").data["length"] == 3)
        }
    }

    @Test func `a lost link is told with its reason and comes back`() async throws {
        try await Host.run { host in
            let session = ScriptedSession(host.loop, isWilling: true)
            let events = await host.listen()
            try await host.add(session: session, isWilling: true)
            let transport = await host.transports.take()
            await events.next("link.ready")
            #expect(await session.told.take() == .established(1))
            await transport.lose(MeshError(.linkClosedByPeer, "the radio closed the link"))
            #expect(await session.told.take() == .lost(MeshError(.linkClosedByPeer, "")))
            let down = await events.next("link.down")
            #expect(down.data["code"] == "link.closed-by-peer")
            #expect(down.data["phase"] == "ready")
            #expect(await events.next("link.waiting").data["why"] == "backoff")
            await events.next("link.ready")
            #expect(await session.told.take() == .established(2))
        }
    }

    @Test func `a session can give its link up`() async throws {
        try await Host.run { host in
            let session = ScriptedSession(host.loop, isWilling: true)
            let events = await host.listen()
            try await host.add(session: session, isWilling: true)
            await events.next("link.ready")
            #expect(await session.told.take() == .established(1))
            let link = try #require(await session.link)
            link.end(MeshError(.operationTimeout, "the radio is silent"))
            link.end(MeshError(.internalError, "too late"))
            #expect(await session.told.take() == .lost(MeshError(.operationTimeout, "")))
            #expect(await events.next("link.down").data["code"] == "operation.timeout")
            #expect(await session.told.take() == .established(2))
            // The first link is over; its end is not the second one's.
            await events.next("link.ready")
            link.end(MeshError(.internalError, "too late"))
            #expect(try await host.phase() == .ready)
        }
    }

    @Test func `the end of the stream is noticed during the handshake`() async throws {
        try await Host.run { host in
            let session = ScriptedSession(host.loop)
            let events = await host.listen()
            try await host.add(session: session)
            let transport = await host.transports.take()
            await transport.answerConnect()
            #expect(await session.told.take() == .established(1))
            await transport.lose(nil)
            #expect(await session.told.take() == .lost(MeshError(.linkClosed, "")))
            #expect(await events.next("link.down").data["phase"] == "handshaking")
            await transport.answerConnect()
            #expect(await session.told.take() == .established(2))
        }
    }

    @Test func `a failed handshake disconnects and is tried again`() async throws {
        try await Host.run { host in
            let session = ScriptedSession(host.loop)
            let events = await host.listen()
            try await host.add(session: session)
            let transport = await host.transports.take()
            await transport.answerConnect()
            #expect(await session.told.take() == .established(1))
            await session.answer(MeshError(.handshakeFailed, "no answer"))
            #expect(await session.told.take() == .lost(MeshError(.handshakeFailed, "")))
            #expect(await events.next("link.down").data["code"] == "session.handshake-failed")
            #expect(await transport.isConnected == false)
            #expect(await events.next("link.connecting").data["attempt"] == 2)
        }
    }

    @Test func `a handshake past its deadline is ended`() async throws {
        try await Host.run { host in
            var policy = Host.hasty
            policy.handshakeTimeout = .milliseconds(5)
            let session = ScriptedSession(host.loop)
            let events = await host.listen()
            try await host.add(session: session, policy: policy, isWilling: true)
            let down = await events.next("link.down")
            #expect(down.data["code"] == "session.handshake-failed")
            #expect(down.data["phase"] == "handshaking")
            await events.next("link.connecting")
        }
    }

    @Test func `a failed connect is tried again on the same transport`() async throws {
        try await Host.run { host in
            let events = await host.listen()
            try await host.add()
            let transport = await host.transports.take()
            for attempt in 1...5 {
                #expect(await events.next("link.connecting").data["attempt"] == .int(Int64(attempt)))
                #expect(await transport.calls.take() == .connect)
                await transport.answerConnect(MeshError(.connectionRefused, "refused"))
                #expect(await transport.calls.take() == .disconnect)
            }
            #expect(await transport.mostConnectsUnderWay == 1)
            #expect(await host.transports.count == 0)
        }
    }

    @Test func `a transport that cannot be made blocks the device`() async throws {
        try await Host.run { host in
            let events = await host.listen()
            let settings = DeviceSettings(name: "roof") { _ throws(MeshError) in
                throw MeshError(.configurationInvalid, "no host given")
            }
            try await host.coordinator.addDevice(settings)
            #expect(await events.next("link.waiting").data["why"] == "blocked")
        }
    }

    @Test func `disconnect cancels the attempt and is durable`() async throws {
        let directory = try Host.temporaryDirectory()
        defer { Host.removeDirectory(directory) }
        try await Host.run(in: directory) { host in
            let events = await host.listen()
            try await host.add()
            _ = await host.transports.take()
            await events.next("link.connecting")
            try await host.coordinator.perform(.disconnect, "roof")
            #expect(await events.next("intent.changed").data["intent"] == "disconnect")
            await events.next("link.down")
            #expect(await events.next("link.waiting").data["why"] == "disconnected")
        }
        // After a restart nothing connects.
        try await Host.run(in: directory) { host in
            try await host.add()
            #expect(try await host.coordinator.status(of: "roof").link.waiting == .disconnected)
            #expect(await host.transports.count == 0)
            try await host.coordinator.perform(.connect, "roof")
            _ = await host.transports.take()
        }
        try await Host.run(in: directory) { host in
            try await host.add(intent: .disconnect)
            _ = await host.transports.take()
        }
    }

    @Test func `a release with a time limit survives a restart`() async throws {
        let directory = try Host.temporaryDirectory()
        defer { Host.removeDirectory(directory) }
        try await Host.run(in: directory) { host in
            try await host.add()
            try await host.coordinator.perform(.release(for: .seconds(600)), "roof")
        }
        try await Host.run(in: directory) { host in
            try await host.add()
            let link = try await host.coordinator.status(of: "roof").link
            #expect(link.waiting == .released)
            let remaining = try #require(link.remaining)
            #expect(remaining > .seconds(590) && remaining <= .seconds(601))
        }
    }

    @Test func `a removed device is gone when the call returns`() async throws {
        try await Host.run { host in
            let session = ScriptedSession(host.loop)
            try await host.add(session: session)
            let transport = await host.transports.take()
            await transport.answerConnect()
            #expect(await session.told.take() == .established(1))
            try await host.coordinator.removeDevice("roof")
            #expect(await session.told.take() == .lost(nil))
            #expect(await transport.isConnected == false)
            #expect(await host.coordinator.statuses.isEmpty)
            #expect(await host.coordinator.runningTasks == 0)
        }
    }

    @Test func `a removal waits for its own device, wherever a namesake comes in`() async throws {
        try await Host.run { host in
            for rounds in 0..<16 {
                try await host.add(intent: .disconnect)
                let settings = host.settings(intent: .disconnect)
                let (coordinator, loop) = (host.coordinator, host.loop)
                let (removal, addition) = await host.actor.run { _ in
                    let executor = loop.taskExecutor
                    let removal = Task(executorPreference: executor) { try await coordinator.removeDevice("roof") }
                    return await withCheckedContinuation { continuation in
                        loop.perform(afterRounds: rounds) {
                            let addition = Task(executorPreference: executor) {
                                try await coordinator.addDevice(settings)
                            }
                            continuation.resume(returning: (removal, addition))
                        }
                    }
                }
                // Does not wait for the end of the one that came after it.
                try await removal.value
                // Early enough it finds its namesake there, and is refused.
                if case .success = await addition.result { try await coordinator.removeDevice("roof") }
            }
        }
    }

    @Test func `a device added while its namesake is being removed waits for its end`() async throws {
        try await Host.run { host in
            try await host.add()
            let first = await host.transports.take()
            #expect(await first.calls.take() == .connect)
            await first.beStubborn()
            async let removal: Void = host.coordinator.removeDevice("roof")
            await #expect(throws: MeshError(.deviceUnknown, "")) {
                // Until the removal has begun the command is accepted.
                while true { try await host.coordinator.perform(.connect, "roof") }
            }
            async let addition: Void = host.add()
            await first.answerConnect(MeshError(.connectionFailed, "late"))
            try await removal
            try await addition
            _ = await host.transports.take()
        }
    }

    @Test func `new settings make a new transport after the old one has ended`() async throws {
        try await Host.run { host in
            let session = ScriptedSession(host.loop, isWilling: true)
            let events = await host.listen()
            try await host.add(session: session, isWilling: true)
            let first = await host.transports.take()
            await events.next("link.ready")
            try await host.coordinator.updateDevice(
                host.settings(session: session, isWilling: true), needsNewLink: true)
            let second = await host.transports.take()
            #expect(await first.isConnected == false)
            #expect(await events.next("link.down").data["code"]?.stringValue == nil)
            await events.next("link.ready")
            // What the old one still says is not heard.
            first.environment.linkEvents(.down(reason: MeshError(.internalError, "late")))
            await second.lose(MeshError(.linkClosed, "cut"))
            #expect(await events.next("link.down").data["code"] == "link.closed")
        }
    }

    @Test func `an unknown device is named with the nearest one`() async throws {
        try await Host.run { host in
            try await host.add()
            let error = await #expect(throws: MeshError.self) {
                try await host.coordinator.perform(.connect, "rooof")
            }
            #expect(error?.code == .deviceUnknown)
            #expect(error?.message.contains("did you mean \"roof\"?") == true)
            await #expect(throws: MeshError(.invalidArgument, "")) { try await host.add() }
        }
    }

    @Test func `an adapter that goes away pauses its devices`() async throws {
        try await Host.run { host in
            let events = await host.listen()
            try await host.add()
            let transport = await host.transports.take()
            await events.next("link.connecting")
            transport.environment.linkEvents(.adapter(available: false))
            #expect(await events.next("link.waiting").data["why"] == "adapter")
            transport.environment.linkEvents(.adapter(available: true))
            await events.next("link.connecting")
        }
    }

    @Test func `shutting down ends everything within its limit`() async throws {
        try await Host.run { host in
            for number in 0..<20 { try await host.add("d\(number)", isWilling: number.isMultiple(of: 2)) }
            #expect(await host.coordinator.shutDown(within: Host.patience))
            #expect(await host.coordinator.runningTasks == 0)
            await #expect(throws: MeshError(.cancelled, "")) { try await host.add("late") }
        }
    }

    @Test func `shutting down does not wait for ever`() async throws {
        try await Host.run { host in
            try await host.add()
            let transport = await host.transports.take()
            #expect(await transport.calls.take() == .connect)
            await transport.beStubborn()
            #expect(await host.coordinator.shutDown(within: .milliseconds(10)) == false)
            await transport.answerConnect(MeshError(.cancelled, "at last"))
        }
    }

    @Test func `five hundred devices connect fifty at a time and come back`() async throws {
        try await Host.run { host in
            let events = await host.listen(EventFilter(types: ["link.ready"]))
            let gauge = Gauge(host.loop)
            for number in 0..<500 {
                try await host.coordinator.addDevice(gauge.settings("d\(number)"))
            }
            for _ in 0..<500 { await events.next("link.ready") }
            await gauge.loseAll()
            for _ in 0..<500 { await events.next("link.ready") }
            #expect(await gauge.most <= 50)
            #expect(await host.coordinator.runningTasks == 500)
        }
    }
}

/// Counts the connects under way over many transports.
private actor Gauge {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private var transports: [CountedTransport] = []
    private var current = 0
    private(set) var most = 0

    init(_ loop: EventLoop) { self.loop = loop }

    nonisolated func settings(_ name: String) -> DeviceSettings {
        DeviceSettings(name: name, link: DeviceLinkSettings(policy: Host.hasty, adapter: .network)) { environment in
            self.assumeIsolated { gauge in
                let transport = CountedTransport(gauge: gauge, environment: environment)
                gauge.transports.append(transport)
                return transport
            }
        }
    }

    func begin() {
        current += 1
        most = max(most, current)
    }

    func end() { current -= 1 }

    func loseAll() async { for transport in transports { await transport.lose() } }

    private actor CountedTransport: MeshTransport {
        nonisolated let loop: EventLoop
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
        private let gauge: Gauge
        private let environment: TransportEnvironment
        private var stream = AsyncStream<Data>.makeStream()
        var isConnected: Bool { true }
        var receivedData: AsyncStream<Data> { stream.stream }

        init(gauge: Gauge, environment: TransportEnvironment) {
            loop = gauge.loop
            self.gauge = gauge
            self.environment = environment
        }

        func connect() async throws {
            await gauge.begin()
            await Task.yield()
            stream = AsyncStream.makeStream()
            await gauge.end()
        }

        func lose() {
            environment.linkEvents(.down(reason: MeshError(.linkClosed, "gone")))
            stream.continuation.finish()
        }

        func disconnect() async { stream.continuation.finish() }
        func send(_ data: Data) async throws {}
    }
}
