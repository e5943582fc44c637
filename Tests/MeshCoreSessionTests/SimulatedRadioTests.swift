// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshCompanion
import MeshLoop
import MeshMockTransport
import MeshTestSupport
import MeshTransportAPI
import Synchronization
import Testing

/// A link to the simulated radio, which has a life of its own, in a test's time.
private actor SimulatedLink: MeshTransport {
    private let clock: ManualClock
    private var radio: SimulatedRadio
    private var frames: AsyncStream<Data>?
    private var continuation: AsyncStream<Data>.Continuation?
    private var codes: [UInt8] = []
    private var waiters: [(codes: Set<UInt8>, count: Int, continuation: CheckedContinuation<Void, Never>)] = []

    init(_ settings: SimulatedRadioSettings, clock: ManualClock, date: UInt32) {
        self.clock = clock
        radio = SimulatedRadio(settings, now: .zero, clock: date)
    }

    func connect() async throws { (frames, continuation) = AsyncStream.makeStream(of: Data.self) }

    func disconnect() async {
        continuation?.finish()
        continuation = nil
    }

    func send(_ data: Data) async throws {
        codes.append(data.first ?? 0)
        perform(radio.commandReceived([UInt8](data), now: clock.now.offset))
        let ready = waiters.filter { isSent($0.codes, $0.count) }
        waiters.removeAll { isSent($0.codes, $0.count) }
        for waiter in ready { waiter.continuation.resume() }
    }

    private func isSent(_ wanted: Set<UInt8>, _ count: Int) -> Bool { codes.count { wanted.contains($0) } >= count }

    /// Waits until the radio has got so many commands of these kinds.
    func sent(_ wanted: Set<UInt8>, _ count: Int = 1) async {
        if !isSent(wanted, count) { await withCheckedContinuation { waiters.append((wanted, count, $0)) } }
    }

    /// Moves the time on to what happens next.
    func advance() {
        guard let deadline = radio.nextDeadline else { return }
        clock.advance(by: deadline - clock.now.offset)
        perform(radio.deadlineReached(now: deadline))
    }

    private func perform(_ outputs: [SimulatedRadio.Output]) {
        for output in outputs {
            switch output {
            case .sendFrame(let frame): continuation?.yield(Data(frame))
            case .dropLink: continuation?.finish()
            }
        }
    }

    var supportsPipelinedReads: Bool { true }
    var receivedData: AsyncStream<Data> { frames ?? AsyncStream { $0.finish() } }
    var isConnected: Bool { continuation != nil }
}

/// The whole session against a radio that somebody else wrote.
struct SimulatedRadioTests {
    private static func session(
        clockOffset: Int = 0, _ adjust: (inout SimulatedRadioSettings) -> Void = { _ in }
    ) -> (MeshCoreSession, SimulatedLink) {
        var settings = SimulatedRadioSettings(
            advertInterval: .zero, messageInterval: .zero, rxLogInterval: .zero, answerDelay: .zero)
        adjust(&settings)
        let clock = ManualClock()
        let link = SimulatedLink(settings, clock: clock, date: UInt32(Int(Golden.date) + clockOffset))
        let environment = MeshSessionEnvironment(clock: clock, date: { Golden.date })
        return (MeshCoreSession(transport: link, environment: environment), link)
    }

    @Test func `it is brought up to date`() async throws {
        let (session, _) = Self.session(clockOffset: -60)
        let events = await session.events
        try await session.start()
        try await session.ready()
        #expect(await session.contactBook.count == 12)
        #expect(await session.selfInfo?.name == "Simulated")
        #expect(try await session.channels().map(\.name) == ["Public", "Harbour"])
        #expect(try await session.time() == Golden.date)
        #expect(await events.first { $0 == .clockCorrected(by: .seconds(60)) } != nil)
        await session.stop()
    }

