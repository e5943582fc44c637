// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshTestSupport
import Testing

struct LinkTests {
    /// What a central does with a radio: set the link up, find the service, pair, subscribe, write.
    private func setUp(_ pair: inout LinkPair) throws {
        try pair.perform(pair.central.linkProcedureRequested(.readRemoteFeatures, now: at(0)), isCentral: true)
        try pair.perform(pair.central.linkProcedureRequested(.setDataLength(.maximum), now: at(0)), isCentral: true)
        try pair.perform(pair.central.linkProcedureRequested(.setPHY(.twoMegabit), now: at(0)), isCentral: true)
        try pair.ask(.exchangeMTU, "mtu")
        try pair.ask(.discoverService(LinkPair.uart), "service")
        try pair.ask(.discoverCharacteristics(.init(1, 6)), "characteristics")
        try pair.ask(.write(3, [1]), "early")
        try pair.perform(pair.central.secureRequested(now: at(0)), isCentral: true)
        try pair.ask(.write(6, [1, 0]), "subscribe")
        try pair.ask(.write(3, [UInt8](repeating: 9, count: 176)), "write")
        try pair.perform(
            pair.central.linkProcedureRequested(.updateParameters(.relaxed), now: at(0)), isCentral: true)
    }

    @Test func `a radio with a passkey from the first byte to the last`() throws {
        var pair = LinkPair()
        try setUp(&pair)
        #expect(pair.central.mtu == 517 && pair.peripheral.mtu == 517)
        #expect(pair.results["service"] == .success(.services([.init(uuid: LinkPair.uart, range: .init(1, 6))])))
        #expect(pair.results["early"] == .failure(.refused(.insufficientAuthentication, handle: 3)))
        #expect(pair.results["subscribe"] == .success(.written))
        #expect(pair.results["write"] == .success(.written))
        #expect(pair.written == [[UInt8](repeating: 9, count: 176)])
        #expect(pair.bonds.count == 2)
        #expect(pair.central.protection == .authenticated && pair.peripheral.protection == .authenticated)
        #expect(pair.central.transmitPHY == 2)
        #expect(pair.central.parameters.interval == 24)
        #expect(pair.central.parameters.supervisionTimeout == 500)
        // A notification, and no more than it can hold.
        let notification = pair.peripheral.notification(5, [UInt8](repeating: 7, count: 514))
        let frame = try #require(notification)
        #expect(pair.peripheral.notification(5, [UInt8](repeating: 7, count: 515)) == nil)
        try pair.perform([.sendFrame(frame)], isCentral: false)
        #expect(pair.delivered == [[UInt8](repeating: 7, count: 514)])
        let writing = pair.central.writeCommand(3, [5])
        let command = try #require(writing)
        try pair.perform([.sendFrame(command)], isCentral: true)
        #expect(pair.written.last == [5])
        #expect(pair.central.nextDeadline == nil && pair.peripheral.nextDeadline == nil)
        try pair.perform(pair.central.disconnectRequested(now: at(1)), isCentral: true)
        #expect(pair.ends == [.disconnected(.localHostTerminated), .disconnected(.remoteUserTerminated)])
        #expect(pair.doubleResults == 0 && pair.lateActions == 0)
    }

    @Test func `a link is in use after MTU, service, characteristics and CCCD`() throws {
        var pair = LinkPair()
        try pair.perform(pair.central.secureRequested(now: at(0)), isCentral: true)
        try pair.perform(pair.central.setUpBegan(now: at(0)), isCentral: true)
        try pair.ask(.exchangeMTU, "mtu")
        try pair.ask(.discoverService(LinkPair.uart), "service")
        try pair.ask(.discoverCharacteristics(.init(1, 6)), "characteristics")
        try pair.ask(.write(6, [1, 0]), "subscribe")
        #expect(pair.results["subscribe"] == .success(.written))
        #expect(pair.central.attributeRequests == 4)
        #expect(pair.central.parameters.interval == 12)
        try pair.perform(pair.central.setUpFinished(now: at(0)), isCentral: true)
        #expect(pair.central.parameters.interval == 24)
        #expect(pair.central.attributeRequests == 4)
    }

