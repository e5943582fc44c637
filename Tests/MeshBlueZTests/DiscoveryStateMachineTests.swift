// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBLE
import MeshTestSupport
import MeshWire
import Testing

@testable import MeshBlueZTransport

struct DiscoveryStateMachineTests {
    private typealias Machine = DiscoveryStateMachine
    private static let uart = Machine.Filter(services: [BluetoothUUID(1)], reportsDuplicates: false)
    private static let other = Machine.Filter(services: [BluetoothUUID(2)], reportsDuplicates: false)
    private static let everything = Machine.Filter(services: [], reportsDuplicates: true)

    /// A search for the serial service that is on since 0.
    private static func searching() -> Machine {
        var machine = Machine()
        _ = machine.adapterChanged(isAvailable: true, now: .zero)
        _ = machine.wishMade(1, uart, now: .zero)
        _ = machine.started(call: 1, now: .zero)
        return machine
    }

    @Test func `one search serves all wishes, and ends with the last`() {
        var machine = Machine()
        expect(machine.adapterChanged(isAvailable: true, now: .zero), is: .nothing)
        expect(machine.wishMade(1, Self.uart, now: .zero), is: .start(Self.uart, call: 1))
        expect(machine.wishMade(2, Self.uart, now: .zero), is: .nothing)
        expect(machine.started(call: 1, now: .zero), is: .nothing)
        expect(machine.isOn, is: true)
        expect(machine.wishEnded(1, now: .zero), is: .nothing)
        expect(machine.wishEnded(2, now: .zero), is: .stop(call: 2))
        expect(machine.wishMade(3, Self.uart, now: .zero), is: .nothing)
        expect(machine.stopped(call: 2, now: .zero), is: .start(Self.uart, call: 3))
        expect(machine.started(call: 3, now: .zero), is: .nothing)
        expect(machine.wishEnded(3, now: .zero), is: .stop(call: 4))
        expect(machine.stopped(call: 4, now: .zero), is: .nothing)
        expect(machine.isIdle && machine.nextDeadline == nil, is: true)
    }

    @Test func `a wish for more begins the search anew, one for less does not`() {
        var machine = Self.searching()
        let both = Self.uart.union(Self.other)
        #expect(both.services.count == 2)
        expect(machine.wishMade(2, Self.other, now: .zero), is: .stop(call: 2))
        expect(machine.stopped(call: 2, now: .zero), is: .start(both, call: 3))
        expect(machine.started(call: 3, now: .zero), is: .nothing)
        expect(machine.wishEnded(2, now: .zero), is: .nothing)
        expect(machine.wishMade(3, Self.everything, now: .zero), is: .stop(call: 4))
        expect(machine.stopped(call: 4, now: .zero), is: .start(Self.everything, call: 5))
    }

    @Test func `a wish that ends while the search begins ends it then`() {
        var machine = Machine()
        _ = machine.adapterChanged(isAvailable: true, now: .zero)
        _ = machine.wishMade(1, Self.uart, now: .zero)
        expect(machine.wishEnded(1, now: .zero), is: .nothing)
        expect(machine.started(call: 1, now: .zero), is: .stop(call: 2))
    }

    @Test func `a wish waits for the adapter and survives it`() {
        var machine = Machine()
        expect(machine.wishMade(1, Self.uart, now: .zero), is: .nothing)
        expect(machine.adapterChanged(isAvailable: true, now: .zero), is: .start(Self.uart, call: 1))
        expect(machine.adapterChanged(isAvailable: false, now: .zero), is: .nothing)
        expect(machine.startFailed(call: 1, .other, mayPowerCycle: true, now: .zero), is: .nothing)
        expect(!machine.isOn && !machine.isIdle, is: true)
        expect(machine.adapterChanged(isAvailable: true, now: .zero), is: .start(Self.uart, call: 2))
        expect(machine.started(call: 1, now: .zero), is: .nothing)
        expect(machine.isOn, is: false)
        _ = machine.started(call: 2, now: .zero)
        expect(machine.isOn, is: true)
    }

