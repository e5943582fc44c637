// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshCrypto
import Testing

struct SecurityTests {
    private let key = LongTermKey(key: [UInt8](repeating: 7, count: 16), random: 5, diversifier: 6)

    private func bond(isAuthenticated: Bool = true) -> Bond {
        Bond(
            peer: PairingPair.peripheralAddress, centralKey: key, peripheralKey: key, isAuthenticated: isAuthenticated,
            isSecureConnections: false)
    }

    private func machine(
        _ role: LinkRole, _ bond: Bond? = nil, requiresAuthentication: Bool = true, blockedUntil: Duration? = nil
    ) -> SecurityStateMachine {
        SecurityStateMachine(
            .init(
                role: role, bond: bond, requiresAuthentication: requiresAuthentication, blockedUntil: blockedUntil))
    }

    private func pairing(_ role: LinkRole, passkey: UInt32? = 9) throws -> PairingStateMachine {
        PairingStateMachine(
            PairingPair.settings(role, role == .central ? .keyboardOnly : .displayOnly),
            material: try PairingPair.material(role == .central ? 1 : 2), passkey: passkey)
    }

    @Test func `a bond encrypts, and says how well`() {
        for (isAuthenticated, protection) in [(true, AttributeDatabase.Protection.authenticated), (false, .encrypted)] {
            var machine = machine(
                .central, bond(isAuthenticated: isAuthenticated), requiresAuthentication: isAuthenticated)
            #expect(machine.secureRequested() == [.encrypt(key)])
            #expect(machine.secureRequested() == [])
            #expect(machine.protection == .open)
            #expect(machine.encryptionChanged(.success, isEncrypted: true, now: at(0)) == [.secured(protection)])
            #expect(machine.protection == protection)
            #expect(machine.secureRequested() == [.secured(protection)])
        }
    }

    @Test func `a bond without a passkey is not enough where one is required (R2)`() {
        var machine = machine(.central, bond(isAuthenticated: false))
        #expect(machine.secureRequested() == [.preparePairing])
    }

    @Test(arguments: [HCIStatus.keyMissing, .integrityFailure])
    func `a bond that the peer has lost is forgotten, and the link paired anew (R30)`(status: HCIStatus) throws {
        var machine = machine(.central, bond())
        _ = machine.secureRequested()
        #expect(machine.encryptionChanged(status, isEncrypted: false, now: at(0)) == [.forgetBond])
        // Not because the peer asks for it: it could be anybody.
        #expect(machine.packetReceived(hex("0b 0d"), now: at(0)) == [.send(.failed(.pairingNotSupported))])
        #expect(machine.secureRequested() == [.preparePairing])
        let actions = machine.pairingPrepared(try pairing(.central), now: at(0))
        #expect(actions == [.send(try #require(SMPPacket(hex("01 02 00 0d 10 03 03"))))])
    }

    @Test func `the transcript of a lost bond says the same`() throws {
        let statuses = try Transcript("bond_lost").events().compactMap { event -> HCIStatus? in
            if case .encryptionChange(let status, _, _) = event { status } else { nil }
        }
        #expect(statuses.contains(.keyMissing))
    }

