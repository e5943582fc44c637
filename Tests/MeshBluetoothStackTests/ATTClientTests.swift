// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire
import Testing

@testable import MeshBluetoothStack

struct ATTClientTests {
    private typealias Machine = ATTClientStateMachine<Int>
    private let uart = BluetoothUUID(high: 0x6E40_0001_B5A3_F393, low: 0xE0A9_E50E_24DC_CA9E)

    /// Asks for a procedure and plays the server: each request with the response to it.
    private func run(
        _ machine: inout Machine, _ procedure: GATTProcedure, _ dialogue: [(request: String, response: String)],
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> Result<GATTResult, GATTFailure>? {
        var action = machine.procedureRequested(procedure, waiter: 1, now: at(0))
        for (request, response) in dialogue {
            #expect(action.packets == [hex(request)], sourceLocation: sourceLocation)
            action = machine.packetReceived(hex(response), now: at(0))
        }
        #expect(action.packets == [], sourceLocation: sourceLocation)
        #expect(action.closing == nil, sourceLocation: sourceLocation)
        return action.finished.first?.result
    }

    private func machine(mtu: Int = 23) -> Machine {
        var machine = Machine()
        if mtu != 23 { machine.peerExchangedMTU(mtu) }
        return machine
    }

    @Test func `what Bumble's client asked in a transcript, asked again`() throws {
        let frames = try Transcript("passkey_sc").frames(channel: L2CAPFrame.attributeChannel)
        var machine = Machine(
            {
                var configuration = Machine.Configuration()
                configuration.ownMTU = 517
                return configuration
            }())
        // Up to the first write, Bumble asks for all services, then for the characteristics of the UART service.
        var responses = frames.filter(\.isFromController).map(\.payload)[...]
        var sent: [[UInt8]] = []
        var results: [GATTResult] = []
        var queue: [GATTProcedure] = [.exchangeMTU, .discoverServices, .discoverCharacteristics(.init(14, 19))]
        while !queue.isEmpty {
            var action = machine.procedureRequested(queue.removeFirst(), waiter: 0, now: at(0))
            while let packet = action.packets.first {
                sent.append(packet)
                let response = responses.popFirst()
                action = machine.packetReceived(try #require(response), now: at(0))
            }
            results.append(try #require(action.finished.first).result.get())
        }
        #expect(sent == Array(frames.filter { !$0.isFromController }.map(\.payload).prefix(sent.count)))
        #expect(results.first == .mtu(185))
        guard case .services(let services) = results[1], case .characteristics(let found) = results[2] else {
            Issue.record("\(results)")
            return
        }
        #expect(services.contains(RemoteService(uuid: uart, range: .init(14, 19))))
        #expect(found.map(\.valueHandle) == [0x10, 0x12])
        #expect(found.map(\.properties) == [0x0C, 0x12])
    }

    @Test func `the wanted service in one round trip`() {
        var machine = machine()
        let result = run(
            &machine, .discoverService(uart),
            [("06 0100 ffff 0028 9ecadc240ee5a9e093f3a3b50100406e", "07 0e00 1300")])
        #expect(result == .success(.services([RemoteService(uuid: uart, range: .init(14, 19))])))
        let none = run(
            &machine, .discoverService(BluetoothUUID(0x180D)), [("06 0100 ffff 0028 0d18", "01 06 0100 0a")])
        #expect(none == .success(.services([])))
    }

    // BlueZ 5.87 unit/test-gatt.c: /TP/GAD/CL/BV-01-C and the like.
    @Test func `all services, to the end`() {
        var machine = machine()
        let result = run(
            &machine, .discoverServices,
            [
                ("10 0100 ffff 0028", "11 06 0100 0400 0118 0500 0800 0d18"),
                ("10 0900 ffff 0028", "01 10 0900 0a"),
            ])
        #expect(
            result
                == .success(
                    .services([
                        RemoteService(uuid: .genericAttribute, range: .init(1, 4)),
                        RemoteService(uuid: BluetoothUUID(0x180D), range: .init(5, 8)),
                    ])))
        let open = run(&machine, .discoverServices, [("10 0100 ffff 0028", "11 06 0100 ffff 0118")])
        #expect(open == .success(.services([RemoteService(uuid: .genericAttribute, range: .init(1, 0xFFFF))])))
    }

    @Test func `descriptors of both lengths`() {
        var machine = machine()
        let result = run(
            &machine, .discoverDescriptors(.init(4, 9)),
            [
                ("04 0400 0900", "05 01 0400 0129 0500 0229"),
                ("04 0600 0900", "05 02 0600 9ecadc240ee5a9e093f3a3b50100406e"),
                ("04 0700 0900", "01 04 0700 0a"),
            ])
        #expect(
            result
                == .success(
                    .descriptors([
                        .init(4, BluetoothUUID(0x2901)), .init(5, .clientConfiguration), .init(6, uart),
                    ])))
    }

    @Test(arguments: [
        // In circles, backwards, out of the range, of the wrong kind, with a UUID of 3 bytes.
        (GATTProcedure.discoverServices, "11 06 0100 0400 0118 0400 0800 0d18"),
        (.discoverServices, "11 06 0500 0400 0118"), (.discoverServices, "11 07 0100 0400 011800"),
        (.discoverServices, "11 06 0000 0400 0118"),
        (.discoverCharacteristics(.init(4, 9)), "09 07 0300 02 0400 002a"),
        (.discoverCharacteristics(.init(4, 9)), "09 07 0a00 02 0b00 002a"),
        (.discoverCharacteristics(.init(4, 9)), "09 04 0400 0200"),
        (.discoverDescriptors(.init(4, 9)), "05 01 0500 0229 0500 0229"),
        (.discoverService(BluetoothUUID(0x1801)), "07 0500 0400"),
        // A response that cannot be read.
        (.discoverServices, "11 06 0100 0400 01"), (.read(3), "0b"),
    ])
    func `answers that lead nowhere end the procedure, not the bearer`(procedure: GATTProcedure, response: String) {
        var machine = machine()
        var action = machine.procedureRequested(procedure, waiter: 1, now: at(0))
        action = machine.packetReceived(hex(response), now: at(0))
        if case .read = procedure {
            #expect(action.finished.map(\.result) == [.success(.value([]))])
        } else {
            #expect(action.finished.map(\.result) == [.failure(.meaninglessAnswer)])
        }
        #expect(machine.nextDeadline == nil)
        #expect(machine.procedureRequested(.read(9), waiter: 2, now: at(0)).packets == [hex("0a 0900")])
    }

    @Test func `a long value is read to its end`() {
        var machine = machine()
        let part = [UInt8](repeating: 7, count: 22)
        let full = part.map { String($0, radix: 16) }.map { "0" + $0 }.joined()
        #expect(
            run(&machine, .read(3), [("0a 0300", "0b" + full), ("0c 0300 1600", "0d 0102")])
                == .success(.value(part + [1, 2])))
        #expect(
            run(&machine, .read(3), [("0a 0300", "0b" + full), ("0c 0300 1600", "0d")]) == .success(.value(part)))
        // A server that knows no long values, or no rest.
        for code in ["0b", "07"] {
            #expect(
                run(&machine, .read(3), [("0a 0300", "0b" + full), ("0c 0300 1600", "01 0c 0300" + code)])
                    == .success(.value(part)))
        }
        #expect(
            run(&machine, .read(3), [("0a 0300", "01 0a 0300 0f")])
                == .failure(.refused(.insufficientEncryption, handle: 3)))
        #expect(ATTErrorCode.insufficientEncryption.asksForSecurity)
    }

    @Test func `a value without an end has 512 bytes`() {
        var machine = machine()
        var action = machine.procedureRequested(.read(3), waiter: 1, now: at(0))
        var round = 0
        while action.finished.isEmpty, round < 100 {
            let opcode: UInt8 = round == 0 ? 0x0B : 0x0D
            action = machine.packetReceived([opcode] + [UInt8](repeating: 1, count: 22), now: at(0))
            round += 1
        }
        guard case .success(.value(let value)) = action.finished.first?.result else {
            Issue.record("no value")
            return
        }
        #expect(value.count == 512)
    }

    @Test func `the hash of the database`() {
        var machine = machine()
        #expect(
            run(
                &machine, .readByType(.databaseHash),
                [("08 0100 ffff 2a2b", "09 12 0400 f1ca2d48ecf58bac8a8830bbb9fba990")])
                == .success(.value(hex("f1ca2d48ecf58bac8a8830bbb9fba990"))))
    }

    @Test func `a value that fits is written at once, a longer one in parts (R18)`() {
        var machine = machine()
        #expect(machine.maximumWriteLength == 20)
        let digits = String(repeating: "01", count: 18)
        let long = [UInt8](repeating: 1, count: 20)
        #expect(
            run(&machine, .write(9, long), [("12 0900" + digits + "0101", "13")]) == .success(.written))
        let value = [UInt8](repeating: 1, count: 21)
        #expect(
            run(
                &machine, .write(9, value),
                [
                    ("16 0900 0000" + digits, "17 0900 0000" + digits), ("16 0900 1200 010101", "17 0900 1200 010101"),
                    ("18 01", "19"),
                ]) == .success(.written))
        #expect(
            run(&machine, .write(9, [UInt8](repeating: 1, count: 513)), []) == .failure(.valueTooLong))
    }

    @Test func `a prepared write that goes wrong is cancelled`() {
        var machine = machine()
        let digits = String(repeating: "01", count: 18)
        let value = [UInt8](repeating: 1, count: 21)
        #expect(
            run(
                &machine, .write(9, value),
                [("16 0900 0000" + digits, "17 0900 0000" + String(repeating: "02", count: 18)), ("18 00", "19")])
                == .failure(.preparedWriteMangled))
        #expect(
            run(
                &machine, .write(9, value),
                [
                    ("16 0900 0000" + digits, "17 0900 0000" + digits), ("16 0900 1200 010101", "01 16 0900 09"),
                    ("18 00", "19"),
                ]) == .failure(.refused(.prepareQueueFull, handle: 9)))
        // Refused at the start: nothing is in the server's queue.
        #expect(
            run(&machine, .write(9, value), [("16 0900 0000" + digits, "01 16 0900 03")])
                == .failure(.refused(.writeNotPermitted, handle: 9)))
    }

    @Test func `one request at a time, in order`() {
        var machine = machine()
        #expect(machine.procedureRequested(.read(1), waiter: 1, now: at(0)).packets == [hex("0a 0100")])
        #expect(machine.procedureRequested(.write(2, [9]), waiter: 2, now: at(0)).packets == [])
        #expect(machine.procedureRequested(.read(3), waiter: 3, now: at(0)).packets == [])
        let first = machine.packetReceived(hex("0b 01"), now: at(1))
        #expect(first.finished.map(\.waiter) == [1])
        #expect(first.packets == [hex("12 0200 09")])
        // Commands do not wait.
        #expect(machine.writeCommand(4, [7]) == hex("52 0400 07"))
        #expect(machine.writeCommand(4, [UInt8](repeating: 0, count: 21)) == nil)
        // The response to a request that is not under way changes nothing.
        #expect(machine.packetReceived(hex("0b 01"), now: at(1)).finished.isEmpty)
        #expect(machine.packetReceived(hex("01 0a 0300 0a"), now: at(1)).finished.isEmpty)
        #expect(machine.packetReceived(hex("13"), now: at(1)).packets == [hex("0a 0300")])
    }

    @Test func `the exchange happens once, and each side keeps to the lesser (R29)`() {
        var machine = machine()
        #expect(machine.procedureRequested(.exchangeMTU, waiter: 1, now: at(0)).packets == [hex("02 0502")])
        #expect(machine.packetReceived(hex("03 b000"), now: at(0)).finished.map(\.result) == [.success(.mtu(176))])
        #expect(machine.maximumWriteLength == 173)
        let again = machine.procedureRequested(.exchangeMTU, waiter: 2, now: at(0))
        #expect(again.packets == [])
        #expect(again.finished.map(\.result) == [.success(.mtu(176))])
        var old = Machine()
        #expect(run(&old, .exchangeMTU, [("02 0502", "01 02 0000 06")]) == .success(.mtu(23)))
        var small = Machine()
        #expect(run(&small, .exchangeMTU, [("02 0502", "03 0100")]) == .success(.mtu(23)))
    }

    @Test func `notifications of any length and handle, before any answer (R15, R39)`() {
        var machine = machine()
        _ = machine.procedureRequested(.write(0x13, [1, 0]), waiter: 1, now: at(0))
        let early = machine.packetReceived(hex("1b 1200 aa"), now: at(0))
        #expect(early.delivery == .init(handle: 0x12, value: [0xAA], isIndication: false))
        #expect(early.finished.isEmpty)
        #expect(machine.packetReceived(hex("13"), now: at(0)).finished.map(\.waiter) == [1])
        let long = machine.packetReceived([0x1B, 9, 0] + [UInt8](repeating: 1, count: 600), now: at(0))
        #expect(long.delivery?.value.count == 600)
        #expect(machine.packetReceived(hex("1b 1200"), now: at(0)).delivery?.value == [])
    }

    @Test func `indications are confirmed at once`() {
        var machine = machine()
        let action = machine.packetReceived(hex("1d 0800 aa"), now: at(0))
        #expect(action.packets == [hex("1e")])
        #expect(action.delivery == .init(handle: 8, value: [0xAA], isIndication: true))
    }

    @Test func `a request without an answer ends the bearer`() {
        var machine = machine()
        _ = machine.procedureRequested(.read(1), waiter: 1, now: at(0))
        _ = machine.procedureRequested(.read(2), waiter: 2, now: at(0))
        #expect(machine.nextDeadline == at(30))
        #expect(machine.deadlineReached(now: at(29)).finished.isEmpty)
        let action = machine.deadlineReached(now: at(30))
        #expect(action.closing == .requestTimedOut)
        #expect(action.finished.map(\.result) == [.failure(.timedOut), .failure(.bearerEnded)])
        // Never again.
        #expect(machine.packetReceived(hex("0b 01"), now: at(31)).finished.isEmpty)
        #expect(
            machine.procedureRequested(.read(3), waiter: 3, now: at(31)).finished.map(\.result)
                == [.failure(.bearerEnded)])
        #expect(machine.writeCommand(1, []) == nil)
    }

    @Test func `a write has 5 s`() {
        var machine = machine()
        _ = machine.procedureRequested(.write(1, [1]), waiter: 1, now: at(10))
        #expect(machine.nextDeadline == at(15))
        #expect(machine.deadlineReached(now: at(15)).closing == .requestTimedOut)
    }

    @Test func `the end of the link fails whatever waits`() {
        var machine = machine()
        _ = machine.procedureRequested(.read(1), waiter: 1, now: at(0))
        _ = machine.procedureRequested(.read(2), waiter: 2, now: at(0))
        #expect(machine.bearerEnded().finished.map(\.waiter) == [1, 2])
        #expect(machine.bearerEnded().finished.isEmpty)
    }

    @Test func `nonsense is borne for a while`() {
        var machine = machine()
        for _ in 0..<16 { #expect(machine.packetReceived(hex("13"), now: at(0)).closing == nil) }
        #expect(machine.packetReceived(hex("0b"), now: at(0)).closing == .peerMisbehaved)
    }

    @Test func `the queue has an end`() {
        var machine = machine()
        for number in 0...64 {
            #expect(machine.procedureRequested(.read(1), waiter: number, now: at(0)).finished.isEmpty)
        }
        #expect(machine.procedureRequested(.read(1), waiter: 99, now: at(0)).finished.map(\.waiter) == [99])
    }
}
