// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport
import Testing

@testable import MeshBluetoothStack

struct LinkTuningTests {
    private typealias Machine = LinkTuningStateMachine
    private static let now = HCIEvent.CurrentParameters(interval: 12, latency: 0, supervisionTimeout: 500)
    /// MeshCore on nRF52 asks for these as soon as it is secured (ble-linux §0).
    private static let radio = ConnectionParameters(
        minimumInterval: 12, maximumInterval: 24, latency: 4, supervisionTimeout: 200)
    private static let granted = ConnectionParameters(
        minimumInterval: 12, maximumInterval: 24, latency: 4, supervisionTimeout: 400)

    private func configuration(interval: UInt16? = nil, allowsTwoMegabit: Bool = true) -> Machine.Configuration {
        var controller = ControllerDescriptor()
        controller.features = [.dataLengthExtension, .twoMegabit]
        controller.maximumDataLength = .maximum
        return .init(controller, allowsTwoMegabit: allowsTwoMegabit, interval: interval)
    }

    private func machine(interval: UInt16? = nil) -> Machine {
        var machine = Machine(role: .central, configuration: configuration(interval: interval))
        _ = machine.linkOpened()
        return machine
    }

    @Test func `features first, then what both sides have`() {
        var machine = Machine(role: .central, configuration: configuration())
        #expect(machine.linkOpened() == [.readRemoteFeatures, .setDataLength(.maximum), .setPHY(.twoMegabit)])
        #expect(machine.linkOpened() == [])
        // The old mode is asked for, too, or the peer could begin the change.
        var slow = Machine(role: .central, configuration: configuration(allowsTwoMegabit: false))
        #expect(slow.linkOpened().last == .setPHY(.oneMegabit))
        // A controller that can nothing is asked for nothing.
        var old = Machine(role: .central, configuration: .init(ControllerDescriptor()))
        #expect(old.linkOpened() == [])
        var peripheral = Machine(role: .peripheral, configuration: configuration())
        #expect(peripheral.linkOpened() == [])
        #expect(peripheral.setUpFinished() == nil)
    }

    @Test func `a link in use is relaxed, once`() {
        var machine = machine()
        #expect(machine.nextDeadline == nil)
        #expect(machine.setUpFinished() == .relaxed)
        #expect(machine.setUpFinished() == nil)
    }

    @Test
    func `what the radio asks for while it is set up is ordered at the end, with a timeout of at least 4 s (R24)`() {
        var machine = machine()
        #expect(machine.parametersRequested(Self.radio, current: Self.now, now: at(1)) == .grant(nil))
        #expect(machine.nextDeadline == at(6))
        #expect(machine.setUpFinished() == Self.granted)
        #expect(machine.nextDeadline == nil)
    }

    @Test func `it does not wait longer than 5 s, and the last word counts`() {
        var machine = machine()
        _ = machine.parametersRequested(.relaxed, current: Self.now, now: at(1))
        _ = machine.parametersRequested(Self.radio, current: Self.now, now: at(5))
        #expect(machine.deadlineReached(now: at(5.9)) == nil)
        #expect(machine.deadlineReached(now: at(6)) == Self.granted)
        #expect(machine.deadlineReached(now: at(7)) == nil)
        // Relaxed ones are not ordered over it.
        #expect(machine.setUpFinished() == nil)
    }

    @Test func `a link in use gets what the radio asks for at once, and nothing where it has it`() {
        var machine = machine()
        _ = machine.setUpFinished()
        #expect(machine.parametersRequested(Self.radio, current: Self.now, now: at(1)) == .grant(Self.granted))
        let current = HCIEvent.CurrentParameters(interval: 24, latency: 4, supervisionTimeout: 400)
        for second in 2..<100 {
            #expect(machine.parametersRequested(Self.radio, current: current, now: at(Double(second))) == .grant(nil))
        }
        #expect(machine.refusals == 0)
    }