    @Test func `while a link is made the search rests`() {
        var machine = Self.searching()
        expect(machine.paused(now: .zero), is: .stop(call: 2))
        expect(machine.paused(now: .zero), is: .nothing)
        expect(machine.stopped(call: 2, now: .zero), is: .nothing)
        expect(machine.resumed(now: .zero), is: .nothing)
        expect(machine.resumed(now: .zero), is: .start(Self.uart, call: 3))
    }

    @Test func `90 s of silence begin the search anew`() {
        var machine = Self.searching()
        expect(machine.nextDeadline, is: .seconds(90))
        machine.heard(now: .seconds(50))
        expect(machine.deadlineReached(now: .seconds(90)), is: .nothing)
        expect(machine.nextDeadline, is: .seconds(140))
        expect(machine.deadlineReached(now: .seconds(140)), is: .stop(call: 2))
        expect(machine.stopped(call: 2, now: .seconds(140)), is: .start(Self.uart, call: 3))
        _ = machine.started(call: 3, now: .seconds(141))
        expect(machine.nextDeadline, is: .seconds(231))
    }

    @Test func `a search that somebody left behind is stopped first`() {
        var machine = Machine()
        _ = machine.adapterChanged(isAvailable: true, now: .zero)
        _ = machine.wishMade(1, Self.uart, now: .zero)
        expect(machine.startFailed(call: 1, .inProgress, mayPowerCycle: false, now: .zero), is: .stop(call: 2))
        expect(machine.stopped(call: 2, now: .zero), is: .nothing)
        expect(machine.nextDeadline, is: .milliseconds(500))
        expect(machine.deadlineReached(now: .milliseconds(500)), is: .start(Self.uart, call: 3))
        _ = machine.started(call: 3, now: .seconds(1))
        expect(machine.isOn, is: true)
    }

    @Test func `one that may have begun is stopped, too`() {
        var machine = Machine()
        _ = machine.adapterChanged(isAvailable: true, now: .zero)
        _ = machine.wishMade(1, Self.uart, now: .zero)
        _ = machine.wishEnded(1, now: .zero)
        expect(machine.startFailed(call: 1, .unknown, mayPowerCycle: true, now: .zero), is: .stop(call: 2))
        expect(machine.stopped(call: 2, now: .zero), is: .nothing)
        expect(machine.started(call: 1, now: .milliseconds(100)), is: .stop(call: 3))
        expect(machine.stopped(call: 3, now: .milliseconds(100)), is: .nothing)
        expect(machine.deadlineReached(now: .seconds(1)), is: .nothing)
        expect(machine.isIdle, is: true)
    }

    @Test func `silence is told at last`() {
        var machine = Machine()
        _ = machine.adapterChanged(isAvailable: true, now: .zero)
        _ = machine.wishMade(1, Self.uart, now: .zero)
        for call in [UInt64(1), 3] {
            expect(
                machine.startFailed(call: call, .unknown, mayPowerCycle: true, now: .zero), is: .stop(call: call + 1))
            expect(machine.stopped(call: call + 1, now: .zero), is: .nothing)
            _ = machine.deadlineReached(now: .seconds(1))
        }
        expect(machine.startFailed(call: 5, .unknown, mayPowerCycle: true, now: .zero), is: .stop(call: 6))
        expect(machine.stopped(call: 6, now: .zero), is: .tellFailure)
        expect(machine.nextDeadline, is: .seconds(10))
    }

    @Test func `one that stays stuck costs a power cycle where that is allowed`() {
        var machine = Machine()
        _ = machine.adapterChanged(isAvailable: true, now: .zero)
        _ = machine.wishMade(1, Self.uart, now: .zero)
        expect(machine.startFailed(call: 1, .inProgress, mayPowerCycle: true, now: .zero), is: .stop(call: 2))
        _ = machine.stopped(call: 2, now: .zero)
        expect(machine.deadlineReached(now: .seconds(1)), is: .start(Self.uart, call: 3))
        expect(machine.startFailed(call: 3, .inProgress, mayPowerCycle: true, now: .seconds(1)), is: .stop(call: 4))
        _ = machine.stopped(call: 4, now: .seconds(1))
        expect(machine.deadlineReached(now: .seconds(2)), is: .start(Self.uart, call: 5))
        expect(
            machine.startFailed(call: 5, .inProgress, mayPowerCycle: true, now: .seconds(2)), is: .powerCycle(call: 6))
        expect(machine.adapterChanged(isAvailable: false, now: .seconds(3)), is: .nothing)
        expect(machine.adapterChanged(isAvailable: true, now: .seconds(4)), is: .nothing)
        expect(machine.powerCycled(call: 6, now: .seconds(4)), is: .start(Self.uart, call: 7))
        // Once is enough: what does not help is not repeated.
        expect(machine.startFailed(call: 7, .inProgress, mayPowerCycle: true, now: .seconds(5)), is: .tellFailure)
    }

