// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// One link of a controller: the driver of its ``LinkStateMachine``. Aspects in files of their own: `+Actions`, `+Attributes`,
/// `+Security`, `+Cache`, `+Diagnostics`.
actor HCILink: GATTLink {
    typealias AttributeWaiter = CheckedContinuation<Result<GATTResult, GATTFailure>, Never>

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let controller: HCIController
    nonisolated let connection: ConnectionComplete
    nonisolated let own: DeviceAddress
    /// As people name the device.
    nonisolated let peerName: String
    /// The name that the device was looked for by; nil if it was its address.
    nonisolated let searchName: String?
    nonisolated let passkey: BLEPasskey?
    nonisolated var handle: ConnectionHandle { connection.handle }
    var machine: LinkStateMachine<AttributeWaiter>
    var bond: Bond?
    /// Which handles are known.
    var cache: GATTCacheStateMachine
    /// Learns what makes the next link quicker.
    var learner: Task<Void, Never>?
    /// How many requests it took until the link was in use; nil before.
    var setUpRequests: Int?
    /// A bond whose last keys have not left the controller: without them the peer has none.
    var unsentBond: Bond?
    var timer: LoopTimer?
    /// It ends with its controller, not with its peer.
    var isControllerLost = false
    /// Why it has ended.
    var end: GATTError?
    /// ``close()`` was called: nobody is told of the end.
    var isClosing = false
    var disconnectionHandler: (@Sendable (GATTError) -> Void)?
    var closers: [CheckedContinuation<Void, Never>] = []
    /// Waits until all is sent.
    var drainers: [CheckedContinuation<Void, Never>] = []
    var securers: [CheckedContinuation<Result<AttributeDatabase.Protection, GATTError>, Never>] = []
    /// Who waits for the peer.
    var waits: Set<UInt64> = []
    var lastWait: UInt64 = 0
    /// Wait for room in the queue to the controller.
    var roomWaiters: [(serial: UInt64, continuation: CheckedContinuation<Void, Never>)] = []
    var nextRoomSerial: UInt64 = 0
    nonisolated let notifications = LinkNotifications()
    /// Services that were found, by ``GATTService/id``.
    var services: [String: RemoteService] = [:]
    /// Characteristics that were found, by ``GATTCharacteristic/id``, with the end of what belongs to them.
    var characteristics: [String: (value: UInt16, last: UInt16)] = [:]

    init(
        _ controller: HCIController, _ connection: ConnectionComplete, own: DeviceAddress, peerName: String,
        bond: Bond?, database: RemoteDatabase?, tuning: LinkTuningStateMachine.Configuration,
        settings: HCIController.LinkSettings, blockedUntil: Duration?
    ) {
        loop = controller.loop
        self.controller = controller
        self.connection = connection
        self.own = own
        self.peerName = peerName
        self.bond = bond
        searchName = settings.name
        passkey = settings.passkey
        cache = GATTCacheStateMachine(stored: database)
        var configuration = LinkStateMachine<AttributeWaiter>.Configuration(
            security: .init(
                role: connection.role, bond: bond, requiresAuthentication: passkey != nil, blockedUntil: blockedUntil))
        configuration.security.takesPairing = settings.takesPairing
        configuration.client = settings.options.client(controller.deadlines.client)
        configuration.procedures = controller.deadlines.procedures
        configuration.tuning = tuning
        machine = LinkStateMachine(connection, configuration: configuration)
    }

    /// The address that stays, where the peer has given one.
    var identity: DeviceAddress { bond?.peer ?? connection.peer }

    var peer: GATTPeer {
        let heard = controller.assumeIsolated { $0.sightings[connection.peer] }
        return GATTPeer(
            address: BLEAddress(identity), name: heard?.name ?? "", rssi: heard?.rssi.map { Int($0) },
            isBonded: bond != nil)
    }

    /// What every link begins with: the keys that are there, long packets, the fast mode, a large MTU.
    func setUp() async throws(GATTError) {
        if bond != nil { _ = try await secure() }
        perform(machine.setUpBegan(now: loop.now))
        do throws(GATTError) {
            _ = try await request(.exchangeMTU, .connect)
        } catch {
            // A server need not know it (Core Specification 5.4, Vol 3 Part F §3.4.2).
            guard error.reason == .notSupported else { throw error }
        }
    }

    // MARK: From the controller

    func eventReceived(_ event: HCIEvent) {
        perform(machine.eventReceived(event, now: loop.now))
    }

    func commandFinished(_ opcode: HCIOpcode, _ outcome: HCICommandOutcome) {
        perform(machine.commandFinished(opcode, outcome, now: loop.now))
    }

    func pieceReceived(_ boundary: ACLPacket.Boundary, _ payload: [UInt8]) {
        perform(machine.pieceReceived(boundary, payload, now: loop.now))
    }

    func controllerLost() {
        isControllerLost = true
        perform(machine.controllerLost(now: loop.now))
    }

    func packetsCompleted() {
        storeSentBond()
        let waiters = roomWaiters
        roomWaiters = []
        for waiter in waiters { waiter.continuation.resume() }
        if !hasUnsent { drained() }
    }

    // MARK: The end

    func setDisconnectionHandler(_ handler: @escaping @Sendable (GATTError) -> Void) {
        if isClosing { return }
        if let end { handler(end) } else { disconnectionHandler = handler }
    }

    /// Somebody waits for what only the peer, or the end of the link, can bring; the number is for ``abandon(_:)``.
    func beginWait() -> UInt64 {
        lastWait += 1
        waits.insert(lastWait)
        return lastWait
    }

    /// Who waited has given up: the link ends, unless the wait is over.
    func abandon(_ number: UInt64) {
        guard waits.contains(number) else { return }
        perform(machine.disconnectRequested(now: loop.now))
    }

    func requireUp(_ operation: HCIOperation) throws(GATTError) {
        if let end { throw end }
        if isClosing { throw .linkClosed(operation, peerName) }
    }
}
