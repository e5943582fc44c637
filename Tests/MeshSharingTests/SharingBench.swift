// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshCompanion
import MeshJournal
import MeshLoop
import MeshRuntime
import MeshTestSupport
import MeshTransportAPI
import MeshWire
import Synchronization
import Testing

@testable import MeshSharing

/// One device `roof` with an ``AnsweringRadio`` behind it and a share on a Unix socket, on a loop of its own.
actor SharingBench {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let session: RadioSession
    nonisolated let bus: EventBus
    nonisolated let journal: MessageJournal
    nonisolated let clock: BenchClock
    private let coordinator: ReconnectionCoordinator
    private var radios: [AnsweringRadio] = []
    private var lastClient: UInt64 = 0
    let folder: String
    var path: String { "\(folder)/share.sock" }

    private init(
        _ loop: EventLoop, _ folder: String, _ session: RadioSession, _ bus: EventBus, _ journal: MessageJournal,
        _ coordinator: ReconnectionCoordinator, _ clock: BenchClock
    ) {
        self.loop = loop
        self.folder = folder
        self.session = session
        self.bus = bus
        self.journal = journal
        self.coordinator = coordinator
        self.clock = clock
    }

    /// Runs `body` with a bench whose radio is ready, and fails when a handle is left open. All is on one loop and on Unix
    /// sockets, so that its time can be virtual: nobody misses a deadline.
    static func run(
        time: LoopTime = .virtual, wallClock: Duration = .zero,
        lane: CommandLaneConfiguration = CommandLaneConfiguration(),
        session adjust: @Sendable (inout RadioSessionSettings) -> Void = { _ in },
        share: @Sendable (inout ShareSettings) -> Void = { _ in }, intent: LinkIntent = .connect,
        answers: @escaping @Sendable (Data) -> [Data] = AnsweringRadio.usual,
        _ body: @Sendable (isolated SharingBench) async throws -> Void
    ) async throws {
        // As in the daemon: writing to a client that has gone is an error, not a signal.
        signal(SIGPIPE, SIG_IGN)
        var template = Array("/tmp/meshhost-sharing-XXXXXX".utf8CString)
        let folder = String(cString: try #require(mkdtemp(&template)))
        try await onLoop(time: time) { actor in
            let bench = try await make(actor.loop, folder, wallClock, lane, adjust)
            do {
                try await bench.begin(share, intent, answers)
                try await body(bench)
            } catch {
                Issue.record(error)
            }
            await bench.end()
        }
        for name in ["intents.json", "journal.db", "journal.db-wal", "journal.db-shm", "journal.db.lock"] {
            unlink("\(folder)/\(name)")
        }
        rmdir(folder)
    }

    private static func make(
        _ loop: EventLoop, _ folder: String, _ wallClock: Duration, _ lane: CommandLaneConfiguration,
        _ adjust: @Sendable (inout RadioSessionSettings) -> Void, isolation: isolated (any Actor)? = #isolation
    ) async throws -> SharingBench {
        let bus = EventBus(loop: loop, wallClock: { .zero })
        let intents = try await IntentStore.open(directory: folder, loop: loop, log: .none)
        let coordinator = ReconnectionCoordinator(
            loop: loop, events: bus, intents: intents, log: .none, wallClock: { .zero })
        final class Counter { var value: UInt64 = 0 }
        let counter = Counter()
        let journal = try await MessageJournal.open(
            path: "\(folder)/journal.db", settings: JournalSettings(), loop: loop, log: .none)
        var settings = RadioSessionSettings()
        settings.lane = lane
        // What a test lets wait does not run out while the test waits for a processor.
        settings.meshRequests.margin = .seconds(600)
        settings.meshRequestWait = .seconds(600)
        adjust(&settings)
        let clock = BenchClock(wallClock)
        let session = RadioSession(
            device: "roof", settings: settings, loop: loop, bus: bus, journal: journal, log: .none,
            wallClock: { clock.time }
        ) {
            counter.value += 1
            return counter.value
        }
        return SharingBench(loop, folder, session, bus, journal, coordinator, clock)
    }

    private func begin(
        _ share: @Sendable (inout ShareSettings) -> Void, _ intent: LinkIntent,
        _ answers: @escaping @Sendable (Data) -> [Data]
    ) async throws {
        var settings = ShareSettings(
            name: "test", type: "companion-unix", addresses: [SocketAddress(unixPath: path)], role: .chat)
        share(&settings)
        _ = try await session.openShare(settings)
        var policy = ReconnectionPolicy()
        policy.firstDelay = .milliseconds(2)
        policy.maximumDelay = .milliseconds(20)
        policy.contentionCloses = 0
        let ready = bus.subscribe(EventFilter(types: ["link.ready"]))
        try await coordinator.addDevice(
            DeviceSettings(
                name: "roof", link: DeviceLinkSettings(policy: policy), session: session, initialIntent: intent
            ) { environment in
                let radio = AnsweringRadio(self.loop, environment, answers: answers)
                self.assumeIsolated { $0.radios.append(radio) }
                return radio
            })
        guard intent == .connect else { return }
        var events = ready.makeAsyncIterator()
        _ = await events.next()
    }

    /// What a person asks of the device.
    func perform(_ command: LinkCommand) async throws {
        try await coordinator.perform(command, "roof")
    }

    private func end() async {
        await session.closeShares()
        await coordinator.shutDown(within: .seconds(600))
        await session.shutDown()
        await journal.close()
    }

    /// The device's transport.
    var radio: AnsweringRadio { radios[radios.count - 1] }

    /// A client that has connected.
    func client() async throws -> ShareTestClient {
        let client = ShareTestClient(loop)
        try await client.connect(path)
        return client
    }

    /// Waits for the next event of a type.
    func event(_ type: String, after action: () async throws -> Void) async throws -> HostEvent {
        let subscription = bus.subscribe(EventFilter(types: [type]))
        try await action()
        var events = subscription.makeAsyncIterator()
        return try #require(await events.next())
    }
}

/// The host's clock, which goes on only when a test says so.
final class BenchClock: Sendable {
    private let value: Mutex<Duration>

    init(_ time: Duration) { value = Mutex(time) }

    var time: Duration { value.withLock { $0 } }

    func set(_ time: Duration) { value.withLock { $0 = time } }
}

/// A companion client on a Unix socket.
actor ShareTestClient {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private var stream: LoopStream?
    private var decoder = CompanionFrameDecoder(.init(marker: .fromRadio))
    private var frames: [Data] = []
    private var waiter: CheckedContinuation<Data?, Never>?
    private(set) var isClosed = false

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    func connect(_ path: String) async throws {
        let stream = LoopStream(unix: loop)
        self.stream = stream
        try await stream.connect(to: SocketAddress(unixPath: path))
        stream.startReading { bytes in
            self.decoder.bytesReceived(RawSpan(_unsafeBytes: bytes), now: .zero) { payload in
                self.frames.append(payload.withUnsafeBytes { Data($0) })
            }
            self.wake()
        } onEnd: { _ in
            self.isClosed = true
            self.wake()
        }
    }

    /// Sends one command in its framing.
    func send(_ command: Data) async throws {
        try await sendRaw(Data([0x3C, UInt8(command.count), 0]) + command)
    }

    func sendRaw(_ bytes: Data) async throws {
        try await stream?.write(bytes)
    }

    func stopReading() {
        stream?.pauseReading()
    }

    func close() {
        stream?.close()
    }

    /// Closes this side only.
    func finishSending() {
        shutdown(stream?.descriptor ?? -1, Int32(SHUT_WR))
    }

    /// The next frame; nil once the connection has ended.
    func next() async -> Data? {
        if !frames.isEmpty { return frames.removeFirst() }
        if isClosed { return nil }
        return await withCheckedContinuation { waiter = $0 }
    }

    func ask(_ command: Data) async throws -> Data? {
        try await send(command)
        return await next()
    }

    private func wake() {
        guard let waiter else { return }
        if !frames.isEmpty {
            self.waiter = nil
            waiter.resume(returning: frames.removeFirst())
        } else if isClosed {
            self.waiter = nil
            waiter.resume(returning: nil)
        }
    }
}