    @Test func `a radio that asks for parameters while it is set up gets them at the end (R24)`() throws {
        var pair = LinkPair()
        try pair.perform(pair.central.setUpBegan(now: at(0)), isCentral: true)
        var wanted = ConnectionParameters.relaxed
        (wanted.maximumInterval, wanted.supervisionTimeout) = (20, 200)
        try pair.perform(
            pair.peripheral.linkProcedureRequested(.updateParameters(wanted), now: at(0)), isCentral: false)
        #expect(pair.peripheralLog.contains("parameters: true"))
        #expect(pair.central.parameters.interval == 12)
        try pair.perform(pair.central.setUpFinished(now: at(0)), isCentral: true)
        #expect(pair.central.parameters.interval == 20)
        #expect(pair.central.parameters.supervisionTimeout == 400)
        #expect(pair.central.nextDeadline == nil)
    }

    @Test func `the link layer's own request is answered with the floor (R24)`() throws {
        var pair = LinkPair()
        let wanted = ConnectionParameters(
            minimumInterval: 12, maximumInterval: 24, latency: 4, supervisionTimeout: 200)
        let actions = pair.central.eventReceived(.parametersRequested(LinkPair.handle, wanted), now: at(0))
        guard case .sendCommand(let reply)? = actions.first else {
            Issue.record("no answer")
            return
        }
        #expect(reply == .connectionParameterReply(LinkPair.handle, wanted.withSupervisionInBounds))
        // Another link's.
        let others = pair.central.eventReceived(.parametersRequested(ConnectionHandle(1), wanted), now: at(0))
        #expect(others.isEmpty)
    }

    @Test(arguments: [HCICommandOutcome.refused(.unsupportedRemoteFeature), .refused(.unknownCommand), .lost])
    func `what cannot be tuned does not end the link`(outcome: HCICommandOutcome) throws {
        var pair = LinkPair()
        var actions = pair.central.setUpBegan(now: at(0))
        actions += pair.central.setUpFinished(now: at(0))
        var sent = 0
        while let action = actions.first {
            actions.removeFirst()
            guard case .sendCommand(let command) = action else { continue }
            sent += 1
            actions += pair.central.commandFinished(command.opcode, outcome, now: at(0))
        }
        #expect(sent > 0)
        #expect(pair.ends.isEmpty)
        try pair.ask(.exchangeMTU, "mtu")
        #expect(pair.results["mtu"] == .success(.mtu(517)))
    }

    @Test func `the next link needs the bond only`() throws {
        var first = LinkPair()
        try setUp(&first)
        let subscriptions = first.peripheral.subscriptions
        #expect(subscriptions == [5: 1])
        var pair = LinkPair(
            centralBond: first.bonds.first { $0.peer == PairingPair.peripheralAddress },
            peripheralBond: first.bonds.first { $0.peer == PairingPair.centralAddress }, subscriptions: subscriptions)
        try pair.perform(pair.central.secureRequested(now: at(0)), isCentral: true)
        #expect(pair.centralLog == ["authenticated"])
        #expect(pair.peripheralLog == ["authenticated"])
        #expect(pair.bonds.isEmpty)
        #expect(pair.peripheral.notification(5, [1]) != nil)
        // A command, its answer at the other side, and the word of both.
        #expect(pair.steps <= 4)
    }

    @Test func `a radio that has lost its keys is paired anew (R30)`() throws {
        var first = LinkPair()
        try setUp(&first)
        var pair = LinkPair(centralBond: first.bonds.first { $0.peer == PairingPair.peripheralAddress })
        try pair.perform(pair.central.secureRequested(now: at(0)), isCentral: true)
        #expect(pair.centralLog == ["forget"])
        try pair.perform(pair.central.secureRequested(now: at(0)), isCentral: true)
        #expect(pair.centralLog == ["forget", "authenticated"])
        #expect(pair.bonds.count == 2)
    }

    @Test func `a wrong passkey leaves the link as it was`() throws {
        var pair = LinkPair()
        pair.passkeys.central = 111_111
        try pair.perform(pair.central.secureRequested(now: at(0)), isCentral: true)
        #expect(pair.bonds.isEmpty && pair.ends.isEmpty)
        #expect(pair.central.protection == .open)
        try pair.ask(.write(3, [1]), "write")
        #expect(pair.results["write"] == .failure(.refused(.insufficientAuthentication, handle: 3)))
        pair.passkeys.central = 123_456
        try pair.perform(pair.central.secureRequested(now: at(0)), isCentral: true)
        #expect(pair.central.protection == .authenticated)
    }

