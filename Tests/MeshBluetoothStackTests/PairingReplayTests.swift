// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshCrypto
import Testing

/// The machine in the place of Bumble 0.0.236's central: it gets what the radio sent and has to send what the central
/// sent, with the random values that the recording shows.
struct PairingReplayTests {
    /// The recording's Security Manager up to the first pairing's end.
    private struct Recording {
        var frames: [(isFromController: Bool, payload: [UInt8])]
        var own: DeviceAddress
        var peer: DeviceAddress
        var encryptionKeys: [[UInt8]]

        init(_ name: String) throws {
            try self.init(Transcript(name))
        }

        init(_ transcript: Transcript) throws {
            frames = try transcript.frames(channel: L2CAPFrame.securityChannel)
            let commands = try transcript.commands()
            own = DeviceAddress(0xC000_0000_0001, .random)
            let complete = try transcript.events().compactMap { event in
                if case .connectionComplete(let complete) = event { complete } else { nil }
            }
            peer = try #require(complete.first).peer
            encryptionKeys = commands.filter { $0.opcode == .enableEncryption }.map { Array($0.parameters.suffix(16)) }
        }

        func sent(_ code: UInt8) -> [[UInt8]] {
            frames.filter { !$0.isFromController && $0.payload.first == code }.map { Array($0.payload.dropFirst()) }
        }
    }

    private func machine(
        _ recording: Recording, _ capability: PairingFeatures.Capability, isSecure: Bool, passkey: UInt32?,
        key: P256.KeyPair? = nil
    ) throws -> PairingStateMachine {
        var configuration = PairingStateMachine.Configuration(
            role: .central, ownAddress: recording.own, peerAddress: recording.peer, identity: recording.own,
            capability: capability, requiresAuthentication: capability == .keyboardOnly)
        configuration.offersSecureConnections = isSecure
        var nonces = recording.sent(0x04)
        while nonces.count < 20 { nonces.append([UInt8](repeating: 0, count: 16)) }
        let given = recording.sent(0x06).first ?? [UInt8](repeating: 0, count: 16)
        let identification = recording.sent(0x07).first ?? [UInt8](repeating: 0, count: 10)
        let material = PairingStateMachine.Material(
            keyPair: try key ?? P256.KeyPair.generate(), nonces: nonces,
            longTermKey: LongTermKey(
                key: given, random: identification.dropFirst(2).reversed().reduce(0) { $0 << 8 | UInt64($1) },
                diversifier: UInt16(identification[0]) | UInt16(identification[1]) << 8),
            resolvingKey: recording.sent(0x08).first ?? [UInt8](repeating: 0, count: 16))
        return PairingStateMachine(configuration, material: material, passkey: passkey)
    }

    /// The key pair of the recording's central, of which the recording has the public half only.
    private func keyPair(_ recording: Recording) throws -> P256.KeyPair {
        let wire = try #require(recording.sent(0x0C).first)
        let key = try #require(P256.PublicKey(wire[..<32].reversed() + wire[32...].reversed()))
        var scalar = [UInt8](repeating: 0, count: 32)
        scalar[31] = 1
        return try #require(P256.KeyPair(privateKey: scalar, publicKey: key))
    }

    private func packets(_ actions: [PairingStateMachine.Action]) -> [[UInt8]] {
        actions.compactMap { if case .send(let packet) = $0 { packet.bytes } else { nil } }
    }

    @Test func `legacy pairing with a passkey, whole`() throws {
        try replayLegacyPairing(Recording("passkey_legacy"))
    }

    /// As a host's own recording option would write it: what it sent and got, packet by packet.
    @Test func `a recording that this host writes can be replayed`() throws {
        let file = try Transcript("passkey_legacy").records.reduce(into: BTSnoopFile.header) { $0 += $1.bytes }
        try replayLegacyPairing(Recording(Transcript(recording: file)))
    }

    private func replayLegacyPairing(_ recording: Recording) throws {
        var machine = try machine(recording, .keyboardOnly, isSecure: false, passkey: 123_456)
        var sent = packets(machine.pairRequested(now: at(0)))
        var end: PairingStateMachine.Action?
        for frame in recording.frames where frame.isFromController {
            var actions = machine.packetReceived(frame.payload, now: at(0))
            if case .encrypt(let key) = actions.first {
                // The short-term key is the one that Bumble encrypted with.
                #expect(key.key == recording.encryptionKeys.first)
                actions = machine.encryptionChanged(.success, isEncrypted: true, now: at(0))
            }
            sent += packets(actions)
            if machine.isOver { end = actions.last }
        }
        #expect(sent == recording.frames.filter { !$0.isFromController }.map(\.payload))
        guard case .finish(let outcome) = end, let bond = outcome.bond else {
            Issue.record("\(end as Any)")
            return
        }
        // Bumble encrypted the second link with the key that its radio gave.
        #expect(bond.centralKey?.key == recording.encryptionKeys.last)
        #expect(bond.isAuthenticated && !bond.isSecureConnections)
        #expect(bond.peer == recording.peer)
    }

