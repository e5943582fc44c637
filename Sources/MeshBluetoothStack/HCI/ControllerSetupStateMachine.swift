// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Sets a controller up after its reset (Core Specification 5.4, Vol 6 Part D §2.1 shows the sequence).
///
///     ┌──────┐  start   ┌──────────────────────┐  last outcome  ┌──────┐
///     │ idle │ ───────▶ │ waiting for step n   │ ─────────────▶ │ done │
///     └──────┘          └──────────┬───────────┘                └──────┘
///                         a step that has to succeed is refused, or its
///                         answer has no meaning: failed
///
/// One command at a time, in the order of ``Step``. What the controller does not support is left out, and what it
/// refuses although it says it supports it is taken as not supported, unless nothing works without it. The resetting
/// itself, and silence, are ``HCICommandFlowStateMachine``'s business.
public struct ControllerSetupStateMachine: ~Copyable, Sendable {
    public struct Configuration: Sendable {
        /// Used where the controller has no public address, or where ``prefersRandomAddress``: from stored random bits,
        /// so that bonds stay valid (``DeviceAddress/staticRandom(_:)``).
        public var randomAddress: DeviceAddress
        public var prefersRandomAddress = false
        /// Bonded devices whose private addresses the controller is to resolve. Keys in the order of the wire.
        public var identities: [(address: DeviceAddress, key: [UInt8])] = []
        /// How long the controller keeps a private address of its own, in seconds: what the specification recommends
        /// (Vol 3 Part C Appendix A).
        public var privateAddressSeconds: UInt16 = 900
        /// Use the legacy commands even if the extended ones are there.
        public var allowsExtendedFamily = true

        public init(randomAddress: DeviceAddress) {
            self.randomAddress = randomAddress
        }
    }

    public enum Action: Sendable, Hashable {
        case send(HCICommand)
        case finish(ControllerDescriptor)
        case fail(Failure)
    }

    /// Why a controller cannot be used.
    public enum Failure: Sendable, Hashable {
        case refused(HCIOpcode, HCIStatus)
        /// The answer is too short, or says what cannot be.
        case meaninglessAnswer(HCIOpcode)
        /// It has no buffers for data.
        case noBuffers
        /// The controller was reset or lost meanwhile.
        case interrupted
    }

    private enum State {
        case idle
        /// Waits for the outcome of a step.
        case waiting(Step)
        case done
    }

    private let configuration: Configuration
    private var state = State.idle
    private var descriptor = ControllerDescriptor()
    private var nextIdentity = 0

    public init(_ configuration: Configuration) {
        self.configuration = configuration
    }

    // MARK: Inputs

    /// The controller was reset.
    public mutating func start() -> Action {
        descriptor = ControllerDescriptor()
        nextIdentity = 0
        return advance(to: Step.allCases.startIndex)
    }

    /// The command of the last ``Action/send(_:)`` was answered. Ignored if nothing is waited for.
    public mutating func commandFinished(_ outcome: HCICommandOutcome) -> Action? {
        guard case .waiting(let step) = state else { return nil }
        switch outcome {
        case .lost: return fail(.interrupted)
        case .completed(let parameters):
            guard accept(parameters, step) else { return fail(.meaninglessAnswer(step.opcode)) }
        // A status without an end to wait for: there is nothing to read, so it counts as not supported.
        case .started: if step.isRequired { return fail(.meaninglessAnswer(step.opcode)) }
        case .refused(let status): if step.isRequired { return fail(.refused(step.opcode, status)) }
        }
        // Two commands for each identity, also when the list is fuller than it says. One that is not in the list has no mode.
        if step == .setPrivacyMode || step == .addToResolvingList && !isAddedLast {
            nextIdentity += 1
            return advance(to: Step.addToResolvingList.rawValue)
        }
        return advance(to: step.rawValue + 1)
    }

    // MARK: Steps

    private mutating func advance(to first: Int) -> Action {
        for step in Step.allCases[first...] where isNeeded(step) {
            state = .waiting(step)
            return .send(command(step))
        }
        state = .done
        let publicAddress = configuration.prefersRandomAddress ? nil : descriptor.publicAddress
        descriptor.ownAddress = publicAddress ?? configuration.randomAddress
        guard descriptor.buffers.count > 0, descriptor.buffers.packetLength >= 27 else { return .fail(.noBuffers) }
        return .finish(descriptor)
    }

    private mutating func fail(_ failure: Failure) -> Action {
        state = .done
        return .fail(failure)
    }

    private var hasOwnBuffers: Bool { descriptor.buffers.count > 0 && descriptor.buffers.packetLength > 0 }

    /// Without device privacy mode a device of the list that uses its identity address is not heard (Vol 6 Part B §4.7), as
    /// radios do that give a key and never use it. A controller that does not know the mode gets no list; the host resolves.
    private var identitiesThatFit: Int {
        guard descriptor.features.contains(.privacy), descriptor.supports(.setPrivacyMode) else { return 0 }
        return min(configuration.identities.count, descriptor.resolvingListSize)
    }

    /// Whether the identity of this turn is in the list.
    private var isAddedLast: Bool {
        nextIdentity < configuration.identities.count
            && descriptor.resolvedIdentities.last == configuration.identities[nextIdentity].address
    }

    private var usesRandomAddress: Bool {
        configuration.prefersRandomAddress || descriptor.publicAddress == nil
    }

