// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI

@testable import MeshBLE

/// A ``BLELinkStateMachine`` with a clock that stands still, and a book of what it has ordered: whatever it must never do is
/// found in `problems`.
final class MachineRig {
    typealias Machine = BLELinkStateMachine<Int, Int>

    enum Outcome {
        case succeeded
        case failed(BLELinkFailure)
        case refused
    }

    struct Operation {
        var kind: BLEOperation
        var link: UInt64?
        var isCancelled = false
        /// The machine has waited for its end in vain.
        var isAbandoned = false
    }

    private(set) var machine: Machine
    private(set) var now = Duration.seconds(1_000)
    private(set) var operations: [UInt64: Operation] = [:]
    private(set) var links: Set<UInt64> = []
    private(set) var isUp = false
    private(set) var outcomes: [Int: Outcome] = [:]
    private(set) var writeOutcomes: [Int: BLEWriteFailure?] = [:]
    private(set) var phases: [LinkPhase] = []
    private(set) var adapterReports: [Bool] = []
    private(set) var sessionEnds: [BLELinkFailure?] = []
    private(set) var disconnections: [BLELinkFailure?] = []
    private(set) var reconnections = 0
    private(set) var autoReconnects = 0
    private(set) var warnings = 0
    private(set) var strayLinksClosed = 0
    private(set) var isObserving = false
    private(set) var problems: [String] = []
    private(set) var started: [BLEOperation] = []
    private var openWaiters: Set<Int> = []
    /// Those that wait for a link, and have given up.
    private var connecting: Set<Int> = []
    private var cancelled: Set<Int> = []
    private var openWrites: Set<Int> = []
    private var lastWaiter = 0
    /// Whether the device is bonded, as its next link says.
    var isBonded = false
    var pairsWithPasskey = true

    static let services = [GATTService(uuid: GATTSerialProfile.nordicUART.service, id: "s")]
    static let receive = GATTCharacteristic(
        uuid: GATTSerialProfile.nordicUART.receive, id: "rx", properties: [.write, .writeWithoutResponse])
    static let transmit = GATTCharacteristic(
        uuid: GATTSerialProfile.nordicUART.transmit, id: "tx", properties: .notify)
    static let address = BLETarget.address(BLEAddress("C0:11:22:33:44:55")!)

    init(seed: UInt64 = 1, _ change: (inout BLETransportSettings) -> Void = { _ in }) {
        var settings = BLETransportSettings(target: Self.address)
        change(&settings)
        machine = Machine(settings, seed: seed)
    }

    static func error(_ reason: GATTError.Reason) -> GATTError {
        GATTError(
            reason, MeshError(reason == .bluetoothUnavailable ? .adapterUnavailable : .connectionFailed, "\(reason)"))
    }

    var phase: LinkPhase { machine.phase }
    var nextDeadline: Duration? { machine.nextDeadline }
    /// The operation that the machine waits for.
    var current: UInt64? { operations.filter { !$0.value.isAbandoned }.keys.max() }
    var currentKind: BLEOperation? { current.flatMap { operations[$0]?.kind } }
    var hasOpenWaiters: Bool { !openWaiters.isEmpty || !openWrites.isEmpty }

    // MARK: Inputs

    @discardableResult func connect() -> Int {
        lastWaiter += 1
        connecting.insert(lastWaiter)
        openWaiters.insert(lastWaiter)
        apply(machine.connectRequested(lastWaiter, id: UInt64(lastWaiter), now: now))
        return lastWaiter
    }

    func cancelConnect(_ waiter: Int) {
        if connecting.contains(waiter), openWaiters.contains(waiter) { cancelled.insert(waiter) }
        apply(machine.connectCancelled(id: UInt64(waiter), now: now))
    }

    @discardableResult func disconnect(newTarget: BLETarget? = nil) -> Int {
        lastWaiter += 1
        openWaiters.insert(lastWaiter)
        apply(machine.disconnectRequested(lastWaiter, newTarget: newTarget, now: now))
        return lastWaiter
    }

    func bluetooth(_ state: BluetoothState) {
        apply(machine.bluetoothStateChanged(state, now: now))
    }

    @discardableResult func write(length: Int = 10) -> Int {
        lastWaiter += 1
        openWrites.insert(lastWaiter)
        apply(machine.writeRequested(lastWaiter, id: UInt64(lastWaiter), length: length, now: now))
        return lastWaiter
    }

