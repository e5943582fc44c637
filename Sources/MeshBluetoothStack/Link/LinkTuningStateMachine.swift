// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// What one link is to run with, seen from the central: long packets, the fast mode, and how often both ends meet (Core
/// Specification 5.4, Vol 3 Part C §9.3, Vol 6 Part B §5.1.1, §5.1.7).
///
///                 linkOpened: features, data length, mode
///     ┌──────┐ ────────────────────────────────────────▶ ┌──────────────────────┐ peer's request: granted, and
///     │ new  │                                           │ settingUp, fast      │ ordered at the end, or 5 s later
///     └──────┘                                           └──────────┬───────────┘
///                          setUpFinished: the peer's parameters, or relaxed ones
///                                                                   ▼
///                                                        ┌──────────────────────┐ peer's request: granted and
///                                                        │ inUse                │ ordered at once
///                                                        └──────────────────────┘
///
/// Setting up takes some round trips, each of them two intervals long, so the link begins with short ones and ends with
/// what the peer asks for; a peer that asks for nothing gets the relaxed ones. Whatever is granted keeps a supervision
/// timeout of 4 s (``ConnectionParameters/supervisionFloor``), and of no more than 10 s where that can be. The specification does not say how soon a central that
/// accepts has to act; radios ask as soon as they are paired, with a latency under which the rest of the set-up would
/// take seconds, so the order waits for its end, but no longer than 5 s of the 30 that the peripheral has to wait (Vol 3
/// Part C Appendix A, TGAP(conn_param_timeout)).
///
/// There is no fight: own parameters are ordered once and never again, a request for what the link runs with already is
/// granted without an order, and a peer that asks more often than the budget allows is refused, and stays connected.
/// None of it has to succeed.
public struct LinkTuningStateMachine: Sendable {
    public struct Configuration: Sendable, Hashable {
        /// What the controller's packets may carry; nil if it knows no other than the least.
        public var dataLength: DataLength?
        /// The mode to ask for; nil leaves it to the controllers.
        public var phy: PHYSet?
        /// What a link is kept with.
        public var relaxed = ConnectionParameters.relaxed
        /// The one interval that this host wants, in units of 1.25 ms; nil leaves the choice to the peer.
        public var interval: UInt16?
        /// How long the peer's parameters may wait for the end of the set-up.
        public var longestDelay: Duration = .seconds(5)
        /// How many of the peer's requests change something, in each ``requestPeriod``.
        public var requestLimit = 4
        public var requestPeriod: Duration = .seconds(60)

        public init() {}

        /// What goes with a controller: nothing that it cannot do.
        public init(_ controller: ControllerDescriptor, allowsTwoMegabit: Bool = true, interval: UInt16? = nil) {
            if controller.features.contains(.dataLengthExtension), controller.supports(.setDataLength) {
                dataLength = controller.maximumDataLength
            }
            // A mode of 1M is asked for, too: it keeps the peer from changing to 2M by itself.
            if controller.features.contains(.twoMegabit), controller.supports(.setPHY) {
                phy = allowsTwoMegabit ? .twoMegabit : .oneMegabit
            }
            self.interval = interval
            if let interval { relaxed = relaxed.fitting(interval) ?? relaxed.with(interval: interval) }
        }
    }

    /// What becomes of a request of the peer.
    public enum Verdict: Sendable, Hashable {
        case refuse
        /// Say so, and order these, if any.
        case grant(ConnectionParameters?)
    }

    private enum State: Sendable {
        /// Waits for the link's machine to begin.
        case new
        /// Waits for the end of the set-up; with the peer's parameters until the deadline, then for those to be ordered.
        case settingUp(wanted: ConnectionParameters?, deadline: Duration?)
        /// Waits for the peer's wishes.
        case inUse
    }

    private let role: LinkRole
    private let configuration: Configuration
    private var state = State.new
    private var periodEnd = Duration.zero
    private var requestsInPeriod = 0
    /// Requests of the peer that were refused.
    public private(set) var refusals: UInt64 = 0

    public init(role: LinkRole, configuration: Configuration = Configuration()) {
        self.role = role
        self.configuration = configuration
    }

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? {
        switch state {
        case .settingUp(_, let deadline): deadline
        case .new, .inUse: nil
        }
    }

