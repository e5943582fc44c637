// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshWire

/// Who wants bluetoothd to search on one adapter, and what it is told: one search for all wishes. Pure: the driver is
/// `BlueZService+Discovery.swift`.
///
///                    first wish            started
///     ┌─────┐ ─────────────────▶ ┌──────────┐ ────▶ ┌────┐ ──┐ deadlineReached: nothing heard
///     │ off │                    │ starting │       │ on │   │ for 90 s, or seen wishes changed
///     └─────┘ ◀── stopping ◀──── └────┬─────┘ ◀──┐  └─┬──┘ ◀─┘ (by way of stopping)
///        ▲          ▲                 │ failed   │    │ last wish ended, or paused
///        │          └─────────────────┼──────────┼────┘
///        │                            ▼          │
///        └─────────────────── clearing ▶ resting ┘ ◀── powerCycling
///
/// The adapter going away leads to `off` from everywhere but `powerCycling`, which takes it away itself. Each call to
/// bluetoothd has a number; the answer to one that does not matter any more changes nothing.
///
/// Paused while a link is made, on adapters where links failed while a search was on: most controllers and the kernel do
/// both at once, and a pause costs the search two round trips and, on BlueZ, the devices it has only seen.
struct DiscoveryStateMachine: ~Copyable {
    struct Configuration: Sendable {
        /// Nothing heard for this long: bluetoothd or the controller may be stuck, so the search begins anew (R23).
        var silence: Duration = .seconds(90)
        /// Between the end of a search that could not begin and the next try.
        var rest: Duration = .milliseconds(500)
        /// The same once it has been given up for stuck.
        var longRest: Duration = .seconds(10)
        /// How often stopping and starting again is tried before that.
        var clearings = 2
    }

    /// What is searched for.
    struct Filter: Sendable, Hashable {
        /// Devices with any of these; empty for all devices.
        var services: Set<BluetoothUUID>
        /// Whether each advertisement counts, and not only what changed.
        var reportsDuplicates: Bool

        /// Everything that either wants.
        func union(_ other: Filter) -> Filter {
            Filter(
                services: services.isEmpty || other.services.isEmpty ? [] : services.union(other.services),
                reportsDuplicates: reportsDuplicates || other.reportsDuplicates)
        }

        /// Whether a search for this finds what `other` wants.
        func covers(_ other: Filter) -> Bool { union(other) == self }
    }

    /// Why a search could not begin.
    enum StartFailure: Sendable, Hashable {
        case inProgress
        /// There was no answer: it may have begun, or begin later.
        case unknown
        case other
    }

    enum Action: Sendable, Hashable {
        case nothing
        case start(Filter, call: UInt64)
        case stop(call: UInt64)
        /// Switch the adapter off and on.
        case powerCycle(call: UInt64)
        /// Tell those who wish that the search cannot begin.
        case tellFailure
    }

    private enum State {
        /// Waits for a wish.
        case off
        /// Waits for the answer to `StartDiscovery`.
        case starting(Filter, call: UInt64)
        /// Waits for news.
        case on(Filter, heard: Duration)
        /// Waits for the answer to `StopDiscovery`.
        case stopping(call: UInt64)
        /// The same, of a search that somebody left behind.
        case clearing(call: UInt64)
        /// Waits before the next try.
        case resting(until: Duration)
        case powerCycling(call: UInt64)
    }

    private let configuration: Configuration
    private var state = State.off
    private var wishes: [UInt64: Filter] = [:]
    private var isAvailable = false
    private var pauses = 0
    private var failures = 0
    private var lastCall: UInt64 = 0

    init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// When ``deadlineReached(now:)`` is due.
    var nextDeadline: Duration? {
        switch state {
        case .on(_, let heard): heard + configuration.silence
        case .resting(let until): until
        case .off, .starting, .stopping, .clearing, .powerCycling: nil
        }
    }

    var isOn: Bool { if case .on = state { true } else { false } }
    var isPowerCycling: Bool { if case .powerCycling = state { true } else { false } }
    /// No search is on, or about to be.
    var isAtRest: Bool {
        switch state {
        case .off, .resting: true
        case .starting, .on, .stopping, .clearing, .powerCycling: false
        }
    }

    /// Nobody wants anything, and nothing is under way.
    var isIdle: Bool { if case .off = state { wishes.isEmpty && pauses == 0 } else { false } }

    // MARK: Wishes