    @Test func `a radio that always wants something else is refused, and may try again later`() {
        var machine = machine()
        _ = machine.setUpFinished()
        var orders = 0
        for second in 0..<60 {
            if machine.parametersRequested(Self.radio, current: Self.now, now: at(Double(second))) != .refuse {
                orders += 1
            }
        }
        #expect(orders == 4)
        #expect(machine.refusals == 56)
        #expect(machine.parametersRequested(Self.radio, current: Self.now, now: at(60)) == .grant(Self.granted))
    }

    @Test func `a link layer that asks is answered at once, and keeps what it got`() {
        var machine = machine()
        #expect(machine.linkLayerRequested(Self.radio, now: at(0)) == Self.granted)
        #expect(machine.setUpFinished() == nil)
        for _ in 0..<3 { _ = machine.linkLayerRequested(Self.radio, now: at(1)) }
        #expect(machine.linkLayerRequested(Self.radio, now: at(2)) == nil)
        var invalid = Self.radio
        invalid.maximumInterval = 4000
        #expect(machine.linkLayerRequested(invalid, now: at(70)) == nil)
    }

    @Test func `the interval that the user wants is kept, within what the radio asks for`() {
        var machine = machine(interval: 16)
        let relaxed = machine.setUpFinished()
        #expect(relaxed?.minimumInterval == 16 && relaxed?.maximumInterval == 16)
        var expected = Self.granted
        (expected.minimumInterval, expected.maximumInterval) = (16, 16)
        #expect(machine.parametersRequested(Self.radio, current: Self.now, now: at(1)) == .grant(expected))
        let other = ConnectionParameters(
            minimumInterval: 40, maximumInterval: 80, latency: 0, supervisionTimeout: 400)
        #expect(machine.parametersRequested(other, current: Self.now, now: at(2)) == .refuse)
        // The longest of all needs a longer timeout.
        #expect(configuration(interval: 3200).relaxed.isValid)
    }

    /// Facts in any order: whatever is ordered is valid and keeps the floor; orders are bounded; a passed deadline is gone.
    @Test(arguments: 0..<40) func `any order of facts stays within bounds (R24)`(seed: UInt64) {
        var random = SplitMix(state: seed)
        var machine = Machine(
            role: seed % 4 == 0 ? .peripheral : .central,
            configuration: configuration(interval: seed % 3 == 0 ? 20 : nil))
        var now = Duration.zero
        var orders: [ConnectionParameters] = []
        for _ in 0..<500 {
            now += .milliseconds(Int.random(in: 0...2000, using: &random))
            var wanted = ConnectionParameters(
                minimumInterval: .random(in: 0...60, using: &random),
                maximumInterval: .random(in: 0...100, using: &random), latency: .random(in: 0...8, using: &random),
                supervisionTimeout: .random(in: 0...3200, using: &random))
            if Bool.random(using: &random) { wanted = Self.radio }
            switch Int.random(in: 0..<12, using: &random) {
            case 0: _ = machine.linkOpened()
            case 1: if let order = machine.setUpFinished() { orders.append(order) }
            case 2, 3: if let order = machine.linkLayerRequested(wanted, now: now) { orders.append(order) }
            case 4...6:
                if let order = machine.deadlineReached(now: now) { orders.append(order) }
                if let deadline = machine.nextDeadline { #expect(deadline > now) }
            default:
                if case .grant(let order?) = machine.parametersRequested(wanted, current: Self.now, now: now) {
                    orders.append(order)
                }
            }
        }
        let bounds = ConnectionParameters.supervisionFloor...ConnectionParameters.supervisionCeiling
        #expect(orders.allSatisfy { $0.isValid && bounds.contains($0.supervisionTimeout) })
        // Four a minute, and the two that the set-up ends with.
        #expect(orders.count <= 4 * (Int(now / .seconds(60)) + 1) + 2)
    }
}
