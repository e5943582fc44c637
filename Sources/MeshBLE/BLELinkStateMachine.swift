// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// What may happen next on one link to a BLE device. Pure: the driver is ``BLETransport``.
///
///     idle ──▶ waitingForBluetooth ──▶ restoringState ──▶ connecting ──▶ discoveringServices ──▶ discoveringCharacteristics
///      ▲             (adapter)            (adopt)        (connect)                                (and pairing)  │
///      │                                     └──────────────────────────────▲                                    ▼
///      │                                                                               subscribingToNotifications
///      │                                                                                                         ▼
///      ├── disconnecting ◀── any of these, connected ◀──────────────────────────────────── discoveryComplete
///      │         │
///      │         └──▶ autoReconnecting (only where the link is made anew by itself) ──▶ as above, from waitingForBluetooth
///      └─────────────────────┘
///
/// The phases are those of ``LinkPhase``; its states are five, since most phases differ only in the operation that is under
/// way (``BLEOperation``):
/// - `idle` waits for `connect`.
/// - `attempting` waits for one operation, or (waitingForBluetooth) for Bluetooth, until the deadline of its phase. It goes on
///   to the next operation, to `connected`, or by `disconnecting` to an end.
/// - `connected` waits for writes and for the end; see ``BLEWriteQueue``.
/// - `disconnecting` waits for the end of what is under way, first the operation, then the link, each for at most
///   `disconnectionTimeout`; then it lets go of it. From here to `idle`, to another round of the attempt with a new bond, or
///   to `pausing`.
/// - `pausing` (autoReconnecting) waits for the time of the next attempt.
///
/// Each operation has a generation; a link has that of the operation that made it. Facts with another generation are stale:
/// they change nothing, except that a link which comes too late is closed. An operation at its deadline is cancelled, and
/// nothing else begins before it has ended.
///
/// What the Bluetooth specification leaves open, and what was chosen here, is in reconnection.md §1 and ble-linux.md §1.1.
struct BLELinkStateMachine<Waiter, Write>: ~Copyable {
    private var state = State.idle
    private var context: Context

    /// `seed` leads the pauses of reconnection.
    init(_ settings: BLETransportSettings, seed: UInt64) {
        context = Context(settings, seed: seed)
    }

    // MARK: Looking

    var phase: LinkPhase { context.phase }

    var isConnected: Bool {
        if case .connected = state { true } else { false }
    }

    /// When ``deadlineReached(now:)`` is due: none in `idle`, and in `connected` only while there are writes.
    var nextDeadline: Duration? {
        switch state {
        case .idle: nil
        case .attempting(let attempt): attempt.deadline
        case .connected(let session): session.writes.nextDeadline
        case .pausing(let pause): pause.until
        case .disconnecting(let ending): ending.deadline
        }
    }

    /// Frames in flight and waiting.
    var writesUnderWay: Int {
        if case .connected(let session) = state { session.writes.count } else { 0 }
    }

    var settings: BLETransportSettings { context.settings }

    // MARK: Inputs

    /// `id` is for ``connectCancelled(id:now:)``. The waiter is resumed once.
    mutating func connectRequested(_ waiter: Waiter, id: UInt64, now: Duration) -> [Action] {
        let caller = Caller(id: id, waiter: waiter)
        switch state {
        case .idle: state = context.startAttempt(Attempt(caller: caller, isAutomatic: false), now)
        case .attempting(var attempt) where attempt.caller == nil:
            attempt.caller = caller
            state = .attempting(attempt)
        case .attempting, .connected: context.emit(.refuseConnect(waiter))
        case .pausing: state = context.startAttempt(Attempt(caller: caller, isAutomatic: true), now)
        case .disconnecting(var ending):
            guard ending.queued == nil, ending.next != .again || ending.caller == nil else {
                context.emit(.refuseConnect(waiter))
                break
            }
            ending.queued = caller
            state = .disconnecting(ending)
        }
        return context.takeActions()
    }

    /// The caller of `connect` gave up. An attempt of its own ends; one that the machine makes anyway goes on.
    mutating func connectCancelled(id: UInt64, now: Duration) -> [Action] {
        switch state {
        case .attempting(var attempt) where attempt.caller?.id == id && attempt.isAutomatic:
            context.fail(&attempt.caller, BLELinkFailure(.requested, phase: context.phase))
            state = .attempting(attempt)
        case .attempting(let attempt) where attempt.caller?.id == id:
            state = context.end(attempt, .requested, now)
        case .disconnecting(var ending) where ending.queued?.id == id:
            context.fail(&ending.queued, BLELinkFailure(.requested, phase: .disconnecting))
            state = .disconnecting(ending)
        // It would go on, or may: the reason of a loss can begin it anew.
        case .disconnecting(var ending)
        where ending.caller?.id == id && (ending.next == .again || ending.awaitsReason):
            let failure = BLELinkFailure(.requested, phase: .disconnecting)
            if ending.attempt?.isAutomatic == true {
                context.fail(&ending.caller, failure)
            } else {
                ending.failure = failure
                ending.rest(failure)
            }
            state = .disconnecting(ending)
        case .idle, .attempting, .connected, .pausing, .disconnecting: break
        }
        return context.takeActions()
    }

