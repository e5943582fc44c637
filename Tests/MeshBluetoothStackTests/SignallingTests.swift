// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import Testing

struct SignallingTests {
    private func frame(_ payload: String) -> L2CAPFrame {
        L2CAPFrame(channel: L2CAPFrame.signallingChannel, payload: hex(payload))
    }

    // The request of MeshCore on nRF52: 15 to 30 ms, latency 4, supervision timeout 2 s (ble-linux §0).
    @Test func `the radio's parameters are considered, and it is told what was decided`() {
        var machine = SignallingStateMachine(role: .central)
        let action = machine.frameReceived(hex("12 05 0800 0c00 1800 0400 c800"))
        let wanted = ConnectionParameters(
            minimumInterval: 12, maximumInterval: 24, latency: 4, supervisionTimeout: 200)
        #expect(action == .consider(wanted, identifier: 5))
        #expect(machine.answer(toRequest: 5, isGranted: true) == frame("13 05 0200 0000"))
        #expect(machine.answer(toRequest: 5, isGranted: false) == frame("13 05 0200 0100"))
    }

    // Vol 3 Part A §4.20: intervals, latency, timeout out of range or in contradiction.
    @Test(arguments: [
        "0500 1800 0000 c800", "1800 1700 0000 c800", "0600 810c 0000 c800", "0600 1800 f401 800c",
        "0600 1800 0000 0900", "0600 1800 0000 810c", "900c 800c 0000 0a00", "800c 800c 0300 800c",
    ])
    func `parameters out of range are rejected`(parameters: String) {
        var machine = SignallingStateMachine(role: .central)
        #expect(machine.frameReceived(hex("12 09 0800" + parameters)) == .send(frame("13 09 0200 0100")))
    }

    @Test func `the longest latency that a timeout allows`() {
        // 4 * timeout > (1 + latency) * interval.
        let justValid = ConnectionParameters(
            minimumInterval: 6, maximumInterval: 100, latency: 9, supervisionTimeout: 251)
        #expect(justValid.isValid)
        var invalid = justValid
        invalid.supervisionTimeout = 250
        #expect(!invalid.isValid)
    }

    @Test func `channels and unknown requests are refused`() {
        var machine = SignallingStateMachine(role: .central)
        #expect(
            machine.frameReceived(hex("14 01 0a00 8000 4000 1700 1700 0100"))
                == .send(frame("15 01 0a00 0000 0000 0000 0000 0200")))
        #expect(
            machine.frameReceived(hex("17 02 0a00 8000 4000 1700 0100 4000"))
                == .send(frame("18 02 0800 0000 0000 0000 0200")))
        #expect(machine.frameReceived(hex("06 03 0400 4000 4100")) == .send(frame("01 03 0600 0200 4000 4100")))
        #expect(machine.frameReceived(hex("0a 04 0200 0200")) == .send(frame("01 04 0200 0000")))
        #expect(machine.frameReceived(hex("77 05 0000")) == .send(frame("01 05 0200 0000")))
        // A peripheral's request at a peripheral.
        var peripheral = SignallingStateMachine(role: .peripheral)
        #expect(
            peripheral.frameReceived(hex("12 05 0800 0c00 1800 0400 c800")) == .send(frame("01 05 0200 0000")))
    }

    @Test func `answers to nothing are not answered`() {
        var machine = SignallingStateMachine(role: .central)
        for payload in ["01 01 0200 0000", "13 01 0200 0000", "15 01 0a00 0000 0000 0000 0000 0000", "03 01 0000"] {
            #expect(machine.frameReceived(hex(payload)) == .nothing)
        }
        #expect(machine.frameReceived([]) == .nothing)
        #expect(machine.frameReceived(hex("12 00 0800 0c00 1800 0400 c800")) == .nothing)
        #expect(machine.faults == 6)
        // Cut: rejected, for it has an identifier.
        #expect(machine.frameReceived(hex("12 05 0800 0c")) == .send(frame("01 05 0200 0000")))
    }

    @Test func `the peripheral asks, and waits for the answer to this request`() {
        var machine = SignallingStateMachine(role: .peripheral)
        #expect(machine.updateRequested(.relaxed, now: at(0)) == .send(frame("12 01 0800 0c00 1800 0000 f401")))
        #expect(machine.updateRequested(.relaxed, now: at(0)) == .refuse)
        #expect(machine.frameReceived(hex("13 02 0200 0000")) == .nothing)
        #expect(machine.frameReceived(hex("13 01 0200 0000")) == .finishUpdate(isAccepted: true))
        _ = machine.updateRequested(.relaxed, now: at(1))
        #expect(machine.frameReceived(hex("01 02 0200 0000")) == .finishUpdate(isAccepted: false))
        _ = machine.updateRequested(.relaxed, now: at(2))
        #expect(machine.deadlineReached(now: at(31)) == .nothing)
        #expect(machine.deadlineReached(now: at(32)) == .finishUpdate(isAccepted: false))
        _ = machine.updateRequested(.relaxed, now: at(40))
        #expect(machine.linkEnded() == .finishUpdate(isAccepted: false))
        #expect(machine.linkEnded() == .nothing)
        #expect(machine.nextDeadline == nil)
        var central = SignallingStateMachine(role: .central)
        #expect(central.updateRequested(.relaxed, now: at(0)) == .refuse)
    }

    @Test func `packets read back as they were written`() {
        let contents: [SignallingPacket.Content] = [
            .reject(.notUnderstood, data: []), .disconnectionRequest(destination: 0x40, source: 0x41),
            .parameterUpdateRequest(.fast), .parameterUpdateResponse(isAccepted: true),
            .parameterUpdateResponse(isAccepted: false),
        ]
        for content in contents {
            let packet = SignallingPacket(identifier: 7, content: content)
            #expect((try? SignallingPacket.decode(packet.bytes.span.bytes)) == packet)
            DecoderVerifier { try SignallingPacket.decode($0) }.verify(packet.bytes)
        }
    }
}
