// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
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

    /// Acceptance d: the link vanishes at every step of discovery, pairing and use; every waiter gets one result, both sides end
    /// once, and nothing comes after it.
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
}
