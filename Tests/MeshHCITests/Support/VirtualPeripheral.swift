// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshCrypto
import MeshTestSupport
import MeshWire

/// A radio behind a ``VirtualController``: the stack's own machines in the role of the peripheral, with the serial service
/// that MeshCore's radios have. Used by its controller only.
final class VirtualPeripheral {
    struct Settings: Sendable {
        var address = DeviceAddress(0xC011_2233_4455, .random)
        var name = "Roof"
        /// Nil: links need no security.
        var passkey: UInt32?
        /// Each frame comes back.
        var echoes = false
        /// What it gives as its identity; nil for its address.
        var identity: DeviceAddress?
        /// Of all zeros: it has no private addresses.
        var resolvingKey = [UInt8](repeating: 0, count: 16)
    }

    typealias Machine = LinkStateMachine<Int>

    /// What the controllers do for it.
    enum Order {
        case frame(L2CAPFrame)
        case command(HCICommand)
    }

    static let profile = (
        service: BluetoothUUID(high: 0x6E40_0001_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E),
        receive: BluetoothUUID(high: 0x6E40_0002_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E),
        transmit: BluetoothUUID(high: 0x6E40_0003_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)
    )

    let settings: Settings
    /// In range, and willing.
    var isAdvertising = true
    private(set) var written: [[UInt8]] = []
    var bond: Bond?
    /// Asks for security when it is to encrypt, and has no keys.
    var asksWhenKeysAreMissing = false
    /// What it fails the next pairings for, one after the other.
    var rejections: [SMPFailureReason] = []
    /// Of the link that is there.
    private(set) var machine: Machine?
    private var random = SplitMix(state: 1)

    init(_ settings: Settings) {
        self.settings = settings
    }

    var isLinked: Bool { machine != nil }

    /// A value of the radio's; nil if nobody listens.
    func notification(_ value: [UInt8]) -> L2CAPFrame? {
        guard let handle = database.valueHandle(of: Self.profile.transmit, in: Self.profile.service) else { return nil }
        return machine?.notification(handle, value)
    }

    /// The radio asks for what it needs, or for more than that.
    func securityRequest() -> [Order] {
        follow(machine?.secureRequested(now: .zero))
    }

    /// The radio asks for parameters, over signalling.
    func parameterRequest(_ parameters: ConnectionParameters) -> [Order] {
        follow(machine?.linkProcedureRequested(.updateParameters(parameters), now: .zero))
    }

    // MARK: The link

    func linkMade(_ handle: ConnectionHandle, by host: DeviceAddress) {
        let connection = ConnectionComplete(
            status: .success, handle: handle, role: .peripheral, peer: host,
            parameters: .init(interval: 12, latency: 0, supervisionTimeout: 500))
        var configuration = Machine.Configuration(
            security: .init(role: .peripheral, bond: bond, requiresAuthentication: settings.passkey != nil))
        configuration.database = database
        machine = Machine(connection, configuration: configuration)
    }

    func linkEnded() {
        guard var machine = machine.take() else { return }
        _ = machine.controllerLost(now: .zero)
    }

    func pieceReceived(_ boundary: ACLPacket.Boundary, _ payload: [UInt8]) -> [Order] {
        follow(machine?.pieceReceived(boundary, payload, now: .zero))
    }

    func eventReceived(_ event: HCIEvent) -> [Order] {
        follow(machine?.eventReceived(event, now: .zero))
    }

    private var database: AttributeDatabase {
        let protection: AttributeDatabase.Protection = settings.passkey == nil ? .open : .authenticated
        return AttributeDatabase([
            .init(
                uuid: Self.profile.service,
                characteristics: [
                    .init(uuid: Self.profile.receive, properties: 0x0C, writeProtection: protection),
                    .init(uuid: Self.profile.transmit, properties: 0x10, writeProtection: protection),
                ])
        ])
    }

    private func follow(_ actions: [Machine.Action]?) -> [Order] {
        var orders: [Order] = []
        for action in actions ?? [] {
            switch action {
            case .sendFrame(let frame): orders.append(.frame(frame))
            case .sendCommand(let command): orders.append(.command(command))
            case .serve(.written(_, let value)):
                written.append(value)
                if settings.echoes, let frame = notification(value) { orders.append(.frame(frame)) }
            case .preparePairing: orders += preparePairing()
            case .askForPasskey: orders += follow(machine?.passkeyEntered(settings.passkey, now: .zero))
            case .storeBond(let bond): self.bond = bond
            case .forgetBond: bond = nil
            case .serve, .finish, .deliver, .finishProcedure, .finishParameterRequest, .secured, .failSecurity, .ended:
                break
            }
        }
        return orders
    }

    private func preparePairing() -> [Order] {
        if !rejections.isEmpty {
            let packet = SMPPacket.failed(rejections.removeFirst())
            return [.frame(L2CAPFrame(channel: L2CAPFrame.securityChannel, payload: packet.bytes))]
        }
        // Keys of the curve that differ from run to run change no packet's length or order.
        guard let connection = machine?.connection, let keyPair = try? P256.KeyPair.generate() else { return [] }
        func bytes() -> [UInt8] { (0..<16).map { _ in .random(in: 0...255, using: &random) } }
        let material = PairingStateMachine.Material(
            keyPair: keyPair, nonces: (0..<20).map { _ in bytes() },
            longTermKey: LongTermKey(key: bytes(), random: random.next(), diversifier: 0x1234),
            resolvingKey: settings.resolvingKey)
        var configuration = PairingStateMachine.Configuration(
            connection, own: settings.address,
            capability: settings.passkey == nil ? .noInputNoOutput : .displayOnly,
            requiresAuthentication: settings.passkey != nil)
        if let identity = settings.identity { configuration.identity = identity }
        return follow(
            machine?.pairingPrepared(
                PairingStateMachine(configuration, material: material, passkey: settings.passkey), now: .zero))
    }
}