    @Test func `a peripheral asks for security and for parameters`() throws {
        var pair = LinkPair()
        try pair.perform(pair.peripheral.secureRequested(now: at(0)), isCentral: false)
        #expect(pair.peripheral.protection == .authenticated)
        var wanted = ConnectionParameters.relaxed
        wanted.supervisionTimeout = 200
        try pair.perform(
            pair.peripheral.linkProcedureRequested(.updateParameters(wanted), now: at(0)), isCentral: false)
        #expect(pair.peripheralLog.contains("parameters: true"))
        // R24: with the floor.
        #expect(pair.central.parameters.supervisionTimeout == 400)
        #expect(pair.peripheral.parameters.supervisionTimeout == 400)
        wanted.latency = 499
        try pair.perform(
            pair.peripheral.linkProcedureRequested(.updateParameters(wanted), now: at(0)), isCentral: false)
        #expect(pair.peripheralLog.contains("parameters: false"))
    }

    /// Acceptance d: the link vanishes at every step of discovery, pairing and use; every waiter gets one result, both
    /// sides end once, and nothing comes after it.
    @Test func `a link that vanishes at any step has a defined end`() throws {
        var whole = LinkPair()
        try setUp(&whole)
        #expect(whole.steps > 100)
        for life in 1...whole.steps {
            var pair = LinkPair()
            pair.life = life
            try setUp(&pair)
            #expect(pair.results.count == 6, "step \(life)")
            #expect(
                pair.ends == [.disconnected(.connectionTimeout), .disconnected(.connectionTimeout)], "step \(life)")
            #expect(pair.doubleResults == 0, "step \(life)")
            #expect(pair.central.nextDeadline == nil && pair.peripheral.nextDeadline == nil, "step \(life)")
            #expect(pair.central.writeCommand(3, [1]) == nil)
        }
    }

    @Test func `a server that does not answer is left (R3)`() throws {
        var pair = LinkPair()
        _ = pair.central.procedureRequested(.write(3, [1]), waiter: "write", now: at(0))
        #expect(pair.central.nextDeadline == at(5))
        try pair.perform(pair.central.deadlineReached(now: at(5)), isCentral: true)
        #expect(pair.results["write"] == .failure(.timedOut))
        #expect(pair.ends.count == 2)
    }

    @Test func `an encryption that the controller refuses is a failure`() throws {
        var first = LinkPair()
        try setUp(&first)
        var pair = LinkPair(centralBond: first.bonds.first { $0.peer == PairingPair.peripheralAddress })
        _ = pair.central.secureRequested(now: at(0))
        try pair.perform(
            pair.central.commandFinished(.enableEncryption, .refused(.unsupportedRemoteFeature), now: at(0)),
            isCentral: true)
        #expect(pair.centralLog.count == 1)
        #expect(pair.central.protection == .open)
    }

    @Test func `a lost controller ends every link`() throws {
        var pair = LinkPair()
        _ = pair.central.procedureRequested(.read(3), waiter: "read", now: at(0))
        try pair.perform(pair.central.controllerLost(now: at(0)), isCentral: true)
        #expect(pair.results["read"] == .failure(.bearerEnded))
        #expect(pair.ends == [.disconnected(.connectionTimeout)])
        try pair.perform(pair.central.controllerLost(now: at(0)), isCentral: true)
        #expect(pair.ends.count == 1)
    }

    @Test func `frames of other channels are nobody's`() {
        var pair = LinkPair()
        let actions = pair.central.pieceReceived(.firstFromController, hex("0200 4000 0102"), now: at(0))
        #expect(actions.isEmpty)
    }

    /// Facts in any order, with packets of the transcripts and without meaning: every waiter gets one result, the link ends
    /// once, and nothing comes after it (R28).
    @Test(arguments: 0..<60) func `any order of facts has a defined end`(seed: UInt64) throws {
        var random = SplitMix(state: seed)
        let channels = [L2CAPFrame.attributeChannel, L2CAPFrame.signallingChannel, L2CAPFrame.securityChannel]
        let packets = try [L2CAPFrame.attributeChannel, L2CAPFrame.securityChannel].flatMap { channel in
            try Transcript("passkey_sc").frames(channel: channel).map {
                L2CAPFrame(channel: channel, payload: $0.payload)
            }
        }
        let role: LinkRole = seed % 2 == 0 ? .central : .peripheral
        let handle = LinkPair.handle
        var configuration = LinkStateMachine<Int>.Configuration(
            security: .init(role: role, bond: nil, requiresAuthentication: seed % 3 == 0))
        configuration.database = LinkPair.database
        var link = LinkStateMachine<Int>(
            ConnectionComplete(
                status: .success, handle: handle, role: role, peer: PairingPair.peripheralAddress,
                parameters: .init(interval: 12, latency: 0, supervisionTimeout: 500)), configuration: configuration)
        var pending: Set<Int> = []
        var asked = 0
        var ends = 0
        var now = Duration.zero
        let material = try PairingPair.material(seed)
        for _ in 0..<400 {
            now += .milliseconds(Int.random(in: 0...300, using: &random))
            let actions: [LinkStateMachine<Int>.Action]
            let hadEnded = ends > 0
            switch Int.random(in: 0..<18, using: &random) {
            case 16: actions = link.setUpBegan(now: now)
            case 17:
                actions =
                    Bool.random(using: &random)
                    ? link.setUpFinished(now: now)
                    : link.eventReceived(
                        .parametersRequested(
                            handle,
                            .init(minimumInterval: 12, maximumInterval: 24, latency: 4, supervisionTimeout: 200)),
                        now: now)
            case 0...4:
                let frame = packets.randomElement(using: &random) ?? packets[0]
                actions = link.pieceReceived(.firstFromController, frame.bytes, now: now)
            case 5:
                let payload = (0..<Int.random(in: 0...30, using: &random)).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
                let frame = L2CAPFrame(channel: channels.randomElement(using: &random) ?? 4, payload: payload)
                actions = link.pieceReceived(.firstFromController, frame.bytes, now: now)
            case 6: actions = link.pieceReceived(.continuation, [1, 2, 3], now: now)
            case 7:
                pending.insert(asked)
                let all: [GATTProcedure] = [.exchangeMTU, .discoverServices, .read(3), .write(3, [1])]
                actions = link.procedureRequested(all[asked % all.count], waiter: asked, now: now)
                asked += 1
            case 8: actions = link.secureRequested(now: now)
            case 9:
                let machine = PairingStateMachine(
                    PairingPair.settings(role, .noInputNoOutput), material: material, passkey: nil)
                actions = link.pairingPrepared(machine, now: now)
            case 10:
                let status: HCIStatus = Bool.random(using: &random) ? .success : .keyMissing
                actions = link.eventReceived(
                    .encryptionChange(status, handle, isEncrypted: status == .success), now: now)
            case 11:
                actions = link.eventReceived(.longTermKeyRequested(handle, random: 0, diversifier: 0), now: now)
            case 12:
                let all: [LinkProcedure] = [.readRemoteFeatures, .setPHY(.twoMegabit), .updateParameters(.relaxed)]
                actions = link.linkProcedureRequested(all.randomElement(using: &random) ?? all[0], now: now)
            case 13:
                let opcodes: [HCIOpcode] = [
                    .setPHY, .updateConnection, .readRemoteFeatures, .enableEncryption, .disconnect,
                ]
                let outcomes: [HCICommandOutcome] = [.started, .completed([]), .refused(.controllerBusy), .lost]
                actions = link.commandFinished(
                    opcodes.randomElement(using: &random) ?? .setPHY, outcomes.randomElement(using: &random) ?? .lost,
                    now: now)
            case 14: actions = link.deadlineReached(now: now)
            default:
                let isRare = Int.random(in: 0..<20, using: &random) == 0
                actions =
                    isRare
                    ? link.disconnectRequested(now: now)
                    : link.eventReceived(.phyUpdated(.success, handle, transmit: 2, receive: 2), now: now)
            }
            settle(actions, hadEnded)
        }
        settle(
            link.eventReceived(.disconnectionComplete(.success, handle, reason: .connectionTimeout), now: now), ends > 0
        )
        #expect(pending.isEmpty)
        #expect(ends == 1)
        #expect(link.nextDeadline == nil)

        func settle(_ actions: [LinkStateMachine<Int>.Action], _ hadEnded: Bool) {
            for (index, action) in actions.enumerated() {
                switch action {
                case .finish(let waiter, _): #expect(pending.remove(waiter) != nil)
                case .ended:
                    ends += 1
                    #expect(index == actions.count - 1)
                case .sendFrame, .sendCommand, .preparePairing, .askForPasskey, .secured, .storeBond:
                    #expect(!hadEnded, "\(action)")
                case .deliver, .serve, .forgetBond, .failSecurity, .finishProcedure, .finishParameterRequest: break
                }
            }
        }
    }
}
