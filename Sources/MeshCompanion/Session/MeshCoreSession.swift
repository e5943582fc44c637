// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
public import MeshTransportAPI

/// A session with a MeshCore companion radio over any ``MeshTransport``: its commands as methods, what it tells as
/// events, and the care that the protocol wants.
///
/// ```swift
/// let session = MeshCoreSession(transport: transport)
/// let events = await session.events
/// try await session.start()
/// let battery = try await session.batteryAndStorage()
/// for await case .message(let message) in events { … }
/// ```
///
/// The protocol has no request numbers: replies are told apart by their kind alone, and the radio keeps one of everything.
/// So one command is in flight at a time (``CommandLaneStateMachine``), and one request to another node
/// (``MeshRequestStateMachine``). A caller that is cancelled, or gives up, leaves its place behind: a reply that still
/// comes goes to nobody, never to the next caller. Calls wait for their turn in the order in which they were made.
///
/// ``start()`` returns when the link is up and the first command is on its way. Everything else goes on meanwhile, told by
/// the state: `connecting`, `connected`, with the radio's first answer `syncing`, and after clock, contacts and messages
/// `ready`. Nothing needs to wait for that: whatever is called after `start()` goes out after the handshake. Who wants all of
/// it awaits ``ready()``.
///
/// A radio that answers nothing makes calls fail with `operation.timeout` and ends the link. When a link has ended, the
/// state is `disconnected`, everybody who waited has got an error, and `start()` may be called again; when to do that is
/// for the caller to decide. A session that was started must be stopped, or its link have ended, before it is let go.
///
/// All methods throw a ``MeshError``: `link.not-connected` without a link, `operation.timeout` without an answer,
/// `cancelled` when the task is cancelled or the session stopped, `queue.full` when too many calls wait,
/// `argument.invalid` for a value that has no place in the frame, `radio.…` for what the radio refuses, and the
/// transport's errors. What a method's own description names comes on top.
public actor MeshCoreSession {
    /// What the session has been through since it was made.
    public struct Counters: Sendable, Hashable {
        public var framesReceived: UInt64 = 0
        public var commandsSent: UInt64 = 0
        /// Commands whose reply did not come in time.
        public var commandTimeouts: UInt64 = 0
        /// Replies that came after their command had timed out.
        public var lateReplies: UInt64 = 0
        /// Replies that nobody had asked for: radios send replies to all their interfaces (companion-protocol §1.3).
        public var unaskedReplies: UInt64 = 0
        /// Frames that could not be read.
        public var unreadableFrames: UInt64 = 0
        /// Events that a slow subscriber lost, over all subscribers.
        public var eventsDropped: UInt64 = 0
    }

    enum Phase {
        case idle
        /// The transport is connecting; `isStopped` once nobody wants it.
        case connecting(isStopped: Bool)
        case up
        /// Everybody who waited has been told; the transport is closing.
        case ending
    }

    struct InFlight {
        let slot: UInt64
        let number: UInt64
        let isRequest: Bool
    }

    /// A subscriber of events.
    struct Subscriber {
        let continuation: AsyncStream<MeshSessionEvent>.Continuation
        let overflow: MeshSessionEvent.Overflow
        let takesHeard: Bool
        /// How many events it has lost and not been told of.
        var lost = 0
    }

    let transport: any MeshTransport
    let settings: MeshSessionSettings
    let environment: MeshSessionEnvironment
    let clock: SessionClock

    // The link
    var phase = Phase.idle
    /// Why the link ends. The first reason counts.
    var endReason: MeshError?
    var idleWaiters: [CheckedContinuation<Void, Never>] = []
    /// Tasks that end with the link.
    var tasksUnderWay = 0
    var tasksEnded: CheckedContinuation<Void, Never>?
    var sendsUnderWay = 0
    var sendsEnded: [CheckedContinuation<Void, Never>] = []
    var pipelinesReads = false

    // The lanes
    var lane: CommandLaneStateMachine
    var requests: MeshRequestStateMachine
    var slots: [UInt64: CommandSlot] = [:]
    var lastNumber: UInt64 = 0
    /// What the lane has in flight.
    var inFlight: InFlight?
    /// Calls that wait for the end of the handshake.
    var held: [UInt64] = []
    var deliveries: [UInt64: Delivery] = [:]
    var timer: (task: Task<Void, Never>, deadline: Duration)?

    // What is known and under way
    /// Whether the handshake is over.
    var isServing = false
    var lastHeard = Duration.zero
    var nextProbe: Duration?
    var nextPoll: Duration?
    var isFetching = false
    var wantsFetch = false
    var fetchWaiters: [CheckedContinuation<Void, Never>] = []
    var staleContacts: [PublicKey] = []
    var isRefreshing = false
    var lastTimestamp: UInt32 = 0

    // Subscribers
    var subscribers: [UInt64: Subscriber] = [:]
    /// Fetched messages that nobody has been told of.
    var untold: [MeshSessionEvent] = []
    var readyWaiters: [UInt64: CheckedContinuation<Result<Void, MeshError>, Never>] = [:]

    /// How far the session is.
    public internal(set) var state = MeshSessionState.disconnected
    /// Who the radio is and how it is set, as it told last.
    public internal(set) var selfInfo: SelfInfo?
    /// The radio's board and firmware, as it told last; nil for firmware that does not know the question.
    public internal(set) var deviceInfo: DeviceInfo?
    /// The copy of the radio's contacts. It outlives a link, and is true while the state is `ready`.
    public internal(set) var contactBook = ContactBook()
    public internal(set) var counters = Counters()

    /// A session without a link.
    public init(
        transport: any MeshTransport, settings: MeshSessionSettings = MeshSessionSettings(),
        environment: MeshSessionEnvironment = MeshSessionEnvironment()
    ) {
        self.transport = transport
        self.settings = settings
        self.environment = environment
        clock = SessionClock(environment.clock)
        lane = CommandLaneStateMachine(configuration: settings.lane)
        requests = MeshRequestStateMachine(configuration: settings.requests)
    }

    func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }
}