    func cancelWrite(_ write: Int) {
        apply(machine.writeCancelled(id: UInt64(write)))
    }

    /// Ends an operation well, the current one if none is named.
    func succeed(_ generation: UInt64? = nil, _ outcome: BLEOutcome? = nil) {
        guard let generation = generation ?? current, let operation = operations.removeValue(forKey: generation) else {
            return
        }
        let outcome = outcome ?? self.outcome(of: operation)
        if operation.kind == .write {
            apply(machine.writeEnded(generation: generation, nil, now: now))
            return
        }
        if outcome.bringsLink { links.insert(generation) }
        apply(machine.operationSucceeded(generation: generation, outcome, now: now))
    }

    private func outcome(of operation: Operation) -> BLEOutcome {
        switch operation.kind {
        case .adopt: return .adopted(isBonded: nil)
        case .removeBond:
            isBonded = false
            return .bondRemoved
        case .connect: return .connected(isBonded: isBonded)
        case .discoverServices: return .services(Self.services)
        case .discoverCharacteristics: return .characteristics([Self.receive, Self.transmit])
        case .pair:
            isBonded = true
            return .paired(PairingOutcome(usedPasskey: pairsWithPasskey))
        case .subscribe: return .subscribed
        case .readWriteLength: return .writeLength(173)
        case .write, .close: return .closed
        }
    }

    func fail(_ reason: GATTError.Reason, _ generation: UInt64? = nil) {
        guard let generation = generation ?? current, let operation = operations.removeValue(forKey: generation) else {
            return
        }
        if operation.kind == .write {
            apply(machine.writeEnded(generation: generation, Self.error(reason), now: now))
        } else {
            apply(machine.operationFailed(generation: generation, Self.error(reason), now: now))
        }
    }

    func loseLink(_ reason: GATTError.Reason = .linkLost, _ generation: UInt64? = nil) {
        guard let generation = generation ?? links.max() else { return }
        links.remove(generation)
        apply(machine.linkLost(generation: generation, Self.error(reason), now: now))
    }

    /// Facts of a generation that never was.
    func staleFacts() {
        apply(machine.operationSucceeded(generation: 1_000_000, .subscribed, now: now))
        apply(machine.operationFailed(generation: 1_000_000, Self.error(.unreachable), now: now))
        apply(machine.linkLost(generation: 1_000_000, Self.error(.linkLost), now: now))
        apply(machine.writeEnded(generation: 1_000_000, nil, now: now))
    }

    func advance(_ duration: Duration) {
        now += duration
        if let nextDeadline, nextDeadline <= now { reachDeadline() }
    }

    /// Time goes on to the deadline.
    func reachDeadline() {
        guard let deadline = nextDeadline else { return }
        now = max(now, deadline)
        if phase == .disconnecting { for generation in operations.keys { operations[generation]?.isAbandoned = true } }
        apply(machine.deadlineReached(now: now))
        if let next = nextDeadline, next <= now { problems.append("\(phase) outlives its deadline") }
    }

    func tickEarly() {
        apply(machine.deadlineReached(now: now - .seconds(100_000)))
    }

    // MARK: The way to a phase

    /// Goes the usual way until `phase` is entered.
    func reach(_ phase: LinkPhase) {
        switch phase {
        case .idle: return
        case .waitingForBluetooth: connect()
        case .disconnecting:
            reach(.connected)
            disconnect()
        case .autoReconnecting:
            reach(.connected)
            loseLink()
        case .connecting, .discoveringServices, .discoveringCharacteristics, .subscribingToNotifications,
            .discoveryComplete, .connected, .restoringState:
            connect()
            bluetooth(.poweredOn)
            while self.phase != phase, current != nil { succeed() }
        }
        if self.phase != phase { problems.append("\(self.phase) was reached, not \(phase)") }
    }

    /// Ends whatever is under way: nothing may be left then.
    func drain() {
        disconnect()
        var steps = 0
        while phase != .idle, steps < 100 {
            if current != nil { fail(.cancelled) } else { reachDeadline() }
            steps += 1
        }
        for generation in operations.keys.sorted() { succeed(generation) }
        if phase != .idle { problems.append("\(phase) does not end") }
        if hasOpenWaiters { problems.append("waiters were left: \(openWaiters) \(openWrites)") }
        if nextDeadline != nil { problems.append("a timer was left in idle") }
        if !links.isEmpty { problems.append("links were left: \(links)") }
        if isUp { problems.append("the session was left up") }
        if isObserving, adapterReports.last != false { problems.append("Bluetooth is still observed") }
    }

