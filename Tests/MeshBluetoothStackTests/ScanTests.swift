// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshWire
import Testing

struct ScanTests {
    private func controller(_ family: ControllerDescriptor.CommandFamily = .legacy) -> ControllerDescriptor {
        var controller = ControllerDescriptor()
        controller.family = family
        controller.ownAddress = DeviceAddress(0xC000_0000_0001, .random)
        return controller
    }

    private let parameters = HCICommand.setScanParameters(
        isActive: true, interval: 96, window: 96, ownAddressKind: .random)

    @Test func `scanning begins and ends`() {
        var machine = ScanStateMachine(controller())
        #expect(machine.startRequested() == .send(parameters))
        #expect(machine.commandFinished(.setScanParameters, .completed([])) == .send(.setScanEnable(true)))
        #expect(machine.commandFinished(.setScanEnable, .completed([])) == .began)
        #expect(machine.startRequested() == .began)
        #expect(machine.stopRequested() == .send(.setScanEnable(false)))
        #expect(machine.isActive == true)
        #expect(machine.commandFinished(.setScanEnable, .completed([])) == .ended)
        #expect(machine.isActive == false)
        #expect(machine.stopRequested() == .nothing)
    }

    @Test func `the extended family has commands of its own`() {
        var machine = ScanStateMachine(controller(.extended))
        let parameters = HCICommand.setExtendedScanParameters(
            isActive: true, interval: 96, window: 96, ownAddressKind: .random)
        #expect(machine.startRequested() == .send(parameters))
        #expect(
            machine.commandFinished(.setExtendedScanParameters, .completed([])) == .send(.setExtendedScanEnable(true)))
        #expect(machine.commandFinished(.setScanEnable, .completed([])) == .nothing)
        #expect(machine.commandFinished(.setExtendedScanEnable, .completed([])) == .began)
    }

    @Test func `minds that change meanwhile`() {
        var machine = ScanStateMachine(controller())
        _ = machine.startRequested()
        #expect(machine.stopRequested() == .nothing)
        #expect(machine.commandFinished(.setScanParameters, .completed([])) == .ended)
        // Stopped while it is switched on.
        _ = machine.startRequested()
        _ = machine.commandFinished(.setScanParameters, .completed([]))
        #expect(machine.stopRequested() == .nothing)
        #expect(machine.commandFinished(.setScanEnable, .completed([])) == .send(.setScanEnable(false)))
        // And wanted again while it is switched off, passively.
        var passive = ScanStateMachine.Configuration()
        passive.isActive = false
        #expect(machine.startRequested(passive) == .nothing)
        let next = HCICommand.setScanParameters(isActive: false, interval: 96, window: 96, ownAddressKind: .random)
        #expect(machine.commandFinished(.setScanEnable, .completed([])) == .send(next))
        _ = machine.commandFinished(.setScanParameters, .completed([]))
        #expect(machine.commandFinished(.setScanEnable, .completed([])) == .began)
        // Other parameters need it off.
        #expect(machine.startRequested() == .send(.setScanEnable(false)))
        #expect(machine.commandFinished(.setScanEnable, .refused(.commandDisallowed)) == .send(parameters))
    }

    @Test func `refusals and the end of the controller`() {
        var machine = ScanStateMachine(controller())
        _ = machine.startRequested()
        #expect(
            machine.commandFinished(.setScanParameters, .refused(.commandDisallowed)) == .failed(.commandDisallowed))
        #expect(machine.isActive == false)
        _ = machine.startRequested()
        #expect(machine.commandFinished(.setScanParameters, .lost) == .ended)
        _ = machine.startRequested()
        #expect(machine.controllerLost() == .ended)
        #expect(machine.controllerLost() == .nothing)
    }
}

struct DeviceSightingTests {
    private let address = DeviceAddress(0xC000_0000_0001, .random)

    private func report(
        _ kind: AdvertisingReport.Kind, _ data: String, rssi: Int8? = -60, address: DeviceAddress? = nil
    ) -> AdvertisingReport {
        AdvertisingReport(kind: kind, address: address ?? self.address, rssi: rssi, data: hex(data))
    }

    @Test func `an advertisement and its scan response are one device`() {
        var sightings = DeviceSightings()
        let first = sightings.reportReceived(
            report([.legacy, .connectable, .scannable], "020106 0308 4d43 0303 0f18"), now: at(1))
        #expect(first?.name == "MC")
        let second = sightings.reportReceived(
            report([.legacy, .scannable, .scanResponse], "0609 4d65736821 0303 0d18", rssi: nil), now: at(2))
        #expect(second?.name == "Mesh!")
        #expect(second?.services == [BluetoothUUID(0x180F), BluetoothUUID(0x180D)])
        #expect(second?.isConnectable == true)
        #expect(second?.rssi == -60)
        #expect(second?.lastHeard == at(2))
        // A shortened name does not replace a whole one.
        let third = sightings.reportReceived(report([.legacy], "0308 4d43"), now: at(3))
        #expect(third?.name == "Mesh!")
        #expect(third?.isConnectable == false)
        #expect(sightings[address] == third)
    }

