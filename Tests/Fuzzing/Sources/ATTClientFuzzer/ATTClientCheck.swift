// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshWire

/// What must hold for a client whatever its server sends: packets of the length that stands before each, while
/// procedures of all kinds are under way. Every waiter gets one result.
enum ATTClientCheck {
    static func run(_ input: UnsafeRawBufferPointer) {
        let uuid = BluetoothUUID(high: 0x6E40_0001_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)
        let procedures: [GATTProcedure] = [
            .exchangeMTU, .discoverServices, .discoverService(uuid), .discoverCharacteristics(.init(1, 40)),
            .discoverDescriptors(.all), .read(3), .readByType(.databaseHash), .write(3, [1]),
            .write(4, [UInt8](repeating: 2, count: 200)), .exchangeMTU,
        ]
        var machine = ATTClientStateMachine<Int>()
        var pending: Set<Int> = []
        var count = 0
        func settle(_ action: ATTClientStateMachine<Int>.Action) {
            for (waiter, _) in action.finished {
                precondition(pending.remove(waiter) != nil, "two results for one procedure")
            }
        }
        func ask(_ machine: inout ATTClientStateMachine<Int>) {
            pending.insert(count)
            settle(machine.procedureRequested(procedures[count % procedures.count], waiter: count, now: .zero))
            count += 1
        }
        var rest = input[...]
        while let length = rest.popFirst() {
            if pending.count < 3 { ask(&machine) }
            let packet = Array(rest.prefix(Int(length)))
            rest = rest.dropFirst(packet.count)
            let action = machine.packetReceived(packet, now: .zero)
            for sent in action.packets {
                precondition(sent.count <= max(machine.mtu, 23), "longer than the MTU")
                precondition((try? ATTPacket.decode(sent.span.bytes)) != nil, "sends what has no meaning")
            }
            settle(action)
            if let packet = try? ATTPacket.decode(packet.span.bytes), case .other = packet {} else { roundTrip(packet) }
        }
        settle(machine.deadlineReached(now: .seconds(30)))
        settle(machine.bearerEnded())
        precondition(pending.isEmpty, "a procedure without a result")
        precondition(machine.nextDeadline == nil, "a deadline of nothing")
    }

    /// What decodes is written as it was read.
    private static func roundTrip(_ bytes: [UInt8]) {
        guard let packet = try? ATTPacket.decode(bytes.span.bytes) else { return }
        precondition((try? ATTPacket.decode(packet.bytes.span.bytes)) == packet, "another packet")
    }
}
