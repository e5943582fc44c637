// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshCrypto
import MeshWire
import Testing

@testable import MeshBluetoothStack

struct ATTServerTests {
    private static let uart = BluetoothUUID(high: 0x6E40_0001_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)
    private static let receive = BluetoothUUID(high: 0x6E40_0002_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)
    private static let send = BluetoothUUID(high: 0x6E40_0003_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)

    /// 1: GAP with a name at 3; 4: UART, writes at 6, notifications at 8, their CCCD at 9; 10: a value to be indicated
    /// at 12, its CCCD at 13, and one that needs protection at 15.
    private static let database = AttributeDatabase([
        .init(
            uuid: BluetoothUUID(0x1800),
            characteristics: [
                .init(uuid: BluetoothUUID(0x2A00), properties: 0x02, value: Array("meshhost on the roof, a name".utf8))
            ]),
        .init(
            uuid: uart,
            characteristics: [
                .init(uuid: receive, properties: 0x0C, writeProtection: .authenticated),
                .init(uuid: send, properties: 0x10, writeProtection: .encrypted),
            ]),
        .init(
            uuid: BluetoothUUID(0x180F),
            characteristics: [
                .init(uuid: BluetoothUUID(0x2A19), properties: 0x22, value: [99]),
                .init(
                    uuid: BluetoothUUID(0x2A1A), properties: 0x02, value: [7], readProtection: .encrypted),
            ]),
    ])

    private func machine(_ protection: AttributeDatabase.Protection = .open) -> ATTServerStateMachine {
        var machine = ATTServerStateMachine(Self.database)
        machine.protection = protection
        return machine
    }

    private func ask(_ machine: inout ATTServerStateMachine, _ request: String) -> [UInt8]? {
        machine.packetReceived(hex(request)).response
    }

    @Test func `services and characteristics are found`() {
        var machine = machine()
        #expect(ask(&machine, "10 0100 ffff 0028") == hex("11 06 0100 0300 0018"))
        #expect(ask(&machine, "10 0400 ffff 0028") == hex("11 14 0400 0900 9ecadc240ee5a9e093f3a3b50100406e"))
        #expect(ask(&machine, "10 0a00 ffff 0028") == hex("11 06 0a00 0f00 0f18"))
        #expect(ask(&machine, "10 1000 ffff 0028") == hex("01 10 1000 0a"))
        #expect(ask(&machine, "10 0100 ffff 0328") == hex("01 10 0100 10"))
        #expect(ask(&machine, "06 0100 ffff 0028 9ecadc240ee5a9e093f3a3b50100406e") == hex("07 0400 0900"))
        #expect(ask(&machine, "06 0100 ffff 0028 0d18") == hex("01 06 0100 0a"))
        #expect(ask(&machine, "08 0400 0900 0328") == hex("09 15 0500 0c 0600 9ecadc240ee5a9e093f3a3b50200406e"))
        #expect(ask(&machine, "08 0600 0900 0328") == hex("09 15 0700 10 0800 9ecadc240ee5a9e093f3a3b50300406e"))
        #expect(ask(&machine, "08 0800 0900 0328") == hex("01 08 0800 0a"))
        #expect(ask(&machine, "04 0900 0900") == hex("05 01 0900 0229"))
        #expect(ask(&machine, "04 0800 0900") == hex("05 02 0800 9ecadc240ee5a9e093f3a3b50300406e"))
        #expect(ask(&machine, "04 0100 0300") == hex("05 01 0100 0028 0200 0328 0300 002a"))
        for request in ["04 0000 ffff", "04 0300 0200", "08 0000 ffff 0328", "10 0000 ffff 0028", "06 0000 ffff 0028"] {
            #expect(ask(&machine, request)?.suffix(1) == [0x01], "\(request)")
        }
        #expect(Self.database.valueHandle(of: Self.receive, in: Self.uart) == 6)
        #expect(Self.database.valueHandle(of: Self.send, in: BluetoothUUID(0x1800)) == nil)
    }

    @Test func `values are read, long ones in parts`() {
        var machine = machine()
        let name = Array("meshhost on the roof, a name".utf8)
        #expect(ask(&machine, "0a 0300") == [0x0B] + name.prefix(22))
        #expect(ask(&machine, "0c 0300 1600") == [0x0D] + name.dropFirst(22))
        #expect(ask(&machine, "0c 0300 1c00") == [0x0D])
        #expect(ask(&machine, "0c 0300 1d00") == hex("01 0c 0300 07"))
        #expect(ask(&machine, "0a 0000") == hex("01 0a 0000 01"))
        #expect(ask(&machine, "0a ff00") == hex("01 0a ff00 01"))
        #expect(ask(&machine, "0a 0800") == hex("01 0a 0800 02"))
        #expect(ask(&machine, "0a 0f00") == hex("01 0a 0f00 0f"))
        machine.protection = .encrypted
        #expect(ask(&machine, "0a 0f00") == hex("0b 07"))
        machine.database.setValue([1, 2], at: 15)
        #expect(ask(&machine, "0a 0f00") == hex("0b 0102"))
        #expect(ask(&machine, "08 0100 ffff 1a2a") == hex("09 04 0f00 0102"))
        machine.protection = .open
        #expect(ask(&machine, "08 0100 ffff 1a2a") == hex("01 08 0f00 0f"))
    }

