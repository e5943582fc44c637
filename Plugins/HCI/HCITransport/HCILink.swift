// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshLoop
internal import MeshTransportAPI

/// One link of a controller: the driver of its ``LinkStateMachine``. Aspects in files of their own: `+Actions`, `+Attributes`,
/// `+Security`.
actor HCILink: GATTLink {
    typealias AttributeWaiter = CheckedContinuation<Result<GATTResult, GATTFailure>, Never>

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let controller: HCIController
    nonisolated let connection: ConnectionComplete
    nonisolated let own: DeviceAddress
    /// As people name the device.
    nonisolated let peerName: String
    nonisolated let passkey: BLEPasskey?
    nonisolated var handle: ConnectionHandle { connection.handle }
    var machine: LinkStateMachine<AttributeWaiter>
    var bond: Bond?
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
    var securers: [CheckedContinuation<Result<AttributeDatabase.Protection, GATTError>, Never>] = []
    /// Who waits for the peer.
    var waits: Set<UInt64> = []
    var lastWait: UInt64 = 0
    /// Waits for room in the queue to the controller.
    var roomWaiters: [CheckedContinuation<Void, Never>] = []
    /// By the handle of the value.
    var notificationHandlers: [UInt16: @Sendable (Data) -> Void] = [:]
    /// Services that were found, by ``GATTService/id``.
    var services: [String: RemoteService] = [:]
    /// Characteristics that were found, by ``GATTCharacteristic/id``, with the end of what belongs to them.
    var characteristics: [String: (value: UInt16, last: UInt16)] = [:]

    init(
        _ controller: HCIController, _ connection: ConnectionComplete, own: DeviceAddress, peerName: String,
        bond: Bond?, passkey: BLEPasskey?, blockedUntil: Duration?
    ) {
        loop = controller.loop
        self.controller = controller
        self.connection = connection
        self.own = own
        self.peerName = peerName
        self.bond = bond
        self.passkey = passkey
        var configuration = LinkStateMachine<AttributeWaiter>.Configuration(
            security: .init(
                role: connection.role, bond: bond, requiresAuthentication: passkey != nil, blockedUntil: blockedUntil))
        configuration.client = controller.deadlines.client
        configuration.procedures = controller.deadlines.procedures
        machine = LinkStateMachine(connection, configuration: configuration)
    }

    var peer: GATTPeer {
        GATTPeer(address: BLEAddress(connection.peer), isBonded: bond != nil)
    }

    /// What every link begins with: the keys that are there, long packets, a large MTU.
    func setUp() async throws(GATTError) {
        if bond != nil { _ = try await secure() }
        perform(machine.linkProcedureRequested(.setDataLength(.maximum), now: loop.now))
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
        if let handle = machine.wholeNotification(boundary, payload) {
            guard let handler = notificationHandlers[handle] else { return }
            let start = LinkStateMachine<AttributeWaiter>.notificationValueOffset
            return handler(payload.withUnsafeBytes { Data(UnsafeRawBufferPointer(rebasing: $0[start...])) })
        }
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
        for waiter in waiters { waiter.resume() }
    }

    // MARK: The end

    func setDisconnectionHandler(_ handler: @escaping @Sendable (GATTError) -> Void) {
        if isClosing { return }
        if let end { handler(end) } else { disconnectionHandler = handler }
    }

    func close() async {
        isClosing = true
        disconnectionHandler = nil
        notificationHandlers = [:]
        if end != nil { return }
        await withCheckedContinuation { continuation in
            self.closers.append(continuation)
            self.perform(self.machine.disconnectRequested(now: self.loop.now))
        }
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