    @Test func `a message is acknowledged and answered`() async throws {
        let (session, link) = Self.session()
        let events = await session.events
        try await session.start()
        try await session.ready()
        let contact = try #require(await session.contactBook.contacts.first { $0.type == .chat })
        async let success = session.send("ping", to: contact.publicKey)
        await link.sent([2])
        await link.advance()
        #expect(try await success.attempts == 1)
        await link.advance()
        let message = await events.first { if case .message = $0 { true } else { false } }
        guard case .message(let answer) = message else { throw MeshError(.internalError, "none") }
        #expect(answer.text == "pong")
        await session.stop()
    }

    @Test func `requests are answered, one after the other`() async throws {
        let (session, link) = Self.session { $0.contacts = 3 }
        try await session.start()
        try await session.ready()
        let repeater = try #require(await session.contactBook.contacts.first { $0.type == .repeater }).publicKey
        async let login = session.login(to: repeater, password: "password")
        async let status = session.status(of: repeater)
        async let telemetry = session.telemetry(of: repeater)
        for number in 1...3 {
            await link.sent([26, 27, 39], number)
            await link.advance()
        }
        #expect(try await login.firmwareLevel == 2)
        #expect(try await status.batteryMillivolts == 4_120)
        #expect(try await telemetry.map(\.values) == [[4.05]])
        await session.stop()
    }

    @Test func `a restart ends the link`() async throws {
        let (session, _) = Self.session()
        let events = await session.events
        try await session.start()
        try await session.ready()
        try await session.reboot()
        #expect(await events.first { $0 == .state(.disconnected, reason: MeshError(.linkClosed, "")) } != nil)
        try await session.start()
        try await session.ready()
        await session.stop()
    }

    @Test func `a call and a stop meet anywhere, and both end`() async throws {
        try await onLoop { actor in
            let (loop, executor) = (actor.loop, actor.loop.taskExecutor)
            let settings = SimulatedRadioSettings(
                advertInterval: .zero, messageInterval: .zero, rxLogInterval: .zero, answerDelay: .zero)
            let link = SimulatedRadioTransport(
                loop: loop, settings: settings, environment: TransportEnvironment(log: .none, linkEvents: { _ in }))
            let session = MeshCoreSession(transport: link, environment: MeshSessionEnvironment(executor: executor))
            for rounds in 0..<24 {
                try await withTaskExecutorPreference(executor) {
                    try await session.start()
                    let ready = Task(executorPreference: executor) { try? await session.ready() }
                    try await session.ready()
                    await ready.value
                }
                let call = Task(executorPreference: executor) { try? await session.channels().count }
                let given = Task(executorPreference: executor) { try? await session.channels().count }
                loop.perform(afterRounds: rounds) {
                    given.cancel()
                    _ = Task(executorPreference: executor) { await session.stop() }
                }
                _ = await call.value
                _ = await given.value
                await withTaskExecutorPreference(executor) { await session.stop() }
            }
        }
    }

    @Test func `a host has it run on its loop`() async throws {
        let threads = Mutex<Set<pthread_t>>([])
        let log = LogSink(threshold: .debug) { _, _, _ in threads.withLock { _ = $0.insert(pthread_self()) } }
        let loopThread = try await onLoop { actor in
            let executor = actor.loop.taskExecutor
            let settings = SimulatedRadioSettings(
                advertInterval: .zero, messageInterval: .zero, rxLogInterval: .zero, answerDelay: .zero)
            let link = SimulatedRadioTransport(
                loop: actor.loop, settings: settings,
                environment: TransportEnvironment(log: .none, linkEvents: { _ in }))
            let session = MeshCoreSession(
                transport: link, environment: MeshSessionEnvironment(executor: executor, log: log))
            return try await withTaskExecutorPreference(executor) {
                try await session.start()
                try await session.ready()
                #expect(try await session.channels().count == 2)
                await session.stop()
                return pthread_self()
            }
        }
        #expect(threads.withLock { $0 } == [loopThread])
    }
}
