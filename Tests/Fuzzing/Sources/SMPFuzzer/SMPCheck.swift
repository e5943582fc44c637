// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshCrypto
import MeshWire

/// What must hold for a pairing whatever the peer sends: packets of the length that stands before each, to both roles.
/// It ends once, nothing is sent after it, and there is no bond without a passkey that only this host knows.
enum SMPCheck {
    /// The published pair of debug keys (Core Specification 5.4, Vol 3 Part H §2.3.5.6.1).
    private static let keyPair: P256.KeyPair? = {
        func bytes(_ text: String) -> [UInt8] {
            let digits = Array(text.utf8)
            return stride(from: 0, to: digits.count, by: 2).map {
                UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16) ?? 0
            }
        }
        let x = "20b003d2f297be2c5e2c83a7e9f9a5b9eff49111acf4fddbcc0301480e359de6"
        let y = "dc809c49652aeb6d63329abf5a52155c766345c28fed3024741c8ed01589d28b"
        return P256.PublicKey(bytes(x + y)).flatMap {
            P256.KeyPair(
                privateKey: bytes("3f49f6d4a3c55f3874c9b3e3d2103f504aff607beb40b7995899b8a6cd3c1abd"), publicKey: $0)
        }
    }()

    static func run(_ input: UnsafeRawBufferPointer) {
        guard let settings = input.first, let keyPair else { return }
        let role: LinkRole = settings & 1 == 0 ? .central : .peripheral
        var configuration = PairingStateMachine.Configuration(
            role: role, ownAddress: DeviceAddress(0xC000_0000_0001, .random), peerAddress: DeviceAddress(2, .public),
            identity: DeviceAddress(0xC000_0000_0001, .random),
            capability: settings & 2 == 0 ? .keyboardOnly : .displayOnly,
            requiresAuthentication: true)
        configuration.offersSecureConnections = settings & 4 == 0
        let material = PairingStateMachine.Material(
            keyPair: keyPair, nonces: (0..<20).map { [UInt8](repeating: 0xA0 + $0, count: 16) },
            longTermKey: LongTermKey(key: [UInt8](repeating: 1, count: 16), random: 1, diversifier: 1))
        var machine = PairingStateMachine(configuration, material: material, passkey: settings & 8 == 0 ? 123_456 : nil)
        var ends = 0
        func check(_ actions: [PairingStateMachine.Action], wasOver: Bool) {
            if wasOver { precondition(actions.isEmpty, "something after the end") }
            for action in actions {
                switch action {
                case .send(let packet):
                    precondition(
                        (try? SMPPacket.decode(packet.bytes.span.bytes)) == packet, "sends what has no meaning")
                case .encrypt(let key): precondition(key.key.count == 16, "a key of another length")
                case .finish(let outcome):
                    precondition(outcome.isAuthenticated, "less than what is required")
                    ends += 1
                case .fail: ends += 1
                case .answerKeyRequest, .askForPasskey: break
                }
            }
        }
        check(machine.pairRequested(now: .zero), wasOver: false)
        var rest = input.dropFirst()
        while let length = rest.popFirst() {
            let packet = Array(rest.prefix(Int(length)))
            rest = rest.dropFirst(packet.count)
            let wasOver = machine.isOver
            check(machine.packetReceived(packet, now: .zero), wasOver: wasOver)
            if settings & 16 != 0 { check(machine.passkeyEntered(7, now: .zero), wasOver: machine.isOver) }
            if let read = try? SMPPacket.decode(packet.span.bytes) {
                precondition((try? SMPPacket.decode(read.bytes.span.bytes)) == read, "another packet")
            }
        }
        if !machine.isOver { check(machine.linkEnded(), wasOver: false) }
        precondition(ends == 1 && machine.nextDeadline == nil, "no end, or two")
        _ = try? SMPPacket.decode(input.bytes)
    }
}