    @Test func `writes are handed over when the link is secure enough`() {
        var machine = machine()
        #expect(ask(&machine, "12 0600 01") == hex("01 12 0600 05"))
        machine.protection = .encrypted
        #expect(ask(&machine, "12 0600 01") == hex("01 12 0600 05"))
        machine.protection = .authenticated
        let action = machine.packetReceived(hex("12 0600 0102"))
        #expect(action.response == hex("13"))
        #expect(action.event == .written(handle: 6, [1, 2]))
        #expect(ask(&machine, "12 0300 01") == hex("01 12 0300 03"))
        let command = machine.packetReceived(hex("52 0600 09"))
        #expect(command == .init(response: nil, event: .written(handle: 6, [9])))
        // Commands are never refused, but ignored.
        #expect(machine.packetReceived(hex("52 0300 09")) == .init())
        #expect(machine.packetReceived(hex("52 00")) == .init())
    }

    @Test func `prepared writes are put together`() {
        var machine = machine(.authenticated)
        #expect(ask(&machine, "16 0600 0000 0102") == hex("17 0600 0000 0102"))
        #expect(ask(&machine, "16 0600 0200 0304") == hex("17 0600 0200 0304"))
        let action = machine.packetReceived(hex("18 01"))
        #expect(action.response == hex("19"))
        #expect(action.event == .written(handle: 6, [1, 2, 3, 4]))
        _ = ask(&machine, "16 0600 0000 01")
        #expect(machine.packetReceived(hex("18 00")) == .init(response: hex("19"), event: nil))
        #expect(machine.packetReceived(hex("18 01")) == .init(response: hex("19"), event: nil))
        // A hole, and too much.
        _ = ask(&machine, "16 0600 0500 01")
        #expect(ask(&machine, "18 01") == hex("01 18 0600 07"))
        var answers: Set<[UInt8]> = []
        for _ in 0..<200 {
            let part = [0x16, 6, 0, 0, 0] + [UInt8](repeating: 1, count: 18)
            if let response = machine.packetReceived(part).response, response[0] == 0x01 { answers.insert(response) }
        }
        #expect(answers == [hex("01 16 0600 09")])
    }

    @Test func `no answer to a prepared write is longer than the MTU`() {
        var machine = machine(.authenticated)
        let part = { [0x16, 6, 0, 0, 0] + [UInt8](repeating: 1, count: $0) }
        #expect(machine.packetReceived(part(18)).response?.count == 23)
        #expect(machine.packetReceived(part(19)).response == hex("01 16 0600 04"))
        _ = ask(&machine, "02 1e00")
        #expect(machine.packetReceived(part(25)).response?.count == 30)
        #expect(machine.packetReceived(part(26)).response == hex("01 16 0600 04"))
    }