    // MARK: The book

    private func apply(_ actions: [Machine.Action]) {
        for action in actions { apply(action) }
        switch phase {
        case .idle: if nextDeadline != nil { problems.append("idle has a deadline") }
        case .connected: break
        case .waitingForBluetooth, .connecting, .discoveringServices, .discoveringCharacteristics,
            .subscribingToNotifications, .discoveryComplete, .autoReconnecting, .restoringState, .disconnecting:
            if nextDeadline == nil { problems.append("\(phase) has no deadline") }
        }
        if isUp != (phase == .connected) { problems.append("the session is up: \(isUp), in \(phase)") }
        if phases.last ?? .idle != phase { problems.append("\(phase) was not told") }
    }

    private func apply(_ action: Machine.Action) {
        switch action {
        case .enterPhase(let phase): phases.append(phase)
        case .observeBluetooth:
            if isObserving { problems.append("Bluetooth is observed twice") }
            isObserving = true
        case .stopObservingBluetooth: isObserving = false
        case .tellBluetooth: break
        case .reportAdapter(let isAvailable): adapterReports.append(isAvailable)
        case .start(let kind, let generation, let link):
            begin(kind, generation, link)
            if kind == .close, let link { links.remove(link) }
        case .cancelOperation(let generation): operations[generation]?.isCancelled = true
        case .closeStrayLink(let generation):
            if links.remove(generation) != nil { strayLinksClosed += 1 }
        case .bringUp(let description):
            if isUp { problems.append("the session is brought up twice") }
            if !links.contains(description.generation) { problems.append("a link that is gone is brought up") }
            isUp = true
        case .endSession(let failure):
            if !isUp { problems.append("a session ended that was not up") }
            isUp = false
            sessionEnds.append(failure)
        case .succeed(let waiter): resume(waiter, .succeeded)
        case .fail(let waiter, let failure): resume(waiter, .failed(failure))
        case .refuseConnect(let waiter): resume(waiter, .refused)
        case .tellReconnected: reconnections += 1
        case .tellAutoReconnecting: autoReconnects += 1
        case .tellDisconnected(let failure): disconnections.append(failure)
        case .startWrite(_, let generation): begin(.write, generation, nil)
        case .succeedWrite(let write): resumeWrite(write, nil)
        case .failWrite(let write, let failure): resumeWrite(write, failure)
        case .warnPairedWithoutPasskey: warnings += 1
        case .tellBondIsReplaced, .changeTarget: break
        }
    }

    private func begin(_ kind: BLEOperation, _ generation: UInt64, _ link: UInt64?) {
        let others = operations.values.filter { !$0.isAbandoned }
        if !others.isEmpty { problems.append("\(kind) begins while \(others.map(\.kind)) is in flight") }
        if operations[generation] != nil { problems.append("generation \(generation) is used twice") }
        // What is under way ends first; nothing begins for somebody who has given up.
        if kind != .close, !cancelled.isEmpty { problems.append("\(kind) begins, and \(cancelled) have given up") }
        operations[generation] = Operation(kind: kind, link: link)
        started.append(kind)
    }

    private func resume(_ waiter: Int, _ outcome: Outcome) {
        cancelled.remove(waiter)
        if openWaiters.remove(waiter) == nil { problems.append("waiter \(waiter) was resumed twice") }
        outcomes[waiter] = outcome
    }

    private func resumeWrite(_ write: Int, _ failure: BLEWriteFailure?) {
        if openWrites.remove(write) == nil { problems.append("write \(write) was resumed twice") }
        writeOutcomes[write] = failure
    }

    // MARK: Looking

    func failure(of waiter: Int) -> BLELinkFailure? {
        if case .failed(let failure) = outcomes[waiter] { failure } else { nil }
    }

    func text(of waiter: Int) -> String {
        failure(of: waiter).map { MeshError($0, of: subject).message } ?? ""
    }

    var subject: BLESubject {
        BLESubject(
            target: machine.settings.target,
            peer: GATTPeer(address: BLEAddress("C0:11:22:33:44:55")!, name: "MeshCore-roof", rssi: -87),
            adapterName: "hci0")
    }
}
