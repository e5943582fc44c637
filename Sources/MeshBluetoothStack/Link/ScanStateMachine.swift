// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Listens for advertisements with the commands of either family (Core Specification 5.4, Vol 4 Part E §7.8.10,
/// §7.8.64).
///
///     ┌──────┐ wanted   ┌─────────────┐ done   ┌──────────┐ done   ┌──────────┐
///     │ idle │ ───────▶ │ configuring │ ─────▶ │ enabling │ ─────▶ │ scanning │
///     └──────┘          └─────────────┘        └──────────┘        └────┬─────┘
///        ▲                                                              │ not wanted
///        │                         done             ┌───────────┐       │
///        └───────────────────────────────────────── │ disabling │ ◀─────┘
///                                                   └───────────┘
///
/// What is wanted may change at any moment, also while a command is under way; the machine then goes on to where it has
/// to be. Parameters can only be set while the controller does not scan. Many controllers cannot scan while they begin
/// a link, so a driver stops scanning first and waits for ``Action/ended``. Duplicates are not filtered: the filters of
/// controllers forget late or never, and a device that comes back has to be seen.
public struct ScanStateMachine: ~Copyable, Sendable {
    public struct Configuration: Sendable, Hashable {
        /// Ask devices for their scan response, where names are.
        public var isActive = true
        /// In units of 0.625 ms.
        public var interval: UInt16 = 96
        /// In units of 0.625 ms; as long as the interval, the controller listens all the time.
        public var window: UInt16 = 96

        public init() {}
    }

    public enum Action: Sendable, Hashable {
        case nothing
        /// Its outcome goes to ``commandFinished(_:_:)``.
        case send(HCICommand)
        case began
        case ended
        /// The controller refuses; nothing is wanted any more.
        case failed(HCIStatus)
    }

    private enum State: Sendable {
        case idle
        /// Waits for the parameters to be taken.
        case configuring
        /// Waits for scanning to be switched on.
        case enabling
        case scanning
        /// Waits for it to be switched off.
        case disabling
    }

    private let family: ControllerDescriptor.CommandFamily
    private let ownAddressKind: DeviceAddress.Kind
    private var state = State.idle
    private var wanted: Configuration?
    /// What the controller scans with.
    private var current: Configuration?

    public init(_ controller: ControllerDescriptor) {
        family = controller.family
        ownAddressKind = controller.ownAddress.kind
    }

    /// Whether the controller may be scanning.
    public var isActive: Bool {
        switch state {
        case .idle: false
        case .configuring, .enabling, .scanning, .disabling: true
        }
    }

    // MARK: Inputs

    public mutating func startRequested(_ configuration: Configuration = Configuration()) -> Action {
        wanted = configuration
        return reconcile()
    }

    public mutating func stopRequested() -> Action {
        wanted = nil
        return reconcile()
    }

    /// A command of this machine was answered; others are ignored.
    public mutating func commandFinished(_ opcode: HCIOpcode, _ outcome: HCICommandOutcome) -> Action {
        let isParameters = opcode == parameters(Configuration()).opcode
        let isEnable = opcode == enable(true).opcode
        switch (state, outcome) {
        case (.configuring, .completed) where isParameters, (.configuring, .started) where isParameters:
            guard wanted == current else { return leave(.ended) }
            state = .enabling
            return .send(enable(true))
        case (.configuring, .refused(let status)) where isParameters: return leave(.failed(status))
        case (.enabling, .completed) where isEnable, (.enabling, .started) where isEnable:
            state = .scanning
            guard wanted == current else { return reconcile() }
            return .began
        case (.enabling, .refused(let status)) where isEnable: return leave(.failed(status))
        // Refused, too: it is off already.
        case (.disabling, .completed) where isEnable, (.disabling, .started) where isEnable,
            (.disabling, .refused) where isEnable:
            return leave(.ended)
        case (_, .lost) where isParameters || isEnable: return controllerLost()
        default: return .nothing
        }
    }

    /// The controller was reset or is gone.
    public mutating func controllerLost() -> Action {
        guard isActive else { return .nothing }
        wanted = nil
        return leave(.ended)
    }

    // MARK: Steps

    /// To idle; and from there on if something else is wanted by now.
    private mutating func leave(_ action: Action) -> Action {
        state = .idle
        current = nil
        if case .failed = action {
            wanted = nil
            return action
        }
        return wanted == nil ? action : reconcile()
    }

    private mutating func reconcile() -> Action {
        switch state {
        case .idle:
            guard let wanted else { return .nothing }
            state = .configuring
            current = wanted
            return .send(parameters(wanted))
        case .scanning:
            if wanted == current { return .began }
            state = .disabling
            return .send(enable(false))
        // The answer leads on.
        case .configuring, .enabling, .disabling: return .nothing
        }
    }

    private func parameters(_ configuration: Configuration) -> HCICommand {
        switch family {
        case .legacy:
            .setScanParameters(
                isActive: configuration.isActive, interval: configuration.interval, window: configuration.window,
                ownAddressKind: ownAddressKind)
        case .extended:
            .setExtendedScanParameters(
                isActive: configuration.isActive, interval: configuration.interval, window: configuration.window,
                ownAddressKind: ownAddressKind)
        }
    }

    private func enable(_ isEnabled: Bool) -> HCICommand {
        family == .extended ? .setExtendedScanEnable(isEnabled) : .setScanEnable(isEnabled)
    }
}