    @Test func `a subscription, and notifications that fit (R36)`() {
        var machine = machine()
        #expect(machine.notification(8, [1]) == nil)
        #expect(ask(&machine, "12 0900 0100") == hex("01 12 0900 0f"))
        machine.protection = .encrypted
        let action = machine.packetReceived(hex("12 0900 0100"))
        #expect(action.event == .subscriptionChanged(valueHandle: 8, notifies: true, indicates: false))
        #expect(ask(&machine, "0a 0900") == hex("0b 0100"))
        #expect(machine.notification(8, [1, 2]) == hex("1b 0800 0102"))
        #expect(machine.notification(8, [UInt8](repeating: 1, count: 20)) != nil)
        #expect(machine.notification(8, [UInt8](repeating: 1, count: 21)) == nil)
        // Bits for what is not offered are not kept; a wrong length is refused.
        #expect(
            machine.packetReceived(hex("12 0900 ffff")).event
                == .subscriptionChanged(valueHandle: 8, notifies: true, indicates: false))
        #expect(ask(&machine, "12 0900 01") == hex("01 12 0900 0d"))
        // A bonded client finds it on the next link, another does not.
        var bonded = ATTServerStateMachine(Self.database, subscriptions: machine.subscriptions)
        #expect(bonded.notification(8, [1]) == nil)
        bonded.protection = .encrypted
        #expect(bonded.notification(8, [1]) != nil)
        #expect(self.machine().notification(8, [1]) == nil)
        bonded.protection = .encrypted
        _ = bonded.packetReceived(hex("12 0900 0000"))
        #expect(bonded.subscriptions.isEmpty)
        // Handles of a database that has changed are dropped.
        #expect(ATTServerStateMachine(AttributeDatabase(), subscriptions: [8: 1]).subscriptions.isEmpty)
    }

    @Test func `one indication at a time, with a deadline`() {
        var machine = machine()
        #expect(machine.indicationRequested(12, [1], now: at(0)) == nil)
        _ = machine.packetReceived(hex("12 0d00 0200"))
        #expect(machine.indicationRequested(12, [1], now: at(0)) == hex("1d 0c00 01"))
        #expect(machine.indicationRequested(12, [2], now: at(0)) == nil)
        #expect(machine.packetReceived(hex("1e")).event == .indicationConfirmed)
        #expect(machine.packetReceived(hex("1e")) == .init())
        #expect(machine.indicationRequested(12, [2], now: at(1)) != nil)
        #expect(machine.deadlineReached(now: at(30)) == .init())
        #expect(machine.deadlineReached(now: at(31)).event == .closeLink)
    }

    @Test func `the exchange`() {
        var machine = machine()
        let action = machine.packetReceived(hex("02 b900"))
        #expect(action.response == hex("03 0502"))
        #expect(action.event == .mtuExchanged(peer: 185))
        #expect(machine.mtu == 185)
        _ = machine.packetReceived(hex("02 0100"))
        #expect(machine.mtu == 23)
    }

    @Test func `unknown requests are refused, unknown commands ignored`() {
        var machine = machine()
        #expect(ask(&machine, "20 0100 0200") == hex("01 20 0000 06"))
        #expect(ask(&machine, "0e 0100 0200") == hex("01 0e 0000 06"))
        #expect(machine.packetReceived(hex("d2 0000")) == .init())
        #expect(machine.packetReceived(hex("7f")) == .init())
        #expect(machine.packetReceived(hex("13")) == .init())
        #expect(machine.packetReceived([]) == .init())
        #expect(ask(&machine, "0a 01") == hex("01 0a 0000 04"))
        #expect(ask(&machine, "0a 0100 00") == hex("01 0a 0000 04"))
        #expect(machine.packetReceived(hex("1e 00")) == .init())
    }

    // Vol 3 Part G Appendix B, as in smp_vectors.json.
    @Test func `the code of a database's bytes is the published hash`() throws {
        let published = hex(
            "010000280018020003280a0300002a04000328020500012a06000028011807000328200800052a090002290a0003280a0b00292b0c"
                + "000328020d002a2b0e00002808180f000228140016000f1810000328a21100182a12000229130000290000140001280f181500"
                + "0328021600192a")
        let key = [UInt8](repeating: 0, count: 16)
        #expect(try AESCMAC.code(for: published, key: key) == hex("f1ca2d48ecf58bac8a8830bbb9fba990"))
        // The first service of that database, made by this host.
        let database = AttributeDatabase([
            .init(
                uuid: BluetoothUUID(0x1800),
                characteristics: [
                    .init(uuid: BluetoothUUID(0x2A00), properties: 0x0A),
                    .init(uuid: BluetoothUUID(0x2A01), properties: 0x02),
                ])
        ])
        #expect(database.hashInput == Array(published.prefix(database.hashInput.count)))
        #expect(database.hashInput.count == 6 + 2 * 9)
    }

    @Test func `a client and a server of this host understand each other`() throws {
        var server = machine(.authenticated)
        var client = ATTClientStateMachine<Int>()
        func run(_ procedure: GATTProcedure) throws -> GATTResult {
            var action = client.procedureRequested(procedure, waiter: 0, now: at(0))
            while let request = action.packets.first {
                let response = try #require(server.packetReceived(request).response)
                action = client.packetReceived(response, now: at(0))
            }
            return try #require(action.finished.first).result.get()
        }
        #expect(try run(.exchangeMTU) == .mtu(517))
        guard case .services(let services) = try run(.discoverServices) else { return }
        #expect(services.map(\.range) == [.init(1, 3), .init(4, 9), .init(10, 15)])
        #expect(try run(.discoverService(Self.uart)) == .services([services[1]]))
        guard case .characteristics(let found) = try run(.discoverCharacteristics(services[1].range)) else { return }
        #expect(found.map(\.uuid) == [Self.receive, Self.send])
        #expect(
            try run(.discoverDescriptors(.init(9, 9))) == .descriptors([.init(9, .clientConfiguration)]))
        #expect(try run(.read(3)) == .value(Array("meshhost on the roof, a name".utf8)))
        #expect(try run(.write(6, [UInt8](repeating: 5, count: 400))) == .written)
        #expect(try run(.write(9, [1, 0])) == .written)
    }
}
