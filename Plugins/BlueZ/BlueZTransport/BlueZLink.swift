// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshBLE
internal import MeshDBus
internal import MeshLoop
internal import MeshTransportAPI

/// A link to one device through bluetoothd: one object for one connection. Aspects in files of their own: `+Discovery`, `+Pairing`,
/// `+Notifications`.
actor BlueZLink: GATTLink {
    /// What a device's options say about its links.
    struct Settings: Sendable {
        /// Whether values come over a socket of our own.
        var acquiresNotifications: Bool
        var log: LogSink
    }

    enum State {
        case up
        /// It ended by itself.
        case lost(GATTError)
        /// ``close()`` was called; its work.
        case closed(Task<Void, Never>)
    }

    /// Longer than any caller waits: ATT gives up after 30 s (Core Specification, Vol 3 Part F §3.3.3).
    static let attributeTime = Duration.seconds(60)
    /// Between two tries of what bluetoothd refuses because the one before is not over.
    static let inProgressDelay = Duration.milliseconds(50)
    private static let request = DBusValue.options(["type": .string("request")])
    private static let command = DBusValue.options(["type": .string("command")])

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let service: BlueZService
    nonisolated let bus: DBusConnection
    /// The device's object path.
    nonisolated let path: String
    nonisolated let serial: UInt64
    /// As people name the device.
    nonisolated let peerName: String
    nonisolated let adapterName: String
    nonisolated let settings: Settings
    private(set) var state = State.up
    /// What the device had last time, while the link goes by that: until bluetoothd has looked through it.
    var presumed: KnownServices?
    private var disconnectionHandler: (@Sendable (GATTError) -> Void)?
    /// Characteristics that notify us by signals, by their paths.
    var subscribed: Set<String> = []
    /// Characteristics that notify us over a socket.
    var sockets: [String: NotificationSocket] = [:]
    /// Questions for the MTU that have been asked and not been used, by characteristic.
    private var mtuQuestions: [String: Task<Result<Int?, DBusError>, Never>] = [:]
    private var hasWarnedOfMTU = false
    /// How much had changed below the device when nothing had for a while: at the beginning, and after the last wait for it.
    var settledChanges: UInt64

    init(
        _ service: BlueZService, _ bus: DBusConnection, path: String, serial: UInt64, peerName: String,
        adapterName: String, settledChanges: UInt64, _ settings: Settings
    ) {
        loop = service.loop
        self.service = service
        self.bus = bus
        self.path = path
        self.serial = serial
        self.peerName = peerName
        self.adapterName = adapterName
        self.settledChanges = settledChanges
        self.settings = settings
    }

    var peer: GATTPeer {
        get async {
            guard let device = await service.objects.devices[path] else {
                return GATTPeer(address: BLEAddress(bytesOf: path))
            }
            return GATTPeer(device)
        }
    }

    // MARK: The end

    func setDisconnectionHandler(_ handler: @escaping @Sendable (GATTError) -> Void) {
        switch state {
        case .up: disconnectionHandler = handler
        case .lost(let error): handler(error)
        case .closed: break
        }
    }

    /// The service saw the link end, and has forgotten it.
    func ended(_ error: GATTError) {
        guard case .up = state else { return }
        state = .lost(error)
        dropSubscriptions()
        let handler = disconnectionHandler
        disconnectionHandler = nil
        // Its use of the service ends behind the handler, who may want the service at once.
        loop.performLater { [service] in service.assumeIsolated { $0.release() } }
        handler?(error)
    }

    func close() async { await end(disconnects: true) }

    /// As ``close()``, but the device stays connected: for a link that another program made.
    func letGo() async { await end(disconnects: false) }

    private func end(disconnects: Bool) async {
        switch state {
        case .closed(let work): await work.value
        case .lost:
            state = .closed(Task(executorPreference: loop.taskExecutor) {})
            disconnectionHandler = nil
        case .up:
            disconnectionHandler = nil
            let subscribed = subscribed
            dropSubscriptions()
            // A task of its own: a caller that is cancelled still leaves nothing behind.
            let work = Task(executorPreference: loop.taskExecutor) { [service] in
                await self.stopNotifications(subscribed)
                if disconnects {
                    await service.disconnect(self.path)
                    await self.forgetIfUnresolvable()
                }
                await service.linkClosed(self)
                await service.releaseAndClose()
            }
            state = .closed(work)
            await work.value
        }
    }

    /// Values that come from here on belong to nobody.
    private func dropSubscriptions() {
        for characteristic in subscribed {
            service.assumeIsolated { $0.setSink(characteristic, nil) }
        }
        subscribed = []
        for socket in sockets.values { socket.close() }
        sockets = [:]
        for question in mtuQuestions.values { question.cancel() }
        mtuQuestions = [:]
    }

    // MARK: Failures

    /// Whether nothing but the caller's own wish ends the link.
    var isUp: Bool { if case .up = state { true } else { false } }

    /// Whether ``close()`` was called.
    var isClosing: Bool { if case .closed = state { true } else { false } }

    func requireUp(_ operation: BlueZOperation) throws(GATTError) {
        switch state {
        case .up: break
        case .lost(let error): throw error
        case .closed: throw failure(.notConnected, operation)
        }
    }

    /// What an error means here: with the link gone, that is the reason.
    func failure(_ error: DBusError, _ operation: BlueZOperation) -> GATTError {
        let failure = BlueZFailure(error, during: operation)
        if failure == .cancelled { return .cancelled(operation, peer: peerName) }
        if case .lost(let loss) = state { return loss }
        return self.failure(failure, operation, cause: error)
    }

    func failure(_ failure: BlueZFailure, _ operation: BlueZOperation, cause: DBusError? = nil) -> GATTError {
        let path = path
        let failure = service.assumeIsolated { $0.meaning(failure, on: $0.objects.devices[path]?.adapter) }
        return GATTError(failure, during: operation, peer: peerName, adapter: adapterName, cause: cause)
    }

    func call(
        _ object: String, _ interface: String, _ member: String, _ arguments: [DBusValue] = [],
        takesDescriptors: Bool = false, timeout: Duration
    ) async throws(DBusError) -> [DBusValue] {
        try await bus.call(
            DBusCall(
                BlueZNames.service, path: object, interface: interface, member: member, arguments,
                takesDescriptors: takesDescriptors), timeout: timeout)
    }

    // MARK: Writing

    func write(
        _ value: Data, to characteristic: GATTCharacteristic, withResponse: Bool
    ) async throws(GATTError) {
        let arguments: [DBusValue] = [.bytes(Array(value)), withResponse ? Self.request : Self.command]
        while true {
            try requireUp(.write)
            do throws(DBusError) {
                _ = try await call(
                    characteristic.id, BlueZNames.characteristic, "WriteValue", arguments, timeout: Self.attributeTime)
                return
            } catch {
                // The write before is not over: one whose caller gave up. The deadline is the caller's.
                guard BlueZFailure(error, during: .write) == .inProgress else { throw failure(error, .write) }
            }
            do throws(CancellationError) {
                try await loop.sleep(for: Self.inProgressDelay)
            } catch {
                throw .cancelled(.write, peer: peerName)
            }
        }
    }

    /// Asks before anybody needs to know: while the subscription is made, and not after it. The MTU was exchanged before
    /// bluetoothd said that it knows the services.
    func askForMTU(of characteristic: String) {
        mtuQuestions[characteristic]?.cancel()
        mtuQuestions[characteristic] = Task(executorPreference: loop.taskExecutor) {
            // Asked for, not remembered: what was told when the object appeared may be older than the exchange of MTUs.
            do throws(DBusError) {
                let answer = try await self.call(
                    characteristic, BlueZNames.properties, "Get",
                    [.string(BlueZNames.characteristic), .string("MTU")], timeout: BlueZService.promptly)
                return .success(answer.first?.number)
            } catch {
                return .failure(error)
            }
        }
    }

    func maximumWriteLength(of characteristic: GATTCharacteristic) async throws(GATTError) -> Int {
        // The MTU may not have been exchanged yet. It will be before anything is written.
        if isUp, let known = presumed?.writeLengths[characteristic.id] { return known }
        return try await maximumWriteLength(of: characteristic.id)
    }

    func maximumWriteLength(of characteristic: String) async throws(GATTError) -> Int {
        try requireUp(.read)
        if mtuQuestions[characteristic] == nil { askForMTU(of: characteristic) }
        var mtu: Int?
        if let question = mtuQuestions.removeValue(forKey: characteristic) {
            let answer = await withTaskCancellationHandler {
                _ = self
                return await question.value
            } onCancel: {
                question.cancel()
            }
            switch answer {
            case .success(let number): mtu = number
            case .failure(let error):
                let failure = BlueZFailure(error, during: .read)
                if failure == .cancelled || !isUp { throw self.failure(error, .read) }
            }
        }
        if mtu == nil || mtu == 0, !hasWarnedOfMTU {
            hasWarnedOfMTU = true
            settings.log(
                .notice,
                "bluetoothd does not tell the MTU, so frames are limited to 20 bytes; BlueZ 5.62 or later does",
                [("peer", peerName)])
        }
        // Core Specification, Vol 3 Part F §3.2.8, §3.2.9.
        let length = min(max(mtu ?? 23, 23) - 3, 512)
        if mtu != nil, presumed == nil { await service.know(length, characteristic, of: path) }
        return length
    }
}

extension BLEAddress {
    /// The address that bluetoothd made an object path from: `/org/bluez/hci0/dev_C0_11_22_33_44_55`.
    init(bytesOf path: String) {
        let text = path.split(separator: "/").last?.dropFirst(4).replacing("_", with: ":") ?? ""
        self = BLEAddress(String(text)) ?? BLEAddress("00:00:00:00:00:00")!
    }
}
