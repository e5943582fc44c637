// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshCompanion
internal import MeshCrypto
public import MeshJournal
public import MeshLoop
public import MeshRuntime
public import MeshTransportAPI
internal import MeshWire

/// The one companion session of a radio, shared by many clients.
///
/// The host is the radio's only client, and plays the radio for its own: each has a ``VirtualCompanion``. This actor holds
/// the machines and values that decide and performs what they say. Everything on the way from a radio's frame to the
/// clients' buffers is a plain call on the loop; each client is written once a turn.
///
///     radio ──frames──▶ lane ──reply──▶ asker's queue ─┐
///                        │ └────push───▶ whose it is ──┴─ end of turn ─▶ one write per client
///     radio ◀─outbox──── lane ◀── what the host cannot answer itself ◀── clients, one command each
public actor RadioSession {

    /// One share with its open listeners.
    struct Share {
        var settings: ShareSettings
        var listeners: [LoopListener]
        var airtime: AirtimeBudget
        /// Nil for clients without TLS.
        var tls: TLSContext?
        var refusals = RefusalReports()
        var failures = FailedProofs()
    }

    public nonisolated let device: String
    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private(set) var settings: RadioSessionSettings
    let bus: EventBus
    let journal: MessageJournal
    let log: LogSink
    let wallClock: @Sendable () -> Duration
    let onListenerChange: (@Sendable (String, LoopError?) -> Void)?

    // What decides.
    var lane: CommandLaneStateMachine
    var meshRequests: MeshRequestStateMachine
    var cache = RadioCache()
    var scopes = FloodScopes()
    var clockWatch = ClockWatch()
    var acks = AckRoutes()
    var traces = TraceTags()
    var slots = ClientSlots()

    /// How far the present link has come.
    enum Stage {
        /// There is none, or its handshake is under way.
        case closed
        /// Clients are served, and their commands wait in the lane until the radio's clock is right: what it sends has the
        /// time of it.
        case settingClock
        /// Clients' commands go to the radio.
        case serving
        /// The host is ending the link. Nothing more is sent, and a message that the radio is giving out is waited for.
        case ending
    }

    // The link.
    var link: EstablishedLink?
    /// The largest frame that the link carries, as far as the transport tells.
    var maximumFrame = Int.max
    /// Sends that the transport did not take at once; what comes later has to wait behind them.
    var sendsUnderWay = 0
    /// Those sends and the tasks of the present link that have not ended; ``linkEnded()`` waits for them.
    var workUnderWay = 0
    var workEnded: CheckedContinuation<Void, Never>?
    var stage = Stage.closed
    /// Whether a link may be waited for: not while somebody has disconnected the radio, or lent it.
    var isLinkWanted = true
    /// When the last frame came from the radio.
    var lastHeard = Duration.zero
    let timer = OptionalTimer()
    var hostWaiters: [CheckedContinuation<Result<Data, MeshError>, Never>] = []

    // Messages.
    var fetching = MessageFetching()
    /// The newest entry of the journal, once known.
    var newest: JournalEntry?
    var unstored = UnstoredMessages()
    /// Clients that have gone while tasks of theirs used the journal, with the number of those that still do.
    var departing: [UInt64: Int] = [:]
    /// What is still to be stored for clients that have gone, and who waits for it.
    var departures = 0
    var departed: [UInt64: CheckedContinuation<Void, Never>] = [:]
    /// Tasks that use the journal and belong to no link; ``shutDown()`` waits for them.
    var storesUnderWay = 0
    var storesEnded: CheckedContinuation<Void, Never>?
    /// A pass over the radio's contacts is under way.
    var isPassingContacts = false

    // Clients.
    var shares: [Int: Share] = [:]
    var nextShare = 0
    var clients: [UInt64: VirtualCompanion] = [:]
    /// Connections that are not clients yet.
    var entrants: [UInt64: Entrant] = [:]
    let nextClientID: () -> UInt64
    private var dirtyClients: [VirtualCompanion] = []
    /// Empty but for the time in which they are flushed; kept for its memory.
    private var clientsBeingFlushed: [VirtualCompanion] = []
    private var framed: [UInt8] = []
    public internal(set) var counters = Counters()
    private let encoder = CompanionFrameEncoder(marker: .fromRadio, ceiling: CompanionFraming.largestCeiling)

    /// A session without a link and without shares. `nextClientID` numbers clients over all sessions of the daemon; it
    /// is called on the loop. `wallClock` tells the time since 1970. `onListenerChange` is told on the loop that the file of
    /// a share's socket has gone, by its path, and without an error that it is back.
    public init(
        device: String, settings: RadioSessionSettings = RadioSessionSettings(), loop: EventLoop, bus: EventBus,
        journal: MessageJournal, log: LogSink, wallClock: @escaping @Sendable () -> Duration,
        onListenerChange: (@Sendable (String, LoopError?) -> Void)? = nil,
        nextClientID: sending @escaping () -> UInt64
    ) {
        self.device = device
        self.settings = settings
        self.loop = loop
        self.bus = bus
        self.journal = journal
        self.log = log.adding([("device", device)])
        self.wallClock = wallClock
        self.onListenerChange = onListenerChange
        self.nextClientID = nextClientID
        lane = CommandLaneStateMachine(configuration: settings.lane)
        meshRequests = MeshRequestStateMachine(configuration: settings.meshRequests)
    }

    /// Other times and limits from now on; those of the lane and of mesh requests stay.
    public func update(_ settings: RadioSessionSettings) {
        self.settings = settings
        armTimer()
    }

    // MARK: Radio → clients

    /// One frame came from the radio.
    func received(_ frame: Data) {
        counters.framesReceived += 1
        lastHeard = loop.now
        // Answers from the mesh come as pushes; the radio's own telemetry, which ends a command, is not among them.
        if let first = frame.first, PushCode.isPush(first), route(frame) { return }
        let command = lane.commandInFlight
        switch lane.frameReceived(frame, now: loop.now) {
        case .push:
            // Brings no deadline nearer: nothing to arm.
            return pushed(frame)
        case .reply(let requester, let isLast):
            // Any reply ends a command that this version does not know, another interface's message too.
            if requester != .host { storeStray(frame) }
            replied(frame, to: command, requester, isLast: isLast)
            if isLast { commandEnded(command, with: frame) }
            isLast ? pump() : armTimer()
        case .leadAnswered:
            learn(frame, from: command)
            pump()
        case .orphan(let isLast):
            storeStray(frame)
            learn(frame, from: command)
            if isLast { commandEnded(command, with: frame) }
            isLast ? pump() : armTimer()
        case .observation:
            counters.unaskedReplies += 1
            storeStray(frame)
            cache.observed(frame, now: loop.now)
            // Another interface of the radio may have set it.
            if frame.first == ReplyCode.ok.rawValue { scopes.doubt() }
        case .late:
            counters.lateReplies += 1
            storeStray(frame)
            armTimer()
        case .endless(let requester):
            answerIsEndless(requester)
        case .fenceAnswered:
            log(.notice, "the radio answers again")
            pump()
        }
    }

    /// A push that is nobody's in particular.
    private func pushed(_ frame: Data) {
        announce(frame)
        switch frame.first.flatMap(PushCode.init) {
        case .receivedPacketLog:
            broadcast(frame) { $0.connection.receivesPacketLogs }
        case .messageWaiting:
            // Clients are told when the message is in the journal.
            fetchMessages()
        default:
            cache.pushReceived(frame, now: loop.now)
            broadcast(frame)
        }
    }

    /// Gives a frame to every client, or to those that want it.
    func broadcast(_ frame: Data, to wants: (VirtualCompanion) -> Bool = { _ in true }) {
        var isEncoded = false
        let kind = OutgoingQueue.Kind(frame)
        for client in clients.values where wants(client) {
            if client.hold != nil {
                holdBack(client, frame)
                continue
            }
            if !isEncoded { encode(frame) }
            isEncoded = true
            offer(client, kind)
        }
    }

    /// Gives one client a push.
    func push(_ client: VirtualCompanion, _ frame: Data) {
        guard client.hold != nil else { return give(client, frame) }
        holdBack(client, frame)
    }

    private func holdBack(_ client: VirtualCompanion, _ frame: Data) {
        client.hold?.pushes.append(frame)
        if let count = client.hold?.pushes.count, count >= Self.heldPushes { release(client) }
    }

    private static let heldPushes = 64

    /// What was held back from a client goes out.
    func release(_ client: VirtualCompanion) {
        guard let pushes = client.hold?.pushes else { return }
        client.hold = nil
        for frame in pushes {
            encode(frame)
            offer(client, OutgoingQueue.Kind(frame))
        }
    }

    /// Gives one frame to one client.
    func give(_ client: VirtualCompanion, _ frame: Data) {
        encode(frame)
        offer(client, .precious)
    }

    private func encode(_ frame: Data) {
        framed.removeAll(keepingCapacity: true)
        // Any frame that came whole from a transport is within the ceiling.
        frame.withUnsafeBytes { try? encoder.encode(RawSpan(_unsafeBytes: $0), into: &framed) }
    }

    private func offer(_ client: VirtualCompanion, _ kind: OutgoingQueue.Kind) {
        client.connection.offer(framed, kind)
        flushLater(client)
    }

    /// Flushes the client at the end of the turn, and ends its connection then if it has said all and got all.
    func flushLater(_ client: VirtualCompanion) {
        guard !client.connection.isDirty else { return }
        client.connection.isDirty = true
        if dirtyClients.isEmpty { loop.atEndOfTurn { self.flush() } }
        dirtyClients.append(client)
    }

    private func flush() {
        // The end of one client may have something said to another, also to one that has been flushed: that one is on the
        // list of the next time then.
        swap(&dirtyClients, &clientsBeingFlushed)
        for client in clientsBeingFlushed {
            let connection = client.connection
            connection.isDirty = false
            connection.flush()
            if connection.hasSaidAll, connection.isFlushed, client.isIdle { connection.finish() }
        }
        clientsBeingFlushed.removeAll(keepingCapacity: true)
    }
}

/// A timer that is made when it is first needed: a session is made before its loop runs.
final class OptionalTimer {
    var timer: LoopTimer?
    var deadline: Duration?
}