    @Test func `data in several reports is put together`() {
        var sightings = DeviceSightings()
        #expect(sightings.reportReceived(report([.connectable, .incomplete], "0609 4d65"), now: at(0)) == nil)
        #expect(sightings.reportReceived(report([.connectable], "736821"), now: at(0))?.name == "Mesh!")
        // Without an end there is a limit.
        var count = 0
        let part = String(repeating: "00", count: 200)
        while sightings.reportReceived(report([.incomplete], part), now: at(0)) == nil, count < 100 { count += 1 }
        #expect(count == 8)
    }

    @Test func `the device that was not heard for longest is forgotten`() {
        var sightings = DeviceSightings(limit: 10)
        for number in 0..<30 {
            let address = DeviceAddress(UInt64(number), .public)
            _ = sightings.reportReceived(report([.legacy], "", address: address), now: at(Double(number)))
        }
        #expect(Set(sightings.all.map(\.address.value)) == Set(20..<30))
        sightings.removeAll()
        #expect(sightings.all.isEmpty)
    }
}

struct AdvertisingTests {
    private func controller(_ family: ControllerDescriptor.CommandFamily) -> ControllerDescriptor {
        var controller = ControllerDescriptor()
        controller.family = family
        controller.ownAddress = DeviceAddress(0xC000_0000_0001, .random)
        return controller
    }

    private let wanted = AdvertisingStateMachine.Configuration(data: [2, 1, 6], scanResponse: [])

    /// Answers every command; returns what was sent, and the action that was none.
    private func run(
        _ machine: inout AdvertisingStateMachine, _ first: AdvertisingStateMachine.Action
    ) -> (sent: [HCIOpcode], end: AdvertisingStateMachine.Action) {
        var sent: [HCIOpcode] = []
        var action = first
        while case .send(let command) = action {
            sent.append(command.opcode)
            action = machine.commandFinished(command.opcode, .completed([]), now: at(0))
        }
        return (sent, action)
    }

    @Test func `both families`() {
        var legacy = AdvertisingStateMachine(controller(.legacy))
        let first = run(&legacy, legacy.startRequested(wanted))
        #expect(
            first.sent == [
                .setAdvertisingParameters, .setAdvertisingData, .setScanResponseData, .setAdvertisingEnable,
            ])
        #expect(first.end == .began)
        let stop = run(&legacy, legacy.stopRequested())
        #expect(stop.sent == [.setAdvertisingEnable] && stop.end == .ended)
        var extended = AdvertisingStateMachine(controller(.extended))
        let second = run(&extended, extended.startRequested(wanted))
        #expect(
            second.sent == [
                .setExtendedAdvertisingParameters, .setAdvertisingSetRandomAddress, .setExtendedAdvertisingData,
                .setExtendedScanResponseData, .setExtendedAdvertisingEnable,
            ])
        #expect(second.end == .began)
    }

    @Test func `after a link it is seen again within a second (R35)`() {
        var machine = AdvertisingStateMachine(controller(.legacy))
        _ = run(&machine, machine.startRequested(wanted))
        #expect(machine.advertisingEnded(now: at(5)) == .nothing)
        #expect(machine.nextDeadline == at(6))
        #expect(run(&machine, machine.linkEnded()).end == .began)
        // A controller that can do both advertises beside the link; another refuses, and is asked again.
        _ = machine.advertisingEnded(now: at(10))
        #expect(machine.deadlineReached(now: at(10.9)) == .nothing)
        guard case .send(let command) = machine.deadlineReached(now: at(11)) else {
            Issue.record("nothing is tried")
            return
        }
        #expect(machine.commandFinished(command.opcode, .refused(.commandDisallowed), now: at(11)) == .nothing)
        #expect(machine.nextDeadline == at(12))
        #expect(run(&machine, machine.linkEnded()).end == .began)
    }

    @Test func `minds that change meanwhile`() {
        var machine = AdvertisingStateMachine(controller(.legacy))
        let action = machine.startRequested(wanted)
        #expect(machine.stopRequested() == .nothing)
        let stopped = run(&machine, action)
        #expect(stopped.end == .ended)
        #expect(!stopped.sent.contains(.setAdvertisingEnable))
        _ = run(&machine, machine.startRequested(wanted))
        let other = AdvertisingStateMachine.Configuration(data: [2, 1, 4], scanResponse: [])
        let changed = run(&machine, machine.startRequested(other))
        #expect(changed.sent.first == .setAdvertisingEnable && changed.sent.last == .setAdvertisingEnable)
        #expect(changed.end == .began)
        #expect(machine.startRequested(other) == .began)
        #expect(machine.controllerLost() == .ended)
        #expect(machine.controllerLost() == .nothing)
        #expect(machine.stopRequested() == .nothing)
    }

    @Test func `a refusal pauses, and stopping ends the pause`() {
        var machine = AdvertisingStateMachine(controller(.legacy))
        _ = machine.startRequested(wanted)
        _ = machine.commandFinished(.setAdvertisingParameters, .refused(.limitedResources), now: at(1))
        #expect(machine.nextDeadline == at(2))
        #expect(machine.stopRequested() == .ended)
        #expect(machine.nextDeadline == nil)
        _ = machine.startRequested(wanted)
        #expect(machine.commandFinished(.setAdvertisingParameters, .lost, now: at(1)) == .ended)
    }
}
