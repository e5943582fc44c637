// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshRuntime
internal import MeshTransportAPI

/// One controller and everything on it: the driver of the machines of MeshBluetoothStack. It decides nothing; it owns the
/// line and the timer, and carries out what the machines order. Aspects in files of their own: `+Line`, `+Commands`,
/// `+Events`, `+Use`, `+Scanning`, `+Connecting`, `+Pairing`, `+Bonds`, `+Examine`.
///
/// It opens its line when it is used for the first time, opens it anew whenever it is lost, and closes it in ``close()``.
actor HCIController {
    /// Who ordered a command, and so gets its outcome.
    enum CommandWaiter {
        case setup
        case scan
        case creation
        case cancellation
        case link(HCILink)
        /// Of a link that nobody wanted.
        case nobody
    }

    struct LinkSettings: Sendable {
        /// What it is looked for by, if that is a name.
        var name: String?
        var passkey: BLEPasskey?
        var takesPairing = true
        var options = HCILinkOptions()
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let port: HCIPort
    nonisolated let log: LogSink
    nonisolated let deadlines: HCIDeadlines
    /// Whether an adapter that is switched on is taken from whoever uses it.
    nonisolated let takesFromOthers: Bool
    // Line.
    var line: (any HCILine)?
    /// Open, and not in use yet.
    var opened: (any HCILine)?
    var reopening: ReopeningPolicy
    var capture: HCICapture?
    var runner: Task<Void, Never>?
    /// Resumed when the open line has ended.
    var lineEnd: CheckedContinuation<Void, Never>?
    var timer: LoopTimer?
    // Machines of the controller.
    var flow: HCICommandFlowStateMachine<CommandWaiter>
    /// Why it is being reset; nil when that is over, or for no reason but that its line was opened.
    var resetCause: HCICommandFlowStateMachine<CommandWaiter>.Cause?
    var setup: ControllerSetupStateMachine
    var scan: ScanStateMachine?
    var creation: ConnectStateMachine
    var inbound = InboundOrderStateMachine()
    var outbound: ACLTransmitStateMachine?
    var sightings = DeviceSightings()
    var attempts = PairingAttemptPolicy()
    var quality = LinkQuality()
    var resolver = IdentityResolver()
    /// Attributes of devices without a bond, for as long as this program runs.
    var databases: [DeviceAddress: RemoteDatabase] = [:]
    /// What it is and can do; nil while it cannot be used.
    var descriptor: ControllerDescriptor?
    var links: [ConnectionHandle: HCILink] = [:]
    /// By name, the device that was last found by it.
    var found: [String: DeviceAddress] = [:]
    /// By name, a device that was heard with it and is not the one that is paired; only names that are looked for.
    var namesakes: [String: DeviceAddress] = [:]
    // Bonds.
    nonisolated let file: StateFile?
    var book: BondBook
    var hasLoadedBonds = false
    var hasUnsavedBonds = false
    var saver: Task<Void, Never>?
    /// For a write that failed, how long after it the next one comes.
    var saveTimer: LoopTimer?
    var saveDelay: Duration?
    /// Why bonds are not read or stored.
    var bondTrouble: String?
    // Who waits.
    var nextSerial: UInt64 = 0
    var inquirers: [UInt64: CheckedContinuation<Result<ControllerDescriptor, MeshError>, Never>] = [:]
    var observers: [UInt64: @Sendable (BluetoothState) -> Void] = [:]
    var settlers: [CheckedContinuation<Void, Never>] = []
    /// Wait until bonds are stored.
    var storers: [CheckedContinuation<Void, Never>] = []
    var seekers: [UInt64: Seeker] = [:]
    var scanners: [UInt64: Scanner] = [:]
    var isScanPaused = false
    var scanEnds: [CheckedContinuation<Void, Never>] = []
    /// How many want a link, each with an attempt, a turn or a search of its own.
    var linkSeekers = 0
    var connecting: Connecting?
    nonisolated let turns: TurnQueue

    /// Without a file, bonds are forgotten at the end.
    init(
        loop: EventLoop, port: HCIPort, file: StateFile?, capture: CaptureSettings? = nil, takesFromOthers: Bool = true,
        log: LogSink, deadlines: HCIDeadlines = HCIDeadlines()
    ) {
        self.loop = loop
        self.port = port
        turns = TurnQueue(loop: loop)
        self.file = file
        self.capture = capture.map { HCICapture(loop, $0, log: log.adding([("controller", "\(port)")])) }
        self.takesFromOthers = takesFromOthers
        self.log = log
        self.deadlines = deadlines
        reopening = ReopeningPolicy(bounds: deadlines.reopening)
        var random = SystemRandomNumberGenerator()
        var address: DeviceAddress?
        while address == nil { address = DeviceAddress.staticRandom(random.next()) }
        book = BondBook(randomAddress: address ?? DeviceAddress(0, .random))
        setup = ControllerSetupStateMachine(.init(randomAddress: book.randomAddress))
        flow = HCICommandFlowStateMachine(deadlines.commands)
        creation = ConnectStateMachine(deadlines.creation)
    }

    func takeSerial() -> UInt64 {
        nextSerial += 1
        return nextSerial
    }

    // MARK: Time

    /// One timer for all machines of the controller; links have their own.
    func armTimer() {
        guard let next = flow.nextDeadline.orEarlier(creation.nextDeadline).orEarlier(inbound.nextDeadline) else {
            timer?.cancel()
            return
        }
        if timer == nil { timer = LoopTimer(loop) }
        timer?.schedule(after: max(.zero, next - loop.now)) { self.deadlineReached() }
    }

    private func deadlineReached() {
        perform(flow.deadlineReached(now: loop.now))
        perform(creation.deadlineReached(now: loop.now))
        inbound.deadlineReached(now: loop.now)
        armTimer()
    }
}