    @Test func `twenty rounds of a passkey`() throws {
        let recording = try Recording("passkey_sc")
        var machine = try machine(
            recording, .keyboardOnly, isSecure: true, passkey: 123_456, key: try keyPair(recording))
        var sent = packets(machine.pairRequested(now: at(0)))
        // Up to the check value, which depends on the private key.
        for frame in recording.frames
        where frame.isFromController && [0x02, 0x03, 0x04, 0x0C].contains(frame.payload[0]) {
            sent += packets(machine.packetReceived(frame.payload, now: at(0)))
        }
        let expected = recording.frames.filter { !$0.isFromController }.map(\.payload)
        #expect(sent.count == 2 + 40 + 1)
        #expect(sent.dropLast() == expected.prefix(42))
        #expect(sent.last?.first == 0x0D)
    }

    @Test func `Just Works`() throws {
        let recording = try Recording("just_works_sc")
        var machine = try machine(
            recording, .noInputNoOutput, isSecure: true, passkey: nil, key: try keyPair(recording))
        var sent = packets(machine.pairRequested(now: at(0)))
        for frame in recording.frames
        where frame.isFromController && [0x02, 0x03, 0x04, 0x0C].contains(frame.payload[0]) {
            sent += packets(machine.packetReceived(frame.payload, now: at(0)))
        }
        let expected = recording.frames.filter { !$0.isFromController }.map(\.payload)
        #expect(sent.count == 4)
        #expect(sent.dropLast() == expected.prefix(3))
    }

    @Test func `a wrong passkey`() throws {
        let recording = try Recording("wrong_passkey_sc")
        var machine = try machine(
            recording, .keyboardOnly, isSecure: true, passkey: 111_111, key: try keyPair(recording))
        var sent = packets(machine.pairRequested(now: at(0)))
        var end: [PairingStateMachine.Action] = []
        for frame in recording.frames where frame.isFromController {
            end = machine.packetReceived(frame.payload, now: at(0))
            sent += packets(end)
            if machine.isOver { break }
        }
        #expect(sent == Array(recording.frames.filter { !$0.isFromController }.map(\.payload).prefix(sent.count)))
        guard case .fail(let failure) = end.last else {
            Issue.record("\(end)")
            return
        }
        #expect(failure.isWrongPasskey)
    }

    @Test(arguments: Transcript.names) func `packets of the transcripts come out as they went in`(name: String) throws {
        for frame in try Transcript(name).frames(channel: L2CAPFrame.securityChannel) {
            let packet = try SMPPacket.decode(frame.payload.span.bytes)
            #expect(packet.bytes == frame.payload)
            DecoderVerifier { try SMPPacket.decode($0) }.verify(frame.payload)
        }
    }
}

struct ResolvableAddressTests {
    // Vol 3 Part H D.7.
    @Test func `the published address is resolved by its key alone`() throws {
        let key: [UInt8] = hex("ec0234a357c8ad05341010a60a397d9b").reversed()
        let address = DeviceAddress(0x7081_940D_FBAA, .random)
        #expect(address.isResolvablePrivate)
        #expect(try ResolvableAddress.matches(address, key: key))
        #expect(try !ResolvableAddress.matches(DeviceAddress(0x7081_940D_FBAB, .random), key: key))
        #expect(try !ResolvableAddress.matches(DeviceAddress(0x7081_940D_FBAA, .public), key: key))
        #expect(try !ResolvableAddress.matches(address, key: [UInt8](repeating: 1, count: 16)))
        #expect(try ResolvableAddress.make(key: key, random: 0x70_8194) == address)
    }

    @Test func `kinds of addresses (R38)`() {
        #expect(DeviceAddress(0xC000_0000_0001, .random).isStaticRandom)
        #expect(!DeviceAddress(0xC000_0000_0001, .public).isStaticRandom)
        #expect(DeviceAddress(0xC000_0000_0001, .public) != DeviceAddress(0xC000_0000_0001, .random))
        #expect("\(DeviceAddress(0x00AA_0BCC_DD01, .public))" == "00:AA:0B:CC:DD:01/public")
        #expect(DeviceAddress.staticRandom(0) == nil)
        #expect(DeviceAddress.staticRandom(0x3FFF_FFFF_FFFF) == nil)
        #expect(DeviceAddress.staticRandom(5) == DeviceAddress(0xC000_0000_0005, .random))
    }
}
