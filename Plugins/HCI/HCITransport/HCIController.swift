// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshRuntime
internal import MeshTransportAPI

/// One controller and everything on it: the driver of the machines of MeshBluetoothStack. It decides nothing; it owns the
/// line and the timer, and carries out what the machines order. Aspects in files of their own: `+Line`, `+Commands`,
/// `+Events`, `+Connecting`, `+Bonds`.
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
        var passkey: BLEPasskey?
        var options = HCILinkOptions()
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let port: HCIPort
    nonisolated let log: LogSink
    // Line.
    var stream: LoopStream?
    var decoder = H4Decoder()
    var runner: Task<Void, Never>?
    /// Resumed when the open line has ended.
    var lineEnd: CheckedContinuation<Void, Never>?
    var timer: LoopTimer?
    // Machines of the controller.
    var flow = HCICommandFlowStateMachine<CommandWaiter>()
    var setup: ControllerSetupStateMachine
    var scan: ScanStateMachine?
    var creation: ConnectStateMachine
    var inbound = InboundOrderStateMachine()
    var outbound: ACLTransmitStateMachine?
    var sightings = DeviceSightings()
    var attempts = PairingAttemptPolicy()
    var resolver = IdentityResolver()
    /// Attributes of devices without a bond, for as long as this program runs.
    var databases: [DeviceAddress: RemoteDatabase] = [:]
    /// What it is and can do; nil while it cannot be used.
    var descriptor: ControllerDescriptor?
    var links: [ConnectionHandle: HCILink] = [:]
    /// By name, the device that was last found by it.
    var found: [String: DeviceAddress] = [:]
    // Bonds.
    nonisolated let file: StateFile?
    var book: BondBook
    var hasLoadedBonds = false
    var hasUnsavedBonds = false
    var saver: Task<Void, Never>?
    // Who waits.
    var nextSerial: UInt64 = 0
    var observers: [UInt64: @Sendable (BluetoothState) -> Void] = [:]
    var seekers: [UInt64: Seeker] = [:]
    var scanEnds: [CheckedContinuation<Void, Never>] = []
    var connecting: Connecting?
    var turns: [(serial: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []
    var isTurnTaken = false

    /// Without a file, bonds are forgotten at the end.
    init(loop: EventLoop, port: HCIPort, file: StateFile?, log: LogSink) {
        self.loop = loop
        self.port = port
        self.file = file
        self.log = log
        var random = SystemRandomNumberGenerator()
        var address: DeviceAddress?
        while address == nil { address = DeviceAddress.staticRandom(random.next()) }
        book = BondBook(randomAddress: address ?? DeviceAddress(0, .random))
        setup = ControllerSetupStateMachine(.init(randomAddress: book.randomAddress))
        var configuration = ConnectStateMachine.Configuration()
        // The deadline is the caller's, who cancels.
        configuration.timeout = .seconds(600)
        creation = ConnectStateMachine(configuration)
    }

    // MARK: State

    var state: BluetoothState { descriptor == nil ? .absent : .poweredOn }

    func observe(_ observer: @escaping @Sendable (BluetoothState) -> Void) -> UInt64 {
        start()
        let serial = takeSerial()
        observers[serial] = observer
        observer(state)
        return serial
    }

    func endObservation(_ serial: UInt64) {
        observers[serial] = nil
    }

    func tellState() {
        for observer in observers.values { observer(state) }
    }

    func takeSerial() -> UInt64 {
        nextSerial += 1
        return nextSerial
    }

    // MARK: Time

    /// One timer for all machines of the controller; links have their own.
    func armTimer() {
        let deadlines = [flow.nextDeadline, creation.nextDeadline, inbound.nextDeadline].compactMap { $0 }
        guard let next = deadlines.min() else {
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
