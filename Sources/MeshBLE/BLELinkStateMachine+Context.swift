// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI
internal import MeshWire

extension BLELinkStateMachine {
    /// What outlives the states: settings, memory, and the actions of the input that is being worked on.
    struct Context {
        /// An attempt that has begun anew this often, because of bonds, fails: a device that drops the link whenever it is
        /// paired with would keep it going for ever.
        static var maximumRounds: Int { 3 }
        /// From when on an error says that the radio may have to be power-cycled (R33).
        static var silenceWorthAWord: Duration { .seconds(60) }

        private(set) var settings: BLETransportSettings
        private(set) var phase = LinkPhase.idle
        var security: BLESecurityPolicy
        private var reconnect: BLEReconnectPolicy
        private var actions: [Action] = []
        private var lastGeneration: UInt64 = 0
        /// Nil while nobody has said.
        private(set) var bluetooth: BluetoothState?
        private var isObserving = false
        private var reportedAvailable = true
        /// Nobody wants a link, but whoever was told that the adapter is away waits to be told that it is back.
        private var stopsObservingWhenBack = false
        /// Whether the next attempt asks if the device is connected already: the first one, and the first after Bluetooth
        /// came back.
        var adoptsNext = true
        /// Since the start, to this device.
        private(set) var hasBeenConnected = false
        /// Discoveries in a row that lacked something.
        private var missingInARow = 0
        /// When the first of the attempts began that found nobody.
        private var silentSince: Duration?

        init(_ settings: BLETransportSettings, seed: UInt64) {
            self.settings = settings
            reconnect = BLEReconnectPolicy(bounds: settings.reconnectDelay, seed: seed)
            security = BLESecurityPolicy(settings)
        }

        // MARK: Saying

        mutating func emit(_ action: Action) {
            actions.append(action)
        }

        mutating func takeActions() -> [Action] {
            defer { actions = [] }
            return actions
        }

        mutating func enter(_ phase: LinkPhase) {
            guard phase != self.phase else { return }
            self.phase = phase
            emit(.enterPhase(phase))
        }

        mutating func nextGeneration() -> UInt64 {
            lastGeneration += 1
            return lastGeneration
        }

        mutating func fail(_ caller: inout Caller?, _ failure: BLELinkFailure) {
            if let waiter = caller?.waiter { emit(.fail(waiter, failure)) }
            caller = nil
        }

        // MARK: Bluetooth

        mutating func observeBluetooth() {
            stopsObservingWhenBack = false
            if isObserving { return }
            isObserving = true
            emit(.observeBluetooth)
        }

        private mutating func stopObservingBluetooth() {
            guard isObserving else { return }
            guard reportedAvailable else {
                stopsObservingWhenBack = true
                return
            }
            stopsObservingWhenBack = false
            isObserving = false
            bluetooth = nil
            emit(.stopObservingBluetooth)
        }

        /// False for what is known already, or is of no interest any more.
        mutating func note(_ state: BluetoothState) -> Bool {
            guard isObserving, state != bluetooth else { return false }
            let cameBack = state == .poweredOn && bluetooth != nil
            if cameBack { adoptsNext = true }
            bluetooth = state
            emit(.tellBluetooth(state, cameBack: cameBack))
            return true
        }

        mutating func reportAdapter() {
            // What the system does not allow is for a person to mend: nothing to wait for.
            let isAvailable = bluetooth == .poweredOn || bluetooth == .unauthorized
            guard isAvailable != reportedAvailable else { return }
            reportedAvailable = isAvailable
            emit(.reportAdapter(available: isAvailable))
            if stopsObservingWhenBack { stopObservingBluetooth() }
        }

        // MARK: Remembering

        mutating func noteConnected() {
            hasBeenConnected = true
            missingInARow = 0
            silentSince = nil
            reconnect.reset()
        }

        mutating func noteHeard() {
            silentSince = nil
        }

        mutating func nextDelay() -> Duration { reconnect.nextDelay() }

        /// The device lacks something. It is believed at once when it is seen for the first time, later only at the second time:
        /// a link that is dying, or a radio that is starting, may show less than there is.
        mutating func noteMissing(_ uuid: BluetoothUUID) -> BLELinkFailure.Cause {
            missingInARow += 1
            return .missing(uuid, isNew: hasBeenConnected && missingInARow < 2)
        }

        /// A failure, with what attempts before it add to it.
        mutating func failure(of attempt: Attempt, _ cause: BLELinkFailure.Cause, now: Duration) -> BLELinkFailure {
            let operation = attempt.operation?.kind
            var failure = BLELinkFailure(cause, phase: phase, operation: operation)
            switch (cause, operation) {
            case (.timedOut, .connect): break
            case (.operation(let error), .connect) where error.reason == .unreachable: break
            case (.requested, _): return failure
            default:
                silentSince = nil
                return failure
            }
            let since = silentSince ?? attempt.since
            silentSince = since
            if now - since >= Self.silenceWorthAWord { failure.unheardFor = now - since }
            return failure
        }