    private func isNeeded(_ step: Step) -> Bool {
        let isWanted =
            switch step {
            case .readVersion, .readSupportedCommands, .readFeatures, .readSupportedFeatures, .readAddress,
                .setEventMask, .setEventMaskPage2, .setLEEventMask, .readAcceptListSize:
                true
            case .readBufferSizeV1: !descriptor.supports(.readLEBufferSizeV2) || !hasOwnBuffers
            case .readBufferSizeV2: descriptor.supports(.readLEBufferSizeV2) && !descriptor.supportedCommands.isEmpty
            case .readSharedBufferSize: !hasOwnBuffers
            case .writeLEHostSupport: descriptor.isDualMode
            case .readResolvingListSize, .clearResolvingList: descriptor.features.contains(.privacy)
            case .addToResolvingList, .setPrivacyMode: nextIdentity < identitiesThatFit
            case .setPrivateAddressTimeout, .enableAddressResolution: !descriptor.resolvedIdentities.isEmpty
            case .readMaximumDataLength, .writeDefaultDataLength:
                descriptor.features.contains(.dataLengthExtension)
            case .setDefaultPHY: descriptor.features.contains(.twoMegabit)
            case .setRandomAddress: usesRandomAddress
            }
        return isWanted && (step.isRequired || descriptor.supports(step.opcode))
    }

    private func command(_ step: Step) -> HCICommand {
        switch step {
        case .setEventMask: .setEventMask(EventMasks.main)
        case .setEventMaskPage2: .setEventMaskPage2(EventMasks.page2)
        case .setLEEventMask: .setLEEventMask(EventMasks.le(descriptor))
        case .writeLEHostSupport: .writeLEHostSupport
        case .addToResolvingList:
            .addToResolvingList(
                configuration.identities[nextIdentity].address, peerKey: configuration.identities[nextIdentity].key,
                localKey: [UInt8](repeating: 0, count: 16))
        case .setPrivacyMode: .setDevicePrivacyMode(configuration.identities[nextIdentity].address)
        case .setPrivateAddressTimeout: .setPrivateAddressTimeout(seconds: configuration.privateAddressSeconds)
        case .enableAddressResolution: .setAddressResolutionEnable(true)
        case .writeDefaultDataLength: .writeDefaultDataLength(descriptor.maximumDataLength)
        case .setDefaultPHY: .setDefaultPHY([.oneMegabit, .twoMegabit])
        case .setRandomAddress: .setRandomAddress(configuration.randomAddress)
        case .readVersion, .readSupportedCommands, .readFeatures, .readSupportedFeatures, .readAddress,
            .readBufferSizeV2, .readBufferSizeV1, .readSharedBufferSize, .readAcceptListSize, .readResolvingListSize,
            .clearResolvingList, .readMaximumDataLength:
            .read(step.opcode)
        }
    }

    /// Takes over what a command returned; false if it has no meaning.
    private mutating func accept(_ bytes: [UInt8], _ step: Step) -> Bool {
        do {
            switch step {
            case .readVersion:
                let version = try HCIReturnParameters.localVersion(bytes)
                descriptor.hciVersion = version.hciVersion
                descriptor.company = version.company
            case .readSupportedCommands: descriptor.supportedCommands = bytes
            case .readFeatures: descriptor.features = LEFeatures(rawValue: try HCIReturnParameters.features(bytes))
            case .readSupportedFeatures: descriptor.isDualMode = try HCIReturnParameters.features(bytes) >> 37 & 1 == 0
            case .readAddress:
                let address = try HCIReturnParameters.address(bytes)
                descriptor.publicAddress = address.value == 0 ? nil : address
            case .readBufferSizeV2, .readBufferSizeV1:
                let buffers = try HCIReturnParameters.leBuffers(bytes)
                descriptor.buffers = .init(packetLength: buffers.length, count: buffers.count)
            case .readSharedBufferSize:
                let buffers = try HCIReturnParameters.sharedBuffers(bytes)
                descriptor.buffers = .init(packetLength: buffers.length, count: buffers.count)
            case .readAcceptListSize: descriptor.acceptListSize = try HCIReturnParameters.size(bytes)
            case .readResolvingListSize: descriptor.resolvingListSize = try HCIReturnParameters.size(bytes)
            case .addToResolvingList:
                descriptor.resolvedIdentities.append(configuration.identities[nextIdentity].address)
            case .readMaximumDataLength:
                let length = try HCIReturnParameters.maximumDataLength(bytes)
                guard length.octets >= 27, length.microseconds >= 328 else { return false }
                descriptor.maximumDataLength = DataLength(
                    octets: min(length.octets, 251), microseconds: min(length.microseconds, 17_040))
            case .setEventMask, .setEventMaskPage2, .setLEEventMask, .writeLEHostSupport, .clearResolvingList,
                .setPrivacyMode, .setPrivateAddressTimeout, .enableAddressResolution, .writeDefaultDataLength,
                .setDefaultPHY,
                .setRandomAddress:
                break
            }
        } catch {
            return false
        }
        descriptor.family = chooseFamily()
        return true
    }

    private func chooseFamily() -> ControllerDescriptor.CommandFamily {
        let extended: [HCIOpcode] = [
            .setExtendedScanParameters, .setExtendedScanEnable, .extendedCreateConnection,
        ]
        let hasExtended =
            descriptor.features.contains(.extendedAdvertising) && !descriptor.supportedCommands.isEmpty
            && extended.allSatisfy(descriptor.supports)
        return hasExtended && configuration.allowsExtendedFamily ? .extended : .legacy
    }
}
