// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshCrypto
import Testing

struct PairingTests {
    private func outcome(_ action: PairingStateMachine.Action?) -> PairingResult? {
        if case .finish(let outcome) = action { outcome } else { nil }
    }

    private func failure(_ action: PairingStateMachine.Action?) -> PairingFailure? {
        if case .fail(let failure) = action { failure } else { nil }
    }

    typealias Capability = PairingFeatures.Capability

    /// Table 2.8 for the capabilities of this host.
    @Test(
        arguments: [
            (Capability.keyboardOnly, Capability.displayOnly, true), (.displayOnly, .keyboardOnly, true),
            (.keyboardOnly, .keyboardOnly, true), (.displayOnly, .displayOnly, false),
            (.noInputNoOutput, .displayOnly, false), (.keyboardOnly, .noInputNoOutput, false),
            (.noInputNoOutput, .noInputNoOutput, false),
        ] as [(Capability, Capability, Bool)], [true, false])
    func `both sides end with the same keys`(
        capabilities: (Capability, Capability, Bool), isSecure: Bool
    ) throws {
        var pair = try PairingPair(
            PairingPair.settings(.central, capabilities.0) { $0.offersSecureConnections = isSecure },
            PairingPair.settings(.peripheral, capabilities.1), passkeys: (123_456, 123_456))
        pair.run()
        let (central, peripheral) = (outcome(pair.centralEnd), outcome(pair.peripheralEnd))
        let one = try #require(central, "\(pair.centralEnd as Any)")
        let other = try #require(peripheral, "\(pair.peripheralEnd as Any)")
        #expect(one.isAuthenticated == capabilities.2)
        #expect(other.isAuthenticated == capabilities.2)
        #expect(one.isSecureConnections == isSecure && other.isSecureConnections == isSecure)
        let (bond, peerBond) = try (#require(one.bond), #require(other.bond))
        // R31: the central encrypts with what the peripheral gave, and the peripheral answers with it.
        let key = try #require(bond.centralKey)
        #expect(peerBond.key(random: key.random, diversifier: key.diversifier) == key)
        #expect(peerBond.key(random: key.random, diversifier: key.diversifier &+ 1) == nil)
        if isSecure {
            #expect(key.random == 0 && key.diversifier == 0)
            #expect(bond.peripheralKey == key)
            #expect(pair.keys == [key, key])
        } else {
            #expect(key.diversifier == 0x1234)
            #expect(peerBond.centralKey == bond.peripheralKey)
            #expect(pair.keys.count == 2 && pair.keys.first != key)
        }
        // The identity that comes is the address that was used.
        #expect(bond.peer == PairingPair.peripheralAddress)
        #expect(peerBond.peer == PairingPair.centralAddress)
        let address = try ResolvableAddress.make(key: #require(bond.peerResolvingKey), random: 0x12_3456)
        #expect(try ResolvableAddress.bond(for: address, in: [peerBond, bond]) == bond)
        #expect([pair.central.isOver, pair.peripheral.isOver] == [true, true])
        #expect(pair.central.nextDeadline == nil && pair.peripheral.nextDeadline == nil)
    }

    /// What the peer says it is, from which address, with which key, and what it is known by.
    enum Claim: CaseIterable {
        case another
        case anotherFromPrivate
        case ownFromPrivate
        case ownFromStrangePrivate
    }

    @Test(arguments: Claim.allCases)
    func `an identity counts if the address of the link bears it out`(claim: Claim) throws {
        let identity = DeviceAddress(0xC0AA_BBCC_DDEE, .random)
        // As the pair's peripheral has it.
        let key = try PairingPair.material(2).resolvingKey
        let address =
            switch claim {
            case .another: PairingPair.peripheralAddress
            case .anotherFromPrivate: DeviceAddress(0x0011_2233_4455, .random)
            case .ownFromPrivate: try ResolvableAddress.make(key: key, random: 0x12_3456)
            case .ownFromStrangePrivate: try ResolvableAddress.make(key: [UInt8](1...16), random: 0x12_3456)
            }
        var pair = try PairingPair(
            PairingPair.settings(.central, .noInputNoOutput) { $0.peerAddress = address },
            PairingPair.settings(.peripheral, .noInputNoOutput) {
                $0.ownAddress = address
                $0.identity = identity
            })
        pair.run()
        let bond = try #require(outcome(pair.centralEnd)?.bond, "\(pair.centralEnd as Any)")
        let isProven = claim == .ownFromPrivate
        #expect(bond.peer == (isProven ? identity : address))
        #expect(bond.peerResolvingKey == (isProven ? key : nil))
        // It is known what the other side is.
        #expect(outcome(pair.peripheralEnd)?.bond?.peer == PairingPair.centralAddress)
    }

    @Test func `the request to the radio (ble-linux §2.6)`() throws {
        var machine = PairingStateMachine(
            PairingPair.settings(.central, .keyboardOnly), material: try PairingPair.material(1), passkey: 1)
        let actions = machine.pairRequested(now: at(0))
        guard case .send(let packet) = actions.first else {
            Issue.record("\(actions)")
            return
        }
        #expect(packet.bytes == hex("01 02 00 0d 10 03 03"))
        #expect(machine.nextDeadline == at(30))
    }

    @Test(arguments: [true, false]) func `different passkeys are found out by both`(isSecure: Bool) throws {
        var pair = try PairingPair(
            PairingPair.settings(.central, .keyboardOnly) { $0.offersSecureConnections = isSecure },
            PairingPair.settings(.peripheral, .displayOnly), passkeys: (111_111, 123_456))
        pair.run()
        let (central, peripheral) = (failure(pair.centralEnd), failure(pair.peripheralEnd))
        #expect(central?.isWrongPasskey == true)
        #expect(peripheral?.isWrongPasskey == true)
        #expect(pair.keys.isEmpty)
    }

    @Test(arguments: [true, false]) func `the passkey is asked for when nobody knows it`(isSecure: Bool) throws {
        var pair = try PairingPair(
            PairingPair.settings(.central, .keyboardOnly) { $0.offersSecureConnections = isSecure },
            PairingPair.settings(.peripheral, .displayOnly))
        pair.run()
        #expect(Set(pair.asked) == [.enters, .shows])
        // The person at the display is the slower one: the central's confirm is there before.
        pair.perform(pair.central.passkeyEntered(42, now: .zero), isCentral: true)
        #expect(pair.centralEnd == nil)
        pair.perform(pair.peripheral.passkeyEntered(42, now: .zero), isCentral: false)
        #expect(outcome(pair.centralEnd)?.isAuthenticated == true)
        #expect(outcome(pair.peripheralEnd)?.isAuthenticated == true)
    }

    @Test func `no passkey ends it with its reason`() throws {
        var pair = try PairingPair(
            PairingPair.settings(.central, .keyboardOnly), PairingPair.settings(.peripheral, .displayOnly),
            passkeys: (nil, 1))
        pair.run()
        pair.perform(pair.central.passkeyEntered(nil, now: .zero), isCentral: true)
        #expect(failure(pair.centralEnd) == .failedByHost(.passkeyEntryFailed))
        #expect(failure(pair.peripheralEnd) == .failedByPeer(.passkeyEntryFailed))
        // A number of seven digits is no passkey.
        var other = try PairingPair(
            PairingPair.settings(.central, .keyboardOnly), PairingPair.settings(.peripheral, .displayOnly),
            passkeys: (1_000_000, 1))
        other.run()
        #expect(other.asked == [.enters])
    }

    @Test func `a pairing without the required passkey is refused`() throws {
        var pair = try PairingPair(
            PairingPair.settings(.central, .keyboardOnly, requiresAuthentication: true),
            PairingPair.settings(.peripheral, .noInputNoOutput), passkeys: (123_456, nil))
        pair.run()
        #expect(failure(pair.centralEnd) == .downgraded)
        #expect(pair.air.last?.packet == .failed(.authenticationRequirements))
        #expect(failure(pair.peripheralEnd) == .failedByPeer(.authenticationRequirements))
        // The other way round: a central that can do nothing.
        var server = try PairingPair(
            PairingPair.settings(.central, .noInputNoOutput),
            PairingPair.settings(.peripheral, .displayOnly, requiresAuthentication: true))
        server.run()
        #expect(failure(server.peripheralEnd) == .downgraded)
    }

    @Test func `legacy pairing is refused where Secure Connections are required`() throws {
        var pair = try PairingPair(
            PairingPair.settings(.central, .keyboardOnly) { $0.requiresSecureConnections = true },
            PairingPair.settings(.peripheral, .displayOnly) { $0.offersSecureConnections = false },
            passkeys: (1, 1))
        pair.run()
        #expect(failure(pair.centralEnd) == .failedByHost(.authenticationRequirements))
    }

    // smp-tester of BlueZ 5.87: a key of no size, a cut request, an unknown packet.
    @Test(arguments: [
        ("01 00 00 00 00 00 00", "05 06"), ("01 ff", "05 0a"), ("0b 00", "05 07"), ("77", "05 07"),
        ("01 03 00 01 11 01 01", "05 0a"), ("01 03 02 01 10 01 01", "05 0a"), ("01 03 00 01 0f 01 01", "05 06"),
        ("03 00000000000000000000000000000000", "05 08"),
    ])
    func `requests without meaning fail with their reason`(request: String, response: String) throws {
        var machine = PairingStateMachine(
            PairingPair.settings(.peripheral, .noInputNoOutput), material: try PairingPair.material(1), passkey: nil)
        let actions = machine.packetReceived(hex(request), now: at(0))
        guard case .send(let packet) = actions.first else {
            Issue.record("\(actions)")
            return
        }
        #expect(packet.bytes == hex(response))
        #expect(actions.count == 2)
        #expect(machine.isOver == true)
        #expect(machine.packetReceived(hex(request), now: at(0)) == [])
    }

    @Test func `a Just Works request of BlueZ's smp-tester is answered`() throws {
        var machine = PairingStateMachine(
            PairingPair.settings(.peripheral, .noInputNoOutput), material: try PairingPair.material(1), passkey: nil)
        let actions = machine.packetReceived(hex("01 03 00 01 10 05 05"), now: at(0))
        // Its keys are those that this host gives and wants.
        #expect(
            actions.map { if case .send(let packet) = $0 { packet.bytes } else { [] } } == [hex("02 03 00 09 10 01 01")]
        )
    }

    @Test(arguments: [true, false])
    func `keys may be shorter where the settings allow it, and are cut then`(isSecure: Bool) throws {
        var pair = try PairingPair(
            PairingPair.settings(.central, .keyboardOnly) {
                $0.offersSecureConnections = isSecure
                $0.maximumKeySize = 7
                $0.minimumKeySize = 7
            },
            PairingPair.settings(.peripheral, .displayOnly) { $0.minimumKeySize = 7 }, passkeys: (5, 5))
        pair.run()
        let bond = try #require(outcome(pair.centralEnd)?.bond)
        for key in [pair.keys[0], pair.keys[1], bond.centralKey] {
            #expect(key?.size == 7)
            #expect(key?.key.suffix(9).allSatisfy { $0 == 0 } == true)
            #expect(key?.key.prefix(7).contains { $0 != 0 } == true)
        }
        // Where they do not, such a pairing is refused.
        var strict = try PairingPair(
            PairingPair.settings(.central, .keyboardOnly) {
                $0.maximumKeySize = 15
                $0.minimumKeySize = 7
            }, PairingPair.settings(.peripheral, .displayOnly), passkeys: (5, 5))
        strict.run()
        #expect(failure(strict.peripheralEnd) == .failedByHost(.encryptionKeySize))
        #expect(failure(strict.centralEnd) == .failedByPeer(.encryptionKeySize))
    }

    @Test func `a key that is no point of the curve is refused (CVE-2018-5383)`() throws {
        var pair = try PairingPair(
            PairingPair.settings(.central, .noInputNoOutput), PairingPair.settings(.peripheral, .noInputNoOutput))
        pair.tamper = { packet, isFromCentral in
            guard case .publicKey(let key) = packet, !isFromCentral else { return packet.bytes }
            return SMPPacket.publicKey(key.prefix(32) + [UInt8](repeating: 0, count: 32)).bytes
        }
        pair.run()
        #expect(failure(pair.centralEnd) == .failedByHost(.dhKeyCheckFailed))
    }

    @Test func `the own key sent back is refused (CVE-2020-26558)`() throws {
        var machine = PairingStateMachine(
            PairingPair.settings(.central, .keyboardOnly), material: try PairingPair.material(1), passkey: 1)
        _ = machine.pairRequested(now: at(0))
        let actions = machine.packetReceived(hex("02 00 00 0d 10 03 03"), now: at(0))
        guard case .send(let key) = actions.first else {
            Issue.record("\(actions)")
            return
        }
        let reflected = machine.packetReceived(key.bytes, now: at(0))
        #expect(reflected == [.send(.failed(.dhKeyCheckFailed)), .fail(.failedByHost(.dhKeyCheckFailed))])
    }

    @Test func `the own confirm value sent back is refused`() throws {
        var machine = PairingStateMachine(
            PairingPair.settings(.central, .keyboardOnly) { $0.offersSecureConnections = false },
            material: try PairingPair.material(1), passkey: 1)
        _ = machine.pairRequested(now: at(0))
        let actions = machine.packetReceived(hex("02 00 00 05 10 03 03"), now: at(0))
        guard case .send(let confirm) = actions.first else {
            Issue.record("\(actions)")
            return
        }
        #expect(
            machine.packetReceived(confirm.bytes, now: at(0)).last == .fail(.failedByHost(.confirmValueFailed)))
    }

