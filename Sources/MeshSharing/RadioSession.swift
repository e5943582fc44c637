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
        var refusals = RefusalReports()
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
    var lane: CommandLaneStateMachine
    let laneTimer: OptionalTimer
    /// The link being served.
    var link: EstablishedLink?
    /// The largest frame that the link carries, as far as the transport tells.
    var maximumFrame = Int.max
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
    var hostWaiters: [CheckedContinuation<Result<Data, MeshError>, Never>] = []
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
        flushLater(client)
    }

    /// Flushes the client at the end of the turn, and ends its connection then if it has said all and got all.
    func flushLater(_ client: ShareClient) {
        guard !client.isDirty else { return }
        client.isDirty = true
        if dirtyClients.isEmpty { loop.atEndOfTurn { self.flush() } }
        dirtyClients.append(client)
    }

    private func flush() {
        for client in dirtyClients {
            client.isDirty = false
            client.flush()
            if client.hasSaidAll, client.isFlushed, !lane.isAwaited(by: LaneRequester(client: client.id)) {
                client.finish()
            }
        }
        dirtyClients.removeAll(keepingCapacity: true)
    }

    // MARK: Clients → radio

    /// One frame came from a client.
    func frameReceived(_ frame: Data, from client: ShareClient) {
        switch CommandAdmission.of(frame, role: client.role) {
        case .refused(let refusal):
            counters.commandsRefused += 1
            answerInTurn(client, with: refusal)
        case .admitted where !isServing:
            counters.commandsWhileAway += 1
            answerInTurn(client, with: CompanionFrame.error(.badState))
        case .admitted where frame.count > maximumFrame:
            counters.commandsRefused += 1
            answerInTurn(client, with: CompanionFrame.error(.illegalArgument))
        case .admitted(let expectation):
            switch lane.commandReceived(
                Self.adapted(frame), expecting: expectation, from: LaneRequester(client: client.id))
            {
            case .queued:
                pump()
            case .refuseLinkAway:
                counters.commandsWhileAway += 1
                answerInTurn(client, with: CompanionFrame.error(.badState))
            case .refuseQueueFull:
                // Not reached: a client's bytes are parsed only while there is room.
                answerInTurn(client, with: CompanionFrame.error(.tableFull))
            }
        }
    }

    /// Answers a command without the radio, behind the answers to the client's earlier commands.
    private func answerInTurn(_ client: ShareClient, with frame: Data) {
        switch lane.answerReceived(frame, for: LaneRequester(client: client.id)) {
        case .queued: break
        case .answerNow, .queueFull: answer(client, with: frame)
        }
    }

    /// How many more commands of a client may be parsed now. The lane's own limit leaves room beyond it for what a partial
    /// frame whose rest never came may turn out to hold.
    func room(for client: ShareClient) -> Int {
        Self.commandsPerClient - lane.queuedCommands(of: LaneRequester(client: client.id))
    }

    private static let commandsPerClient = 64

    /// The radio keeps one protocol version for everybody, the last one asked for; the host's stays in force.
    private static func adapted(_ frame: Data) -> Data {
        frame.first == CommandCode.deviceQuery.rawValue
            ? CompanionFrame.deviceQuery(version: CompanionFrame.hostProtocolVersion) : frame
    }
}

/// A timer that is made when it is first needed: a session is made before its loop runs.
final class OptionalTimer {
    var timer: LoopTimer?
    var deadline: Duration?
}