    /// The waiter is resumed when nothing is left of what was under way. `newTarget`: whom the next `connect` means.
    mutating func disconnectRequested(_ waiter: Waiter, newTarget: BLETarget? = nil, now: Duration) -> [Action] {
        let stop = Stop(waiter: waiter, newTarget: newTarget)
        switch state {
        case .idle: context.finish(stop)
        case .attempting(let attempt): state = context.end(attempt, .requested, stop: stop, now)
        case .connected(let session): state = context.end(session, .requested, stop: stop, now)
        case .pausing: state = context.finish(Ending(stops: [stop], announcement: .disconnected(nil)), now)
        case .disconnecting(var ending):
            context.fail(&ending.queued, BLELinkFailure(.requested, phase: .disconnecting))
            ending.stops.append(stop)
            ending.rest(BLELinkFailure(.requested, phase: .disconnecting))
            state = .disconnecting(ending)
        }
        return context.takeActions()
    }

    /// What Bluetooth is like. Told once after `observeBluetooth`, then at each change.
    mutating func bluetoothStateChanged(_ bluetooth: BluetoothState, now: Duration) -> [Action] {
        guard context.note(bluetooth) else { return [] }
        let isUsable = bluetooth == .poweredOn
        switch state {
        case .idle, .disconnecting: context.reportAdapter()
        case .attempting(let attempt) where attempt.operation == nil:
            // Not reported before the grace period is over: a blip concerns nobody.
            if isUsable { state = context.startRound(attempt, now) }
        case .attempting(let attempt):
            context.reportAdapter()
            if !isUsable { state = context.end(attempt, .bluetooth(bluetooth), now) }
        case .connected(let session):
            context.reportAdapter()
            if !isUsable { state = context.end(session, .bluetooth(bluetooth), now) }
        case .pausing:
            context.reportAdapter()
            if isUsable { state = context.startAttempt(Attempt(caller: nil, isAutomatic: true), now) }
        }
        return context.takeActions()
    }

    mutating func operationSucceeded(generation: UInt64, _ outcome: BLEOutcome, now: Duration) -> [Action] {
        switch state {
        case .attempting(let attempt) where attempt.operation?.generation == generation:
            state = context.proceed(attempt, outcome, now)
        case .disconnecting(var ending) where ending.awaited?.generation == generation:
            if outcome.bringsLink { ending.link = generation }
            state = context.operationEnded(ending, now)
        case .idle, .attempting, .connected, .pausing, .disconnecting:
            if outcome.bringsLink { context.emit(.closeStrayLink(generation: generation)) }
        }
        return context.takeActions()
    }

    mutating func operationFailed(generation: UInt64, _ error: GATTError, now: Duration) -> [Action] {
        switch state {
        case .attempting(let attempt) where attempt.operation?.generation == generation:
            state = context.operationFailed(attempt, error, now)
        case .disconnecting(let ending) where ending.awaited?.generation == generation:
            state = context.operationEnded(ending, error: error, now)
        case .idle, .attempting, .connected, .pausing, .disconnecting: break
        }
        return context.takeActions()
    }

    /// The link of that generation has ended by itself.
    mutating func linkLost(generation: UInt64, _ error: GATTError, now: Duration) -> [Action] {
        switch state {
        case .attempting(let attempt) where attempt.link?.generation == generation:
            state = context.linkLost(attempt, error, now)
        case .connected(let session) where session.link.generation == generation:
            state = context.linkLost(session, error, now)
        case .disconnecting(var ending) where ending.link == generation:
            ending.link = nil
            state = .disconnecting(ending)
        case .idle, .attempting, .connected, .pausing, .disconnecting: break
        }
        return context.takeActions()
    }

    /// Early calls change nothing.
    mutating func deadlineReached(now: Duration) -> [Action] {
        guard let nextDeadline, nextDeadline <= now else { return [] }
        switch state {
        case .idle: break
        case .attempting(let attempt): state = context.deadlineReached(attempt, now)
        case .connected(let session): state = context.deadlineReached(session, now)
        case .pausing: state = context.startAttempt(Attempt(caller: nil, isAutomatic: true), now)
        case .disconnecting(let ending): state = context.force(ending, now)
        }
        return context.takeActions()
    }

    // MARK: Writes

    /// `id` is for ``writeCancelled(id:)``. The write is succeeded or failed once.
    mutating func writeRequested(_ write: Write, id: UInt64, length: Int, now: Duration) -> [Action] {
        switch state {
        case .connected(let session): state = context.write(session, write, id: id, length: length, now)
        case .idle, .attempting, .pausing, .disconnecting: context.emit(.failWrite(write, .notConnected))
        }
        return context.takeActions()
    }

    mutating func writeCancelled(id: UInt64) -> [Action] {
        switch state {
        case .connected(var session):
            if let write = session.writes.callerLeft(id) { context.emit(.failWrite(write, .cancelled)) }
            state = .connected(session)
        case .idle, .attempting, .pausing, .disconnecting: break
        }
        return context.takeActions()
    }

    /// A write has ended; `error` is nil when it succeeded. `isProof`: the device itself acknowledged it.
    mutating func writeEnded(
        generation: UInt64, _ error: GATTError?, isProof: Bool = true, now: Duration
    ) -> [Action] {
        switch state {
        case .connected(let session) where session.writes.running == generation:
            state = context.writeEnded(session, generation, error, isProof: isProof, now)
        case .disconnecting(let ending) where ending.awaited?.generation == generation:
            state = context.operationEnded(ending, now)
        case .idle, .attempting, .connected, .pausing, .disconnecting: break
        }
        return context.takeActions()
    }
}
