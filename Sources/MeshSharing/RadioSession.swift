// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
public import MeshCompanion
public import MeshLoop
public import MeshRuntime
public import MeshTransportAPI
internal import MeshWire

/// The one companion session of a radio, shared by many clients.
///
/// The host is the radio's only client. This actor drives the ``CommandLaneStateMachine``: it sends what the lane says,
/// gives each reply to its asker, each push to everybody, and an error frame to whoever asks while the radio is away.
/// Everything on the way from a radio's frame to the clients' buffers is a plain call on the loop; each client is written
/// once a turn.
///
///     radio ──frames──▶ lane ──reply──▶ asker's queue ─┐
///                        │ └────push───▶ every queue ──┴─ end of turn ─▶ one write per client
///     radio ◀─outbox──── lane ◀──admitted commands────── clients
public actor RadioSession {

    /// One share with its open listeners.
    struct Share {
        var settings: ShareSettings
        var listeners: [LoopListener]
    }

    /// What this session and its clients have been through.
    public struct Counters: Sendable, Hashable {
        /// Frames from the radio.
        public var framesReceived: UInt64 = 0
        /// Commands sent to the radio.
        public var commandsSent: UInt64 = 0
        /// Commands answered by the host because the radio was away.
        public var commandsWhileAway: UInt64 = 0
        /// Commands that did not reach the radio because of their length or the client's role.
        public var commandsRefused: UInt64 = 0
        /// Commands whose reply did not come in time.
        public var commandTimeouts: UInt64 = 0
        /// Replies that nobody had asked for.
        public var unaskedReplies: UInt64 = 0
        /// Replies that came after their command had timed out.
        public var lateReplies: UInt64 = 0
        /// Clients whose connection ended, by reason.
        public var left: [LeaveReason: UInt64] = [:]
    }

    public nonisolated let device: String
    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    let bus: EventBus
    let log: LogSink
    private var lane: CommandLaneStateMachine
    private let laneTimer: OptionalTimer
    /// The link being served.
    var link: EstablishedLink?
    /// Sends of the present link that have not ended; ``linkLost(reason:)`` waits for them.
    var sendsUnderWay = 0
    var sendsEnded: CheckedContinuation<Void, Never>?
    /// Whether clients' commands go to the radio: the handshake is over.
    var isServing = false
    var shares: [Int: Share] = [:]
    var nextShare = 0
    var clients: [UInt64: ShareClient] = [:]
    let nextClientID: () -> UInt64
    private var dirtyClients: [ShareClient] = []
    private var framed: [UInt8] = []
    private var hostWaiters: [CheckedContinuation<Result<Data, MeshError>, Never>] = []
    public internal(set) var counters = Counters()
    private let encoder = CompanionFrameEncoder(marker: .fromRadio, ceiling: CompanionFraming.largestCeiling)

    /// A session without a link and without shares. `nextClientID` numbers clients over all sessions of the daemon; it
    /// is called on the loop.
    public init(
        device: String, loop: EventLoop, bus: EventBus, log: LogSink,
        lane configuration: CommandLaneConfiguration = CommandLaneConfiguration(),
        nextClientID: sending @escaping () -> UInt64
    ) {
        self.device = device
        self.loop = loop
        self.bus = bus
        self.log = log.adding([("device", device)])
        self.nextClientID = nextClientID
        lane = CommandLaneStateMachine(configuration: configuration)
        laneTimer = OptionalTimer()
    }

    // MARK: Radio → clients

    /// One frame came from the radio.
    func received(_ frame: Data) {
        counters.framesReceived += 1
        let action = lane.frameReceived(frame, now: loop.now)
        switch action {
        case .push:
            broadcast(frame)
        case .pushEndsCommand:
            broadcast(frame)
            pump()
        case .reply(let requester, let isLast):
            deliver(frame, to: requester)
            isLast ? pump() : armLaneTimer()
        case .orphan(let isLast):
            isLast ? pump() : armLaneTimer()
        case .observation:
            counters.unaskedReplies += 1
        case .late:
            counters.lateReplies += 1
            armLaneTimer()
        case .fenceAnswered:
            log(.notice, "the radio answers again")
            pump()
        }
        announce(frame, action)
    }

    private func broadcast(_ frame: Data) {
        guard !clients.isEmpty else { return }
        encode(frame)
        let kind = OutgoingQueue.Kind(frame)
        for client in clients.values { offer(client, kind) }
    }

    private func deliver(_ frame: Data, to requester: LaneRequester) {
        if requester == .host {
            if !hostWaiters.isEmpty { hostWaiters.removeFirst().resume(returning: .success(frame)) }
        } else if let client = clients[requester.client] {
            answer(client, with: CompanionFrame.shown(frame, to: client.role))
        }
    }

    /// Gives one frame to one client.
    func answer(_ client: ShareClient, with frame: Data) {
        encode(frame)
        offer(client, .precious)
    }

    private func encode(_ frame: Data) {
        framed.removeAll(keepingCapacity: true)
        // Any frame that came whole from a transport is within the ceiling.
        frame.withUnsafeBytes { try? encoder.encode(RawSpan(_unsafeBytes: $0), into: &framed) }
    }

    private func offer(_ client: ShareClient, _ kind: OutgoingQueue.Kind) {
        client.offer(framed, kind)
        guard !client.isDirty else { return }
        client.isDirty = true
        if dirtyClients.isEmpty { loop.atEndOfTurn { self.flush() } }
        dirtyClients.append(client)
    }

    private func flush() {
        for client in dirtyClients {
            client.isDirty = false
            client.flush()
        }
        dirtyClients.removeAll(keepingCapacity: true)
    }

    // MARK: Clients → radio

    /// One frame came from a client.
    func frameReceived(_ frame: Data, from client: ShareClient) {
        switch CommandAdmission.of(frame, role: client.role) {
        case .refused(let refusal):
            counters.commandsRefused += 1
            answer(client, with: refusal)
        case .admitted(let expectation):
            guard isServing else {
                counters.commandsWhileAway += 1
                return answer(client, with: CompanionFrame.error(.badState))
            }
            switch lane.commandReceived(
                Self.adapted(frame), expecting: expectation, from: LaneRequester(client: client.id))
            {
            case .queued:
                // Half of the lane's limit: what is in the socket already still finds room.
                if lane.queuedCommands(of: LaneRequester(client: client.id)) >= 32 { client.pause() }
                pump()
            case .refuseLinkAway:
                counters.commandsWhileAway += 1
                answer(client, with: CompanionFrame.error(.badState))
            case .refuseQueueFull:
                answer(client, with: CompanionFrame.error(.tableFull))
            }
        }
    }

    /// The radio keeps one protocol version for everybody, the last one asked for; the host's stays in force.
    private static func adapted(_ frame: Data) -> Data {
        frame.first == CommandCode.deviceQuery.rawValue ? CompanionFrame.deviceQuery(version: protocolVersion) : frame
    }

    /// The version the host speaks to the radio: message frames with signal strength (codes 10 and 11).
    static let protocolVersion: UInt8 = 3

    /// Asks the radio something on the host's own behalf. Throws when the radio is away or does not answer, and after
    /// ``abandonQuestions()``.
    func ask(_ frame: Data, expecting expectation: ReplyExpectation) async throws(MeshError) -> Data {
        if Task.isCancelled { throw MeshError(.cancelled, "the link is being ended") }
        switch lane.commandReceived(frame, expecting: expectation, from: .host) {
        case .queued: break
        case .refuseLinkAway: throw MeshError(.notConnected, "the radio is away")
        case .refuseQueueFull: throw MeshError(.queueFull, "too many commands wait for the radio")
        }
        let result = await withCheckedContinuation { continuation in
            hostWaiters.append(continuation)
            pump()
        }
        return try result.get()
    }

    /// Nobody waits for the answers to the host's own questions any more: the link is being ended.
    func abandonQuestions() {
        let waiters = hostWaiters
        hostWaiters = []
        for waiter in waiters { waiter.resume(returning: .failure(MeshError(.cancelled, "the link is being ended"))) }
    }

    /// Sends what the lane has next, as long as it has something.
    func pump() {
        while case .send(let frame, let requester) = lane.nextCommand(now: loop.now) {
            counters.commandsSent += 1
            send(frame)
            if lane.queuedCommands(of: requester) < 16 { clients[requester.client]?.resume() }
        }
        armLaneTimer()
    }

    /// Sends one frame. Nearly always the transport takes it before this returns.
    private func send(_ frame: Data) {
        guard let link, sendsUnderWay > 0 || !link.sendAtOnce(frame) else { return }
        sendsUnderWay += 1
        Task.immediate {
            do {
                try await link.send(frame)
            } catch {
                // A link that cannot send is being lost: its end comes as the end of its frames.
                log(.debug, "a frame could not be sent", [("error", "\(error)")])
            }
            sendsUnderWay -= 1
            if sendsUnderWay == 0 {
                sendsEnded?.resume()
                sendsEnded = nil
            }
        }
    }

    // MARK: The lane's time

    /// Sees to it that a timer fires at the lane's deadline or before. One that is set for an earlier command's deadline
    /// stays: firing early is harmless, and cheaper than setting it anew for each command.
    private func armLaneTimer() {
        guard lane.isOpen else {
            // Without a link there is nothing to time: the session holds no handle then.
            laneTimer.timer = nil
            laneTimer.deadline = nil
            return
        }
        guard let deadline = lane.nextDeadline, laneTimer.deadline.map({ deadline < $0 }) ?? true else { return }
        laneTimer.deadline = deadline
        let timer = laneTimer.timer ?? LoopTimer(loop)
        laneTimer.timer = timer
        timer.schedule(after: deadline - loop.now) { self.laneDeadlineReached() }
    }

    private func laneDeadlineReached() {
        laneTimer.deadline = nil
        switch lane.deadlineReached(now: loop.now) {
        case .none:
            break
        case .timedOut(let requester):
            counters.commandTimeouts += 1
            log(.warning, "the radio did not answer a command in time")
            if let requester { fail(requester, MeshError(.operationTimeout, "the radio did not answer in time")) }
        case .sendFence(let frame):
            send(frame)
        case .linkDead:
            endLink(
                MeshError(.operationTimeout, "the radio is connected and does not answer; restart it if this goes on"))
        }
        armLaneTimer()
    }

    private func fail(_ requester: LaneRequester, _ error: MeshError) {
        if requester == .host {
            if !hostWaiters.isEmpty { hostWaiters.removeFirst().resume(returning: .failure(error)) }
        } else if let client = clients[requester.client] {
            answer(client, with: CompanionFrame.error(.badState))
        }
    }

    // MARK: The lane's life

    func openLane() {
        lane.linkReady()
    }

    /// Nobody waits any longer: each command in flight or queued gets its error.
    func closeLane(_ error: MeshError) {
        isServing = false
        for requester in lane.linkLost() { fail(requester, error) }
        armLaneTimer()
        for client in clients.values { client.resume() }
    }

    /// The client is gone; its command in flight keeps the lane until the reply.
    func leaveLane(_ client: ShareClient) {
        lane.requesterLeft(LaneRequester(client: client.id))
    }
}

/// A timer that is made when it is first needed: a session is made before its loop runs.
final class OptionalTimer {
    var timer: LoopTimer?
    var deadline: Duration?
}