    // MARK: Inputs

    /// The link may be tuned now; returns what to run, in this order. A peripheral leaves that to its central.
    public mutating func linkOpened() -> [LinkProcedure] {
        guard role == .central, case .new = state else { return [] }
        state = .settingUp(wanted: nil, deadline: nil)
        var procedures: [LinkProcedure] = []
        if configuration.dataLength != nil || configuration.phy != nil { procedures.append(.readRemoteFeatures) }
        if let length = configuration.dataLength { procedures.append(.setDataLength(length)) }
        if let phy = configuration.phy { procedures.append(.setPHY(phy)) }
        return procedures
    }

    /// The peer asks by L2CAP's signalling; who grants has to order it.
    public mutating func parametersRequested(
        _ wanted: ConnectionParameters, current: HCIEvent.CurrentParameters, now: Duration
    ) -> Verdict {
        guard let granted = granted(wanted) else { return refuse() }
        switch state {
        case .settingUp(_, let deadline):
            // The last word counts, and the first sets the time.
            state = .settingUp(wanted: granted, deadline: deadline ?? now + configuration.longestDelay)
            return .grant(nil)
        case .new, .inUse:
            if granted.contains(current) { return .grant(nil) }
            return spend(now) ? .grant(granted) : refuse()
        }
    }

    /// The peer's link layer asks, and waits: the answer cannot be put off. Nil refuses; else the controller does the rest.
    public mutating func linkLayerRequested(_ wanted: ConnectionParameters, now: Duration) -> ConnectionParameters? {
        guard let granted = granted(wanted), spend(now) else {
            refusals += 1
            return nil
        }
        // What the peer has chosen is not taken back at the end of the set-up.
        if role == .central { state = .inUse }
        return granted
    }

    /// The link is in use from here on; returns what to order.
    public mutating func setUpFinished() -> ConnectionParameters? {
        switch state {
        case .settingUp(let wanted, _):
            state = .inUse
            return wanted ?? configuration.relaxed
        case .new, .inUse: return nil
        }
    }

    /// Returns what to order. Early calls change nothing.
    public mutating func deadlineReached(now: Duration) -> ConnectionParameters? {
        guard case .settingUp(let wanted, let deadline?) = state, deadline <= now else { return nil }
        state = .inUse
        return wanted
    }

    // MARK: Steps

    /// As far as they can be granted.
    private func granted(_ wanted: ConnectionParameters) -> ConnectionParameters? {
        guard wanted.isValid else { return nil }
        let bounded = wanted.withSupervisionInBounds
        guard let interval = configuration.interval else { return bounded }
        return bounded.fitting(interval)
    }

    private mutating func refuse() -> Verdict {
        refusals += 1
        return .refuse
    }

    /// Whether the peer has a request left.
    private mutating func spend(_ now: Duration) -> Bool {
        if now >= periodEnd {
            periodEnd = now + configuration.requestPeriod
            requestsInPeriod = 0
        }
        guard requestsInPeriod < configuration.requestLimit else { return false }
        requestsInPeriod += 1
        return true
    }
}

extension ConnectionParameters {
    /// Whether a link that runs with `current` has nothing to change.
    func contains(_ current: HCIEvent.CurrentParameters) -> Bool {
        (minimumInterval...max(minimumInterval, maximumInterval)).contains(current.interval)
            && latency == current.latency && supervisionTimeout == current.supervisionTimeout
    }

    /// The same with this interval alone; nil if that is none of theirs.
    func fitting(_ interval: UInt16) -> ConnectionParameters? {
        guard minimumInterval <= interval, interval <= maximumInterval else { return nil }
        return with(interval: interval)
    }

    /// The same with this interval alone, and a supervision timeout that it allows.
    func with(interval: UInt16) -> ConnectionParameters {
        var parameters = self
        parameters.minimumInterval = interval
        parameters.maximumInterval = interval
        // Of the longest interval, 4 s, twice is 8 s: more than the timeout of 5 s.
        while !parameters.isValid, parameters.supervisionTimeout < 3200 {
            parameters.supervisionTimeout = min(3200, parameters.supervisionTimeout + 100)
        }
        return parameters
    }
}