    @Test func `else it is told, and tried again now and then`() {
        var machine = Machine()
        _ = machine.adapterChanged(isAvailable: true, now: .zero)
        _ = machine.wishMade(1, Self.uart, now: .zero)
        for call in [UInt64(1), 3] {
            _ = machine.startFailed(call: call, .inProgress, mayPowerCycle: false, now: .zero)
            _ = machine.stopped(call: call + 1, now: .zero)
            _ = machine.deadlineReached(now: .seconds(1))
        }
        expect(machine.startFailed(call: 5, .inProgress, mayPowerCycle: false, now: .seconds(1)), is: .tellFailure)
        expect(machine.nextDeadline, is: .seconds(11))
        expect(machine.deadlineReached(now: .seconds(11)), is: .start(Self.uart, call: 6))
        expect(machine.wishEnded(1, now: .seconds(11)), is: .nothing)
        expect(machine.startFailed(call: 6, .other, mayPowerCycle: false, now: .seconds(11)), is: .tellFailure)
        expect(machine.deadlineReached(now: .seconds(30)), is: .nothing)
        expect(machine.isIdle, is: true)
    }

    @Test func `no order of inputs leaves a search on that nobody wants`() {
        for seed in UInt64(0)..<200 {
            var random = SplitMix(state: seed)
            var machine = Machine()
            var now = Duration.zero
            var wishes: Set<UInt64> = []
            var calls: [(call: UInt64, isStop: Bool)] = []
            func take(_ action: Machine.Action) {
                switch action {
                case .start(_, let call): calls.append((call, false))
                case .stop(let call), .powerCycle(let call): calls.append((call, true))
                case .nothing, .tellFailure: break
                }
            }
            for _ in 0..<60 {
                now += .milliseconds(random.next() % 40_000)
                switch random.next() % 7 {
                case 0:
                    let id = random.next() % 3
                    wishes.insert(id)
                    take(machine.wishMade(id, [Self.uart, Self.other, Self.everything][Int(id)], now: now))
                case 1:
                    let id = random.next() % 3
                    wishes.remove(id)
                    take(machine.wishEnded(id, now: now))
                case 2: take(machine.adapterChanged(isAvailable: random.next() % 3 > 0, now: now))
                case 3: take(machine.deadlineReached(now: now))
                default:
                    if calls.isEmpty { continue }
                    let (call, isStop) = calls.removeFirst()
                    if isStop {
                        take(machine.stopped(call: call, now: now))
                        take(machine.powerCycled(call: call, now: now))
                    } else if random.next() % 3 == 0 {
                        take(
                            machine.startFailed(
                                call: call, [.inProgress, .unknown, .other][Int(random.next() % 3)],
                                mayPowerCycle: random.next() % 2 == 0, now: now))
                    } else {
                        take(machine.started(call: call, now: now))
                    }
                }
            }
            for wish in wishes { take(machine.wishEnded(wish, now: now)) }
            take(machine.adapterChanged(isAvailable: true, now: now))
            for _ in 0..<20 {
                now += .seconds(20)
                take(machine.deadlineReached(now: now))
                guard !calls.isEmpty else { continue }
                let (call, isStop) = calls.removeFirst()
                if isStop {
                    take(machine.stopped(call: call, now: now))
                    take(machine.powerCycled(call: call, now: now))
                } else {
                    take(machine.started(call: call, now: now))
                }
            }
            expect(machine.isIdle && machine.nextDeadline == nil, is: true, "seed \(seed)")
        }
    }
}
