// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshWire
import Testing

struct ATTBearerTests {
    private typealias Machine = ATTBearerStateMachine<Int>

    private func machine() -> Machine {
        let database = AttributeDatabase([
            .init(
                uuid: BluetoothUUID(0x180F),
                characteristics: [.init(uuid: BluetoothUUID(0x2A19), properties: 0x3A, value: [50])])
        ])
        return Machine(server: ATTServerStateMachine(database))
    }

    @Test func `an exchange that the peer begins holds for both directions`() {
        var machine = machine()
        #expect(machine.packetReceived(hex("02 b900"), now: at(0)).packets == [hex("03 0502")])
        #expect(machine.mtu == 185)
        _ = machine.packetReceived(hex("12 0400 0100"), now: at(0))
        #expect(machine.notification(3, [UInt8](repeating: 1, count: 182)) != nil)
        #expect(machine.notification(3, [UInt8](repeating: 1, count: 183)) == nil)
        #expect(machine.writeCommand(9, [UInt8](repeating: 1, count: 182)) != nil)
    }

    @Test func `an exchange that this host begins holds for both directions`() {
        var machine = machine()
        #expect(machine.procedureRequested(.exchangeMTU, waiter: 1, now: at(0)).packets == [hex("02 0502")])
        // The peer asks at the same time; it is answered, and each side keeps to the lesser.
        #expect(machine.packetReceived(hex("02 6400"), now: at(0)).packets == [hex("03 0502")])
        #expect(machine.packetReceived(hex("03 6400"), now: at(0)).finished.map(\.waiter) == [1])
        #expect(machine.mtu == 100)
        _ = machine.packetReceived(hex("12 0400 0100"), now: at(0))
        #expect(machine.notification(3, [UInt8](repeating: 1, count: 97)) != nil)
    }

    @Test func `requests are answered while an own one is under way`() {
        var machine = machine()
        _ = machine.procedureRequested(.read(7), waiter: 1, now: at(0))
        #expect(machine.packetReceived(hex("0a 0300"), now: at(0)).packets == [hex("0b 32")])
        let action = machine.packetReceived(hex("12 0300 33"), now: at(0))
        #expect(action.packets == [hex("13")])
        #expect(action.event == .written(handle: 3, [0x33]))
        machine.valueChanged(3, [0x33])
        #expect(machine.packetReceived(hex("0a 0300"), now: at(0)).packets == [hex("0b 33")])
        #expect(machine.packetReceived(hex("0b 01"), now: at(0)).finished.map(\.waiter) == [1])
        #expect(machine.packetReceived(hex("1b 0800 aa"), now: at(0)).delivery?.value == [0xAA])
    }

    @Test func `either side's deadline closes the link`() {
        var machine = machine()
        _ = machine.packetReceived(hex("12 0400 0200"), now: at(0))
        #expect(machine.indicationRequested(3, [1], now: at(2)) != nil)
        #expect(machine.nextDeadline == at(32))
        _ = machine.procedureRequested(.read(7), waiter: 1, now: at(1))
        #expect(machine.nextDeadline == at(31))
        #expect(!machine.deadlineReached(now: at(30)).closesLink)
        let action = machine.deadlineReached(now: at(31))
        #expect(action.closesLink)
        #expect(action.finished.map(\.result) == [.failure(.timedOut)])
        #expect(machine.nextDeadline == at(32))
        #expect(machine.deadlineReached(now: at(32)).closesLink)
        #expect(machine.nextDeadline == nil)
    }

    @Test func `a new link begins with nothing of the old one (R28)`() {
        var old = machine()
        _ = old.packetReceived(hex("02 b900"), now: at(0))
        _ = old.packetReceived(hex("12 0400 0100"), now: at(0))
        _ = old.procedureRequested(.read(1), waiter: 1, now: at(0))
        #expect(old.bearerEnded().finished.map(\.result) == [.failure(.bearerEnded)])
        #expect(old.subscriptions == [3: 1])
        var new = machine()
        #expect(new.mtu == 23)
        #expect(new.notification(3, [1]) == nil)
        #expect(new.nextDeadline == nil)
        #expect(new.procedureRequested(.read(1), waiter: 2, now: at(0)).packets == [hex("0a 0100")])
    }
}
