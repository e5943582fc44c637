// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshWire

/// What must hold for a server whatever its client sends: packets of the length that stands before each. Requests are
/// answered once and within the MTU, commands never, and nothing protected is given away.
enum ATTServerCheck {
    private static let secret: [UInt8] = Array("the value that nobody may read".utf8)

    private static let database = AttributeDatabase([
        .init(
            uuid: BluetoothUUID(0x1800),
            characteristics: [.init(uuid: BluetoothUUID(0x2A00), properties: 0x0A, value: Array("name".utf8))]),
        .init(
            uuid: BluetoothUUID(high: 0x6E40_0001_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E),
            characteristics: [
                .init(uuid: BluetoothUUID(0x2A01), properties: 0x0E, value: secret, readProtection: .encrypted),
                .init(uuid: BluetoothUUID(0x2A02), properties: 0x32, value: [UInt8](repeating: 3, count: 300)),
                .init(uuid: BluetoothUUID(0x2A03), properties: 0x0C, writeProtection: .authenticated),
            ]),
    ])

    static func run(_ input: UnsafeRawBufferPointer) {
        var machine = ATTServerStateMachine(database)
        let secretHandle = database.valueHandle(
            of: BluetoothUUID(0x2A03), in: BluetoothUUID(high: 0x6E40_0001_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E))
        var rest = input[...]
        while let length = rest.popFirst() {
            let packet = Array(rest.prefix(Int(length)))
            rest = rest.dropFirst(packet.count)
            let action = machine.packetReceived(packet)
            if let response = action.response {
                precondition(response.count <= machine.mtu, "longer than the MTU")
                precondition((packet.first ?? 0x40) & 0x40 == 0, "a command was answered")
                precondition((try? ATTPacket.decode(response.span.bytes)) != nil, "sends what has no meaning")
                // The answer to a prepared write has what the client itself sent.
                precondition(
                    !contains(response, secret.prefix(8)) || contains(packet, secret.prefix(8)),
                    "a protected value was given away")
            }
            if case .written(let handle, let value) = action.event {
                precondition(value.count <= 512, "a value that is too long")
                precondition(handle != secretHandle, "a protected value was written")
            }
            if packet.first == 0x1E { continue }
            _ = machine.indicationRequested(8, [1], now: .zero)
        }
        _ = machine.deadlineReached(now: .seconds(30))
        precondition(machine.nextDeadline == nil, "a deadline of nothing")
    }

    private static func contains(_ bytes: [UInt8], _ part: ArraySlice<UInt8>) -> Bool {
        guard bytes.count >= part.count else { return false }
        return (0...bytes.count - part.count).contains { bytes[$0..<$0 + part.count].elementsEqual(part) }
    }
}