    @Test(arguments: [0x03, 0x04, 0x0C, 0x0D] as [UInt8], [true, false])
    func `one changed bit is found out`(code: UInt8, isFromCentral: Bool) throws {
        var pair = try PairingPair(
            PairingPair.settings(.central, .keyboardOnly), PairingPair.settings(.peripheral, .displayOnly),
            passkeys: (654_321, 654_321))
        var isDone = false
        pair.tamper = { packet, sender in
            var bytes = packet.bytes
            if bytes[0] == code, sender == isFromCentral, !isDone {
                bytes[5] ^= 0x10
                isDone = true
            }
            return bytes
        }
        pair.run()
        #expect(outcome(pair.centralEnd) == nil && outcome(pair.peripheralEnd) == nil)
        #expect(failure(pair.centralEnd) != nil && failure(pair.peripheralEnd) != nil)
        #expect(pair.keys.isEmpty)
    }

    @Test func `a lost packet ends it after 30 s, at every step`() throws {
        var step = 0
        while true {
            var pair = try PairingPair(
                PairingPair.settings(.central, .keyboardOnly), PairingPair.settings(.peripheral, .displayOnly),
                passkeys: (7, 7))
            var count = 0
            pair.tamper = { packet, _ in
                count += 1
                return count == step + 1 ? nil : packet.bytes
            }
            pair.run()
            if count <= step { break }
            // The packet that got lost was waited for, by one side at least; whoever waits gives up in time.
            var ended = 0
            if !pair.central.isOver {
                #expect(pair.central.nextDeadline == at(30), "step \(step)")
                #expect(pair.central.deadlineReached(now: at(29)) == [])
                #expect(pair.central.deadlineReached(now: at(30)) == [.fail(.timedOut)])
                #expect(pair.central.isOver == true)
                ended += 1
            }
            if !pair.peripheral.isOver, pair.peripheral.nextDeadline != nil {
                #expect(pair.peripheral.deadlineReached(now: at(30)) == [.fail(.timedOut)], "step \(step)")
                ended += 1
            }
            #expect(ended > 0, "step \(step)")
            step += 1
        }
        // Features, keys, 20 rounds of four, checks, two keys of each side.
        #expect(step == 2 + 2 + 80 + 2 + 4)
    }