        // MARK: Beginning

        mutating func startAttempt(_ attempt: Attempt, _ now: Duration) -> State {
            observeBluetooth()
            return startRound(attempt, now)
        }

        mutating func startRound(_ attempt: Attempt, _ now: Duration) -> State {
            var attempt = attempt
            let end = attempt.end ?? now + settings.attemptTimeout
            attempt.end = end
            // Another round after the end of a link that took its time.
            if end <= now { return self.end(attempt, .timedOut(after: settings.attemptTimeout), now) }
            guard bluetooth == .poweredOn else {
                attempt.since = now
                attempt.deadline = now + settings.bluetoothGrace
                enter(.waitingForBluetooth)
                return .attempting(attempt)
            }
            reportAdapter()
            attempt.rounds += 1
            if security.removesBondFirst { return begin(.removeBond, attempt, now) }
            return begin(adoptsNext ? .adopt : .connect, attempt, now)
        }

        mutating func begin(_ operation: BLEOperation, _ attempt: Attempt, _ now: Duration) -> State {
            var attempt = attempt
            let generation = nextGeneration()
            attempt.operation = RunningOperation(kind: operation, generation: generation)
            // One deadline for all of the discovery.
            if case .discoverCharacteristics = operation {
            } else {
                attempt.since = now
                attempt.deadline = now + timeout(of: operation)
                if let end = attempt.end { attempt.deadline = min(attempt.deadline, end) }
            }
            enter(phase(of: operation, isAutomatic: attempt.isAutomatic))
            emit(.start(operation, generation: generation, link: attempt.link?.generation))
            return .attempting(attempt)
        }

        private func phase(of operation: BLEOperation, isAutomatic: Bool) -> LinkPhase {
            switch operation {
            case .adopt: .restoringState
            case .removeBond, .connect: isAutomatic ? .autoReconnecting : .connecting
            case .discoverServices: .discoveringServices
            case .discoverCharacteristics, .pair: .discoveringCharacteristics
            case .subscribe: .subscribingToNotifications
            case .readWriteLength: .discoveryComplete
            case .write: .connected
            case .close: .disconnecting
            }
        }

        private func timeout(of operation: BLEOperation) -> Duration {
            switch operation {
            case .adopt, .connect: settings.connectionTimeout
            case .removeBond, .close: settings.disconnectionTimeout
            case .discoverServices, .discoverCharacteristics:
                hasBeenConnected ? settings.autoReconnectDiscoveryTimeout : settings.serviceDiscoveryTimeout
            case .pair: settings.pairingTimeout
            case .subscribe: settings.subscriptionTimeout
            case .readWriteLength, .write: settings.writeTimeout
            }
        }

        // MARK: Resting

        /// Nothing is under way (any more), as asked for.
        mutating func finish(_ stop: Stop) {
            stopObservingBluetooth()
            apply(stop)
        }

        /// What has to be done when the last thing has ended.
        mutating func finish(_ ending: Ending, _ now: Duration) -> State {
            var ending = ending
            let failure = ending.failure ?? BLELinkFailure(.requested, phase: phase)
            switch ending.next {
            case .again:
                var attempt = ending.attempt ?? Attempt(caller: nil, isAutomatic: true)
                attempt.operation = nil
                attempt.link = nil
                if attempt.caller == nil { attempt.caller = ending.queued }
                return startRound(attempt, now)
            case .reconnect:
                announce(ending.announcement)
                fail(&ending.caller, failure)
                if let queued = ending.queued {
                    return startAttempt(Attempt(caller: queued, isAutomatic: true), now)
                }
                enter(.autoReconnecting)
                return .pausing(Pause(until: now + nextDelay()))
            case .rest:
                enter(.idle)
                announce(ending.announcement)
                fail(&ending.caller, failure)
                if !ending.stops.isEmpty, ending.queued == nil { stopObservingBluetooth() }
                for stop in ending.stops { apply(stop) }
                guard let queued = ending.queued else { return .idle }
                return startAttempt(Attempt(caller: queued, isAutomatic: false), now)
            }
        }

        private mutating func announce(_ announcement: Announcement?) {
            switch announcement {
            case .disconnected(let failure): emit(.tellDisconnected(failure))
            case .autoReconnecting(let failure): emit(.tellAutoReconnecting(failure))
            case nil: break
            }
        }

        private mutating func apply(_ stop: Stop) {
            if let target = stop.newTarget {
                settings.target = target
                security = BLESecurityPolicy(settings)
                reconnect.reset()
                adoptsNext = true
                hasBeenConnected = false
                missingInARow = 0
                silentSince = nil
                emit(.changeTarget(target))
            }
            emit(.succeed(stop.waiter))
        }
    }
}