    @Test func `a failure of another kind leaves the bond`() {
        var machine = machine(.central, bond())
        _ = machine.secureRequested()
        #expect(
            machine.encryptionChanged(.unsupportedRemoteFeature, isEncrypted: false, now: at(0))
                == [.fail(.encryptionFailed(.unsupportedRemoteFeature))])
        #expect(machine.secureRequested() == [.encrypt(key)])
    }

    @Test func `the peripheral's request begins what is needed`() {
        var bonded = machine(.central, bond())
        #expect(bonded.packetReceived(hex("0b 0d"), now: at(0)) == [.encrypt(key)])
        _ = bonded.encryptionChanged(.success, isEncrypted: true, now: at(0))
        #expect(bonded.packetReceived(hex("0b 0d"), now: at(0)) == [])
        var unknown = machine(.central)
        #expect(unknown.packetReceived(hex("0b 0d"), now: at(0)) == [.preparePairing])
        #expect(unknown.packetReceived(hex("0b 0d"), now: at(0)) == [])
        // A link that is encrypted, and cannot be better without a passkey.
        var weak = machine(.central, bond(isAuthenticated: false), requiresAuthentication: false)
        _ = weak.secureRequested()
        _ = weak.encryptionChanged(.success, isEncrypted: true, now: at(0))
        #expect(weak.packetReceived(hex("0b 09"), now: at(0)) == [])
        #expect(weak.packetReceived(hex("0b 0d"), now: at(0)) == [.send(.failed(.pairingNotSupported))])
    }

    @Test func `who is not to be paired with is refused, and encrypted with the keys that there are`() {
        let refusal = [SecurityStateMachine.Action.send(.failed(.pairingNotSupported))]
        var configuration = SecurityStateMachine.Configuration(role: .central, bond: nil, requiresAuthentication: false)
        configuration.takesPairing = false
        var central = SecurityStateMachine(configuration)
        #expect(central.packetReceived(hex("0b 0d"), now: at(0)) == refusal)
        #expect(central.packetReceived(hex("0b 01"), now: at(0)) == refusal)
        // By order of this host.
        #expect(central.secureRequested() == [.preparePairing])
        configuration.bond = bond()
        var bonded = SecurityStateMachine(configuration)
        #expect(bonded.packetReceived(hex("0b 0d"), now: at(0)) == [.encrypt(key)])
        configuration.role = .peripheral
        var peripheral = SecurityStateMachine(configuration)
        #expect(peripheral.packetReceived(hex("01 03 00 01 10 05 05"), now: at(0)) == refusal)
    }

    @Test func `a peripheral asks, and answers the key request with the bond's key`() {
        var machine = machine(.peripheral, bond())
        #expect(
            machine.secureRequested() == [.send(.securityRequest([.bonding, .authentication, .secureConnections]))])
        #expect(machine.keyRequested(random: 5, diversifier: 7, now: at(0)) == [.answerKeyRequest(nil)])
        #expect(machine.keyRequested(random: 5, diversifier: 6, now: at(0)) == [.answerKeyRequest(key)])
        #expect(machine.encryptionChanged(.success, isEncrypted: true, now: at(0)) == [.secured(.authenticated)])
    }

    @Test func `two links of this host secure each other`() throws {
        var central = machine(.central)
        var peripheral = machine(.peripheral)
        var stored: [Bond] = []
        var secured: [AttributeDatabase.Protection] = []
        var queue = central.secureRequested().map { ($0, true) }
        while !queue.isEmpty {
            let (action, isCentral) = queue.removeFirst()
            switch action {
            case .preparePairing:
                queue +=
                    isCentral
                    ? central.pairingPrepared(try pairing(.central), now: at(0)).map { ($0, true) }
                    : peripheral.pairingPrepared(try pairing(.peripheral), now: at(0)).map { ($0, false) }
            case .send(let packet):
                queue +=
                    isCentral
                    ? peripheral.packetReceived(packet.bytes, now: at(0)).map { ($0, false) }
                    : central.packetReceived(packet.bytes, now: at(0)).map { ($0, true) }
            case .encrypt(let key):
                queue += peripheral.keyRequested(random: key.random, diversifier: key.diversifier, now: at(0))
                    .map { ($0, false) }
            case .answerKeyRequest(let key):
                #expect(key != nil)
                queue += central.encryptionChanged(.success, isEncrypted: true, now: at(0)).map { ($0, true) }
                queue += peripheral.encryptionChanged(.success, isEncrypted: true, now: at(0)).map { ($0, false) }
            case .storeBond(let bond): stored.append(bond)
            case .secured(let protection): secured.append(protection)
            case .askForPasskey, .forgetBond, .fail, .closeLink: Issue.record("\(action)")
            }
        }
        #expect(stored.count == 2)
        #expect(secured == [.authenticated, .authenticated])
        // The next link needs no pairing.
        var next = machine(.central, stored.first { $0.peer == PairingPair.peripheralAddress })
        guard case .encrypt(let key) = next.secureRequested().first else {
            Issue.record("no key")
            return
        }
        var other = machine(.peripheral, stored.first { $0.peer == PairingPair.centralAddress })
        #expect(
            other.keyRequested(random: key.random, diversifier: key.diversifier, now: at(0))
                == [.answerKeyRequest(key)])
    }

    @Test func `a pairing that is left unfinished closes the link`() throws {
        var machine = machine(.central)
        _ = machine.secureRequested()
        _ = machine.pairingPrepared(try pairing(.central), now: at(0))
        #expect(machine.nextDeadline == at(30))
        #expect(machine.deadlineReached(now: at(29)) == [])
        #expect(machine.deadlineReached(now: at(30)) == [.fail(.timedOut), .closeLink])
        #expect(machine.packetReceived(hex("0b 0d"), now: at(31)) == [])
        #expect(machine.secureRequested() == [.closeLink])
        #expect(machine.nextDeadline == nil)
    }

    @Test func `a pairing that failed may be tried again`() throws {
        var machine = machine(.central)
        _ = machine.secureRequested()
        _ = machine.pairingPrepared(try pairing(.central), now: at(0))
        #expect(machine.packetReceived(hex("05 05"), now: at(1)) == [.fail(.failedByPeer(.pairingNotSupported))])
        #expect(machine.secureRequested() == [.preparePairing])
        #expect(machine.linkEnded() == [])
        var ended = self.machine(.central)
        _ = ended.secureRequested()
        _ = ended.pairingPrepared(try pairing(.central), now: at(0))
        #expect(ended.linkEnded() == [.fail(.linkEnded)])
    }

    @Test func `who has failed too often has to wait`() {
        var policy = PairingAttemptPolicy()
        let peer = PairingPair.centralAddress
        #expect(policy.blockedUntil(peer, now: at(0)) == nil)
        policy.pairingFailed(peer, now: at(0))
        #expect(policy.blockedUntil(peer, now: at(0)) == at(1))
        #expect(policy.blockedUntil(peer, now: at(1)) == nil)
        policy.pairingFailed(peer, now: at(1))
        #expect(policy.blockedUntil(peer, now: at(1)) == at(3))
        for _ in 0..<20 { policy.pairingFailed(peer, now: at(3)) }
        #expect(policy.blockedUntil(peer, now: at(3)) == at(603))
        policy.pairingSucceeded(peer)
        #expect(policy.blockedUntil(peer, now: at(3)) == nil)
        for number: UInt64 in 0..<100 { policy.pairingFailed(DeviceAddress(number, .public), now: at(10)) }
        #expect((0..<100).filter { policy.blockedUntil(DeviceAddress($0, .public), now: at(10)) != nil }.count == 64)

        var machine = machine(.peripheral, blockedUntil: at(5))
        let request = hex("01 03 00 01 10 05 05")
        #expect(machine.packetReceived(request, now: at(4)) == [.send(.failed(.repeatedAttempts))])
        #expect(machine.packetReceived(request, now: at(5)) == [.preparePairing])
    }

    @Test func `a failure that may pass is tried again, once in a row where nothing says why`() {
        var policy = PairingAttemptPolicy()
        let peer = PairingPair.peripheralAddress
        func failed(_ failure: PairingFailure) -> Bool { policy.pairingFailed(peer, failure, now: at(0)) }
        #expect([true, false, true].allSatisfy { failed(.failedByPeer(.unspecified)) == $0 })
        policy.pairingSucceeded(peer)
        #expect([true, false].allSatisfy { failed(.failedByHost(.unspecified)) == $0 })
        // It says when: later.
        #expect([true, true, true].allSatisfy { failed(.failedByPeer(.repeatedAttempts)) == $0 })
        for failure: PairingFailure in [
            .failedByPeer(.confirmValueFailed), .failedByPeer(.pairingNotSupported), .downgraded, .timedOut,
        ] { #expect(!failed(failure)) }
    }

    @Test func `a peripheral cannot have the central pair again and again`() throws {
        var machine = machine(.central)
        #expect(machine.packetReceived(hex("0b 0d"), now: at(0)) == [.preparePairing])
        _ = machine.pairingPrepared(try pairing(.central), now: at(0))
        _ = machine.packetReceived(hex("05 04"), now: at(0))
        machine.pairingBlocked(until: at(2))
        #expect(machine.packetReceived(hex("0b 0d"), now: at(1)) == [])
        #expect(machine.packetReceived(hex("0b 0d"), now: at(2)) == [.preparePairing])
    }

    @Test func `packets of nothing are refused`() {
        var peripheral = machine(.peripheral)
        #expect(peripheral.packetReceived(hex("0b 00"), now: at(0)) == [.send(.failed(.commandNotSupported))])
        #expect(peripheral.packetReceived(hex("55"), now: at(0)) == [.send(.failed(.commandNotSupported))])
        #expect(peripheral.packetReceived(hex("01 ff"), now: at(0)) == [.send(.failed(.invalidParameters))])
        // The answer to a failure would be answered again.
        #expect(peripheral.packetReceived(hex("05 08"), now: at(0)) == [])
        var central = machine(.central)
        #expect(
            central.packetReceived(hex("01 03 00 01 10 05 05"), now: at(0)) == [.send(.failed(.commandNotSupported))])
    }
}

extension SMPPacket {
    /// Of bytes that are a packet.
    fileprivate init?(_ bytes: [UInt8]) {
        guard let packet = try? SMPPacket.decode(bytes.span.bytes) else { return nil }
        self = packet
    }
}