    @Test func `the end of the link ends it, at every step`() throws {
        for step in 0..<90 {
            var pair = try PairingPair(
                PairingPair.settings(.central, .keyboardOnly), PairingPair.settings(.peripheral, .displayOnly),
                passkeys: (7, 7))
            var count = 0
            pair.tamper = { packet, _ in
                count += 1
                return count > step ? nil : packet.bytes
            }
            pair.run()
            if !pair.central.isOver { #expect(pair.central.linkEnded() == [.fail(.linkEnded)]) }
            if !pair.peripheral.isOver { #expect(pair.peripheral.linkEnded() == [.fail(.linkEnded)]) }
            #expect(pair.central.linkEnded() == [])
            #expect(pair.central.nextDeadline == nil && pair.peripheral.nextDeadline == nil)
        }
    }

    @Test func `a failure while keys are given leaves no bond (R32)`() throws {
        var pair = try PairingPair(
            PairingPair.settings(.central, .keyboardOnly), PairingPair.settings(.peripheral, .displayOnly),
            passkeys: (7, 7))
        pair.tamper = { packet, isFromCentral in
            if case .identityAddress = packet, !isFromCentral {
                return SMPPacket.failed(.unspecified).bytes
            }
            return packet.bytes
        }
        pair.run()
        #expect(failure(pair.centralEnd) == .failedByPeer(.unspecified))
        #expect(outcome(pair.peripheralEnd) == nil)
    }

    @Test func `a link that cannot be encrypted ends it`() throws {
        var pair = try PairingPair(
            PairingPair.settings(.central, .noInputNoOutput), PairingPair.settings(.peripheral, .noInputNoOutput))
        pair.encryptionStatus = .integrityFailure
        pair.run()
        #expect(failure(pair.centralEnd) == .encryptionFailed(.integrityFailure))
        #expect(failure(pair.peripheralEnd) == .encryptionFailed(.integrityFailure))
        var machine = PairingStateMachine(
            PairingPair.settings(.peripheral, .noInputNoOutput), material: try PairingPair.material(2), passkey: nil)
        #expect(machine.keyRequested(random: 0, diversifier: 0, now: at(0)) == [.answerKeyRequest(nil)])
        #expect(machine.encryptionChanged(.success, isEncrypted: true, now: at(0)) == [])
        #expect(machine.pairRequested(now: at(0)) == [])
    }

    @Test func `an identity that is a private address is refused`() throws {
        var pair = try PairingPair(
            PairingPair.settings(.central, .noInputNoOutput), PairingPair.settings(.peripheral, .noInputNoOutput))
        pair.tamper = { packet, isFromCentral in
            guard case .identityAddress = packet, !isFromCentral else { return packet.bytes }
            return SMPPacket.identityAddress(DeviceAddress(0x4000_0000_0001, .random)).bytes
        }
        pair.run()
        #expect(failure(pair.centralEnd) == .failedByHost(.invalidParameters))
    }
}
