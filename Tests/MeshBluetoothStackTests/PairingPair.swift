// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshCrypto
import MeshTestSupport

/// Two pairing machines and the controllers between them, on a clock that stands still.
struct PairingPair: ~Copyable {
    var central: PairingStateMachine
    var peripheral: PairingStateMachine
    /// Everything that went over the air, and by whom.
    var air: [(isFromCentral: Bool, packet: SMPPacket)] = []
    var centralEnd: PairingStateMachine.Action?
    var peripheralEnd: PairingStateMachine.Action?
    /// What the central encrypted with, and what the peripheral's host answered.
    var keys: [LongTermKey?] = []
    /// What the controllers say of an encryption with equal keys.
    var encryptionStatus = HCIStatus.success
    var asked: [PairingMethod.OwnPart] = []
    /// Changes packets on their way; nil: lost.
    var tamper: (SMPPacket, _ isFromCentral: Bool) -> [UInt8]? = { packet, _ in packet.bytes }

    static let centralAddress = DeviceAddress(0xC000_0000_0001, .random)
    static let peripheralAddress = DeviceAddress(0xF1F2_F3F4_F5F6, .random)

    static func material(_ seed: UInt64, key: P256.KeyPair? = nil) throws -> PairingStateMachine.Material {
        var random = SplitMix(state: seed)
        func bytes() -> [UInt8] { (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) } }
        return PairingStateMachine.Material(
            keyPair: try key ?? P256.KeyPair.generate(), nonces: (0..<20).map { _ in bytes() },
            longTermKey: LongTermKey(key: bytes(), random: random.next(), diversifier: 0x1234), resolvingKey: bytes())
    }

    static func settings(
        _ role: LinkRole, _ capability: PairingFeatures.Capability, requiresAuthentication: Bool = false,
        _ change: (inout PairingStateMachine.Configuration) -> Void = { _ in }
    ) -> PairingStateMachine.Configuration {
        let isCentral = role == .central
        var configuration = PairingStateMachine.Configuration(
            role: role, ownAddress: isCentral ? centralAddress : peripheralAddress,
            peerAddress: isCentral ? peripheralAddress : centralAddress,
            identity: isCentral ? centralAddress : peripheralAddress, capability: capability,
            requiresAuthentication: requiresAuthentication)
        change(&configuration)
        return configuration
    }

    init(
        _ central: PairingStateMachine.Configuration, _ peripheral: PairingStateMachine.Configuration,
        passkeys: (central: UInt32?, peripheral: UInt32?) = (nil, nil)
    ) throws {
        let material = try (Self.material(1), Self.material(2))
        self.central = PairingStateMachine(central, material: material.0, passkey: passkeys.central)
        self.peripheral = PairingStateMachine(peripheral, material: material.1, passkey: passkeys.peripheral)
    }

    /// Runs until nothing is left to do.
    mutating func run() {
        perform(central.pairRequested(now: .zero), isCentral: true)
    }

    /// Does what a side orders; what follows comes after it, in the order of the air.
    mutating func perform(_ actions: [PairingStateMachine.Action], isCentral: Bool) {
        var queue = actions.map { (action: $0, isCentral: isCentral) }
        var rounds = 0
        while !queue.isEmpty, rounds < 1000 {
            rounds += 1
            let (action, isCentral) = queue.removeFirst()
            let next = follow(action, isCentral)
            queue += next.central.map { ($0, true) } + next.peripheral.map { ($0, false) }
        }
    }

    private mutating func follow(
        _ action: PairingStateMachine.Action, _ isCentral: Bool
    ) -> (central: [PairingStateMachine.Action], peripheral: [PairingStateMachine.Action]) {
        switch action {
        case .send(let packet):
            air.append((isCentral, packet))
            guard let bytes = tamper(packet, isCentral) else { return ([], []) }
            return isCentral
                ? ([], peripheral.packetReceived(bytes, now: .zero)) : (central.packetReceived(bytes, now: .zero), [])
        case .encrypt(let key):
            keys.append(key)
            return ([], peripheral.keyRequested(random: key.random, diversifier: key.diversifier, now: .zero))
        case .answerKeyRequest(let key):
            keys.append(key)
            let status: HCIStatus = key == nil ? .keyMissing : keys.first == key ? encryptionStatus : .integrityFailure
            return (
                central.encryptionChanged(status, isEncrypted: status == .success, now: .zero),
                peripheral.encryptionChanged(status, isEncrypted: status == .success, now: .zero)
            )
        case .askForPasskey(let part):
            asked.append(part)
            return ([], [])
        case .finish, .fail:
            if isCentral { centralEnd = action } else { peripheralEnd = action }
            return ([], [])
        }
    }
}
