// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Makes this host seen and connectable, with the commands of either family (Core Specification 5.4, Vol 4 Part E
/// §7.8.5 to §7.8.9, §7.8.52 to §7.8.56).
///
///     ┌─────┐ wanted   ┌─────────────┐ all done   ┌─────────────┐
///     │ off │ ───────▶ │ configuring │ ─────────▶ │ advertising │
///     └─────┘          └──────┬──────┘            └──────┬──────┘
///       ▲ ▲                   │ refused                  │ a central connects: the controller has stopped
///       │ │                   ▼                          ▼
///       │ │             ┌─────────┐   1 s         ┌────────────┐  a link ends: configuring
///       │ │             │ pausing │ ─────────▶    │ suspended  │  1 s: tried although links are there
///       │ │             └─────────┘  configuring  └────────────┘
///       │ └─ disabling ◀─ not wanted ─ any
///
/// A controller stops advertising when a central connects. Whether it can advertise beside a link it tells by refusing:
/// Command Disallowed (0x0C), or no room (0x09, 0x0D). Then it is tried again every second, and at once when a link
/// ends, so that a host is seen again within a second (R35).
public struct AdvertisingStateMachine: ~Copyable, Sendable {
    public struct Configuration: Sendable, Hashable {
        /// At most 31 bytes (`AdvertisingData.announcing` of MeshWire).
        public var data: [UInt8]
        /// At most 31 bytes (`AdvertisingData.naming` of MeshWire).
        public var scanResponse: [UInt8]
        /// In units of 0.625 ms.
        public var minimumInterval: UInt16
        /// In units of 0.625 ms.
        public var maximumInterval: UInt16

        /// 20 to 30 ms unless told: what a peripheral that somebody waits for should use (Vol 3 Part C Appendix A).
        public init(
            data: [UInt8], scanResponse: [UInt8], minimumInterval: UInt16 = 32, maximumInterval: UInt16 = 48
        ) {
            precondition(data.count <= 31 && scanResponse.count <= 31)
            self.data = data
            self.scanResponse = scanResponse
            self.minimumInterval = minimumInterval
            self.maximumInterval = maximumInterval
        }
    }

    public enum Action: Sendable, Hashable {
        case nothing
        /// Its outcome goes to ``commandFinished(_:_:now:)``.
        case send(HCICommand)
        case began
        case ended
    }

    private enum State: Sendable {
        case off
        /// Waits for the answer to the command with this number.
        case configuring(Int)
        case advertising
        /// Waits for a link's end, or to try beside it.
        case suspended(until: Duration)
        /// Waits to try again.
        case pausing(until: Duration)
        /// Waits for it to be switched off.
        case disabling
    }

    private static let set: UInt8 = 0
    private let controller: ControllerDescriptor
    private let retryPause: Duration
    private var state = State.off
    private var wanted: Configuration?
    private var commands: [HCICommand] = []
    private var current: Configuration?

    public init(_ controller: ControllerDescriptor, retryPause: Duration = .seconds(1)) {
        self.controller = controller
        self.retryPause = retryPause
    }

    /// When ``deadlineReached(now:)`` is due.
    public var nextDeadline: Duration? {
        switch state {
        case .suspended(let until), .pausing(let until): until
        case .off, .configuring, .advertising, .disabling: nil
        }
    }

    // MARK: Inputs

    public mutating func startRequested(_ configuration: Configuration) -> Action {
        wanted = configuration
        switch state {
        case .off, .pausing, .suspended: return configure()
        case .advertising: return wanted == current ? .began : disable()
        case .configuring, .disabling: return .nothing
        }
    }

    public mutating func stopRequested() -> Action {
        wanted = nil
        switch state {
        case .off: return .nothing
        case .pausing, .suspended: return leave()
        case .advertising: return disable()
        case .configuring, .disabling: return .nothing
        }
    }

    /// A command of this machine was answered; others are ignored.
    public mutating func commandFinished(_ opcode: HCIOpcode, _ outcome: HCICommandOutcome, now: Duration) -> Action {
        switch state {
        case .configuring(let index) where commands[index].opcode == opcode:
            switch outcome {
            case .completed, .started: return goOn(from: index)
            case .refused:
                state = .pausing(until: now + retryPause)
                return wanted == nil ? leave() : .nothing
            case .lost: return controllerLost()
            }
        case .disabling where opcode == enable(false).opcode:
            if outcome == .lost { return controllerLost() }
            state = .off
            return wanted == nil ? leave() : configure()
        case .off, .configuring, .advertising, .suspended, .pausing, .disabling: return .nothing
        }
    }

    /// A central has connected, or the set was terminated: the controller has stopped.
    public mutating func advertisingEnded(now: Duration) -> Action {
        guard case .advertising = state else { return .nothing }
        guard wanted != nil else { return leave() }
        state = .suspended(until: now + retryPause)
        return .nothing
    }

    /// A link to a central has ended: there is room.
    public mutating func linkEnded() -> Action {
        switch state {
        case .suspended, .pausing: configure()
        case .off, .configuring, .advertising, .disabling: .nothing
        }
    }

    /// The controller was reset or is gone.
    public mutating func controllerLost() -> Action {
        if case .off = state { return .nothing }
        wanted = nil
        return leave()
    }

    /// Early calls change nothing.
    public mutating func deadlineReached(now: Duration) -> Action {
        guard let nextDeadline, nextDeadline <= now else { return .nothing }
        return configure()
    }

    // MARK: Steps

    private mutating func leave() -> Action {
        state = .off
        current = nil
        return .ended
    }

    private mutating func configure() -> Action {
        guard let wanted else { return leave() }
        current = wanted
        commands = sequence(wanted)
        state = .configuring(0)
        return .send(commands[0])
    }

    private mutating func goOn(from index: Int) -> Action {
        guard index + 1 < commands.count else {
            state = .advertising
            guard wanted == current else { return disable() }
            return .began
        }
        // What is not wanted any more need not be switched on.
        if index + 2 == commands.count, wanted != current { return wanted == nil ? leave() : configure() }
        state = .configuring(index + 1)
        return .send(commands[index + 1])
    }

    private mutating func disable() -> Action {
        state = .disabling
        return .send(enable(false))
    }

    private func enable(_ isEnabled: Bool) -> HCICommand {
        controller.family == .extended
            ? .setExtendedAdvertisingEnable(isEnabled, set: Self.set) : .setAdvertisingEnable(isEnabled)
    }

    private func sequence(_ wanted: Configuration) -> [HCICommand] {
        let kind = controller.ownAddress.kind
        switch controller.family {
        case .legacy:
            return [
                .setAdvertisingParameters(
                    minimumInterval: wanted.minimumInterval, maximumInterval: wanted.maximumInterval,
                    ownAddressKind: kind), .setAdvertisingData(wanted.data), .setScanResponseData(wanted.scanResponse),
                enable(true),
            ]
        case .extended:
            var commands: [HCICommand] = [
                .setExtendedAdvertisingParameters(
                    set: Self.set, minimumInterval: UInt32(wanted.minimumInterval),
                    maximumInterval: UInt32(wanted.maximumInterval), ownAddressKind: kind)
            ]
            // A set has an address of its own (§7.8.52).
            if kind == .random {
                commands.append(.setAdvertisingSetRandomAddress(set: Self.set, controller.ownAddress))
            }
            return commands + [
                .setExtendedAdvertisingData(set: Self.set, wanted.data),
                .setExtendedScanResponseData(set: Self.set, wanted.scanResponse), enable(true),
            ]
        }
    }
}
