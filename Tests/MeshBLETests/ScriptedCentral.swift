// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshBLE
import MeshLoop
import MeshTransportAPI
import MeshWire

/// A Bluetooth host led by a test: each call can succeed, fail, hang, be late, or lose the link.
actor ScriptedCentral: GATTCentral {
    enum Call: Hashable, CaseIterable, Sendable {
        case adopt, connect, removeBond, discoverServices, discoverCharacteristics, pair, subscribe, readWriteLength
        case write, close
    }

    enum Behaviour: Sendable {
        case succeed
        case fail(GATTError.Reason)
        /// Until it is cancelled or released.
        case hang
        /// Cancelled, it succeeds nevertheless.
        case succeedWhenCancelled
        /// The link is lost in between.
        case loseLink
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    /// What every call does, unless `next` has something for it.
    private var always: [Call: Behaviour] = [:]
    private var next: [Call: [Behaviour]] = [:]
    private(set) var calls: [Call] = []
    private(set) var inFlight = 0
    private(set) var mostInFlight = 0
    private(set) var links: [ScriptedLink] = []
    private(set) var targets: [BLETarget] = []
    private(set) var bluetooth = BluetoothState.poweredOn
    /// What the device is; `adopted` says whether it is connected already.
    var device = GATTPeer(address: BLEAddress("C0:11:22:33:44:55")!, name: "MeshCore-roof", rssi: -71)
    var isAdopted = false
    var usesPasskey = true
    var properties: GATTCharacteristic.Properties = [.write]
    var maximumWriteLength = 173
    private var observers: [(token: WeakToken, observer: @Sendable (BluetoothState) -> Void)] = []
    private var callWaiters: [(call: Call, count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    private var held: [UInt64: (call: Call, continuation: CheckedContinuation<Void, Never>)] = [:]
    private var lastHold: UInt64 = 0
    private var written: [(frame: [UInt8], withResponse: Bool)] = []
    private var frameWaiters: [CheckedContinuation<[UInt8], Never>] = []
    private var linkWaiters: [CheckedContinuation<ScriptedLink, Never>] = []
    private(set) var writesWithoutResponse = 0

    private final class Token: GATTObservation {}

    private struct WeakToken {
        weak let token: Token?
    }

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    // MARK: The test's side

    func configure(_ change: @Sendable (isolated ScriptedCentral) -> Void) {
        change(self)
    }

    func script(_ call: Call, _ behaviours: Behaviour...) {
        next[call, default: []] += behaviours
    }

    func always(_ call: Call, _ behaviour: Behaviour) {
        always[call] = behaviour
    }

    func become(_ bluetooth: BluetoothState) {
        self.bluetooth = bluetooth
        observers.removeAll { $0.token.token == nil }
        for (token, observer) in observers where token.token != nil { observer(bluetooth) }
    }

    var observerCount: Int { observers.count { $0.token.token != nil } }

    var openLinks: Int {
        get async {
            var count = 0
            for link in links where await link.isOpen { count += 1 }
            return count
        }
    }

    /// Waits until `call` has come `count` times.
    func reached(_ call: Call, count: Int = 1) async {
        if calls.count(where: { $0 == call }) >= count { return }
        await withCheckedContinuation { callWaiters.append((call, count, $0)) }
    }

    /// Lets the calls that hang succeed.
    func release(_ call: Call) {
        for (id, hold) in held where hold.call == call { release(id) }
    }

    /// The present link, or the next one.
    func link() async -> ScriptedLink {
        if let link = links.last, await link.isSubscribed { return link }
        return await withCheckedContinuation { linkWaiters.append($0) }
    }

    /// The next frame the transport wrote.
    func nextFrame() async -> [UInt8] {
        if !written.isEmpty { return written.removeFirst().frame }
        return await withCheckedContinuation { frameWaiters.append($0) }
    }

    // MARK: GATTCentral

    var adapterName: String { "hci0" }

    func observeState(_ observer: @escaping @Sendable (BluetoothState) -> Void) -> any GATTObservation {
        let token = Token()
        observers.append((WeakToken(token: token), observer))
        observer(bluetooth)
        return token
    }

    func adopt(_ request: GATTConnectRequest) async throws(GATTError) -> (any GATTLink)? {
        try await perform(.adopt, nil)
        return isAdopted ? newLink(request) : nil
    }

    func connect(_ request: GATTConnectRequest) async throws(GATTError) -> any GATTLink {
        try await perform(.connect, nil)
        return newLink(request)
    }

    private func newLink(_ request: GATTConnectRequest) -> ScriptedLink {
        targets.append(request.target)
        let link = ScriptedLink(self, device)
        links.append(link)
        return link
    }

    func removeBond(_ target: BLETarget) async throws(GATTError) {
        try await perform(.removeBond, nil)
        device.isBonded = false
    }

    func lastSighting(of target: BLETarget) -> GATTPeer? { device }

    // MARK: The link's side

    func perform(_ call: Call, _ link: ScriptedLink?) async throws(GATTError) {
        calls.append(call)
        inFlight += 1
        mostInFlight = max(mostInFlight, inFlight)
        defer { inFlight -= 1 }
        let due = callWaiters.filter { waiter in waiter.call == call && calls.count { $0 == call } >= waiter.count }
        callWaiters.removeAll { waiter in waiter.call == call && calls.count { $0 == call } >= waiter.count }
        for waiter in due { waiter.continuation.resume() }
        let behaviour = next[call].flatMap { $0.first } ?? always[call] ?? .succeed
        if next[call]?.isEmpty == false { next[call]?.removeFirst() }
        switch behaviour {
        case .succeed: if Task.isCancelled { throw Self.error(.cancelled) }
        case .fail(let reason): throw Self.error(reason)
        case .hang:
            await hold(call)
            if Task.isCancelled { throw Self.error(.cancelled) }
        case .succeedWhenCancelled: await hold(call)
        case .loseLink: await link?.lose()
        }
        if let link, await !link.isOpen { throw Self.error(.linkLost) }
    }

    static func error(_ reason: GATTError.Reason) -> GATTError {
        let code: MeshError.Code =
            switch reason {
            case .bluetoothUnavailable: .adapterUnavailable
            case .linkLost: .linkClosedByPeer
            default: .connectionFailed
            }
        return GATTError(reason, MeshError(code, "scripted: \(reason)"))
    }

    private func hold(_ call: Call) async {
        lastHold += 1
        let id = lastHold
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                held[id] = (call, continuation)
                if Task.isCancelled { release(id) }
            }
        } onCancel: {
            loop.perform { self.assumeIsolated { $0.release(id) } }
        }
    }

    private func release(_ id: UInt64) {
        held.removeValue(forKey: id)?.continuation.resume()
    }

    /// A link is lost: what hangs on it ends.
    func linkEnded() {
        for (id, hold) in held where hold.call != .connect && hold.call != .adopt && hold.call != .removeBond {
            release(id)
        }
    }

    func frameWritten(_ frame: Data, withResponse: Bool) {
        if !withResponse { writesWithoutResponse += 1 }
        if frameWaiters.isEmpty {
            written.append((Array(frame), withResponse))
        } else {
            frameWaiters.removeFirst().resume(returning: Array(frame))
        }
    }

    func paired() {
        device.isBonded = true
    }

    func subscribed(_ link: ScriptedLink) {
        for waiter in linkWaiters { waiter.resume(returning: link) }
        linkWaiters = []
    }
}

/// A link of a ``ScriptedCentral``.
actor ScriptedLink: GATTLink {
    /// It outlives its links.
    private unowned let central: ScriptedCentral
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    let peer: GATTPeer
    private(set) var isOpen = true
    private var handler: (@Sendable (Data) -> Void)?
    private var disconnectionHandler: (@Sendable (GATTError) -> Void)?
    private var lost: GATTError?

    init(_ central: ScriptedCentral, _ peer: GATTPeer) {
        self.central = central
        loop = central.loop
        self.peer = peer
    }

    var isSubscribed: Bool { isOpen && handler != nil }

    /// The device notifies.
    func notify(_ frame: [UInt8]) {
        handler?(Data(frame))
    }

    /// The device goes away.
    func lose(_ reason: GATTError.Reason = .linkLost) async {
        guard isOpen else { return }
        isOpen = false
        handler = nil
        let error = ScriptedCentral.error(reason)
        lost = error
        let handler = disconnectionHandler
        disconnectionHandler = nil
        handler?(error)
        await central.linkEnded()
    }

    func setDisconnectionHandler(_ handler: @escaping @Sendable (GATTError) -> Void) {
        if let lost { handler(lost) } else { disconnectionHandler = handler }
    }

    func discoverServices(_ uuids: [BluetoothUUID]) async throws(GATTError) -> [GATTService] {
        try await central.perform(.discoverServices, self)
        return uuids.map { GATTService(uuid: $0, id: "\($0)") }
    }

    func discoverCharacteristics(of service: GATTService) async throws(GATTError) -> [GATTCharacteristic] {
        try await central.perform(.discoverCharacteristics, self)
        let profile = GATTSerialProfile.nordicUART
        return [
            GATTCharacteristic(uuid: profile.receive, id: "rx", properties: await central.properties),
            GATTCharacteristic(uuid: profile.transmit, id: "tx", properties: [.read, .notify]),
        ]
    }

    func pair() async throws(GATTError) -> PairingOutcome {
        try await central.perform(.pair, self)
        let wasBonded = await central.device.isBonded
        await central.paired()
        return PairingOutcome(wasBonded: wasBonded, usedPasskey: await central.usesPasskey)
    }

    func startNotifications(
        of characteristic: GATTCharacteristic, _ handler: @escaping @Sendable (Data) -> Void
    ) async throws(GATTError) {
        self.handler = handler
        try await central.perform(.subscribe, self)
        await central.subscribed(self)
    }

    func maximumWriteLength(of characteristic: GATTCharacteristic) async throws(GATTError) -> Int {
        try await central.perform(.readWriteLength, self)
        return await central.maximumWriteLength
    }

    func write(
        _ value: Data, to characteristic: GATTCharacteristic, withResponse: Bool
    ) async throws(GATTError) {
        try await central.perform(.write, self)
        await central.frameWritten(value, withResponse: withResponse)
    }

    func close() async {
        handler = nil
        disconnectionHandler = nil
        guard isOpen else { return }
        isOpen = false
        try? await central.perform(.close, nil)
        await central.linkEnded()
    }
}