    mutating func wishMade(_ id: UInt64, _ filter: Filter, now: Duration) -> Action {
        wishes[id] = filter
        return settle(now)
    }

    mutating func wishEnded(_ id: UInt64, now: Duration) -> Action {
        wishes[id] = nil
        return settle(now)
    }

    mutating func paused(now: Duration) -> Action {
        pauses += 1
        return settle(now)
    }

    mutating func resumed(now: Duration) -> Action {
        pauses -= 1
        return settle(now)
    }

    // MARK: Facts

    /// The adapter is there and on, or not any more.
    mutating func adapterChanged(isAvailable: Bool, now: Duration) -> Action {
        self.isAvailable = isAvailable
        if case .powerCycling = state { return .nothing }
        if !isAvailable {
            state = .off
            failures = 0
        }
        return settle(now)
    }

    mutating func started(call: UInt64, now: Duration) -> Action {
        guard case .starting(let filter, call) = state else { return startedLate() }
        state = .on(filter, heard: now)
        failures = 0
        return settle(now)
    }

    /// The answer to a start that was given up: nobody counts on this search.
    private mutating func startedLate() -> Action {
        guard isAvailable else { return .nothing }
        switch state {
        case .off, .resting:
            state = .clearing(call: nextCall())
            return .stop(call: lastCall)
        case .starting, .on, .stopping, .clearing, .powerCycling: return .nothing
        }
    }

    /// `mayPowerCycle`: it is allowed, and nobody has a link through the adapter, or makes one.
    mutating func startFailed(call: UInt64, _ failure: StartFailure, mayPowerCycle: Bool, now: Duration) -> Action {
        guard case .starting(_, call) = state else { return .nothing }
        failures += 1
        switch failure {
        case .unknown,
            .inProgress where failures <= configuration.clearings:
            state = .clearing(call: nextCall())
            return .stop(call: lastCall)
        case .inProgress where mayPowerCycle && failures == configuration.clearings + 1:
            state = .powerCycling(call: nextCall())
            return .powerCycle(call: lastCall)
        case .inProgress:
            state = .resting(until: now + configuration.longRest)
            return .tellFailure
        case .other where failures <= configuration.clearings:
            state = .resting(until: now + configuration.rest)
            return .nothing
        case .other:
            state = .resting(until: now + configuration.longRest)
            return .tellFailure
        }
    }

    /// `StopDiscovery` was answered, however: a search that is not on cannot be stopped, and one that cannot be stopped is told
    /// by the next start.
    mutating func stopped(call: UInt64, now: Duration) -> Action {
        switch state {
        case .stopping(call):
            state = .off
            return settle(now)
        case .clearing(call):
            let isStuck = failures > configuration.clearings
            state = .resting(until: now + (isStuck ? configuration.longRest : configuration.rest))
            return isStuck ? .tellFailure : .nothing
        default: return .nothing
        }
    }

    mutating func powerCycled(call: UInt64, now: Duration) -> Action {
        guard case .powerCycling(call) = state else { return .nothing }
        state = .off
        return settle(now)
    }

    /// A device was heard.
    mutating func heard(now: Duration) {
        if case .on(let filter, _) = state { state = .on(filter, heard: now) }
    }

    mutating func deadlineReached(now: Duration) -> Action {
        guard let nextDeadline, now >= nextDeadline else { return .nothing }
        switch state {
        case .on:
            state = .stopping(call: nextCall())
            return .stop(call: lastCall)
        case .resting:
            state = .off
            return settle(now)
        case .off, .starting, .stopping, .clearing, .powerCycling: return .nothing
        }
    }

    // MARK: Deciding

    private var desired: Filter? {
        guard isAvailable, pauses == 0, let first = wishes.values.first else { return nil }
        return wishes.values.reduce(first) { $0.union($1) }
    }

    private mutating func settle(_ now: Duration) -> Action {
        let desired = desired
        switch state {
        case .off:
            guard let desired else { return .nothing }
            state = .starting(desired, call: nextCall())
            return .start(desired, call: lastCall)
        case .on(let filter, _):
            if let desired, filter.covers(desired) { return .nothing }
            state = .stopping(call: nextCall())
            return .stop(call: lastCall)
        case .resting:
            if desired == nil {
                state = .off
                failures = 0
            }
            return .nothing
        case .starting, .stopping, .clearing, .powerCycling: return .nothing
        }
    }

    private mutating func nextCall() -> UInt64 {
        lastCall += 1
        return lastCall
    }
}
