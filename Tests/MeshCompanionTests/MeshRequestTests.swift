// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTestSupport
import Testing

/// The radio's one pending mesh request, in virtual time. Layouts: companion-protocol §1.5 to §1.7.
struct MeshRequestTests {
    typealias Machine = MeshRequestStateMachine

    static let node = Data([0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF])
    static let key = node + Data(repeating: 7, count: 26)
    static let otherKey = Data(repeating: 9, count: 32)

    static let login = Data([26]) + key + Data("secret".utf8)
    static let status = Data([27]) + key
    static let telemetry = Data([39, 0, 0, 0]) + key
    static let binary = Data([50]) + key + Data([5, 0, 0])
    static let anonymous = Data([57]) + key + Data([2, 0])
    static let path = Data([52, 0]) + key
    static let requests = [login, status, telemetry, binary, anonymous, path]

    /// R6 of the reference, with this tag: flood, 5000 ms.
    static func sent(tag: [UInt8] = [0xDE, 0xAD, 0xBE, 0xEF], timeout: UInt32 = 5_000) -> Data {
        Data([6, 1] + tag) + withUnsafeBytes(of: timeout.littleEndian) { Data($0) }
    }

    static func push(_ code: UInt8, _ key: Data, _ rest: [UInt8] = []) -> Data {
        Data([code, 0]) + key.prefix(6) + Data(rest)
    }

    static func response(tag: [UInt8] = [0xDE, 0xAD, 0xBE, 0xEF]) -> Data { Data([0x8C, 0] + tag + [1, 2]) }

    /// The answer to each of ``requests``.
    static let answers = [
        push(0x85, node), push(0x87, node), push(0x8B, node), response(), response(), push(0x8D, node),
    ]

    static func waiting(for command: Data, from requester: LaneRequester = 1, receipt: Data = sent()) -> Machine {
        var machine = Machine()
        machine.requestSent(command, from: requester, now: .zero)
        machine.receiptReceived(receipt, now: .zero)
        return machine
    }

    @Test func `six commands occupy the radio, and no others`() {
        for request in Self.requests { #expect(Machine.isMeshRequest(request)) }
        #expect(!Machine.isMeshRequest(Data([39, 0, 0, 0])), "the radio's own telemetry")
        #expect(!Machine.isMeshRequest(Data([36]) + Data(repeating: 1, count: 20)), "a trace")
        #expect(!Machine.isMeshRequest(Data()))
        for code in UInt8.min...UInt8.max where ![26, 27, 39, 50, 52, 57].contains(code) {
            #expect(!Machine.isMeshRequest(Data([code]) + Data(repeating: 0, count: 60)))
        }
    }

    @Test func `a request too short for the firmware occupies nothing`() {
        for request in Self.requests.prefix(3) { #expect(!Machine.isMeshRequest(request.prefix(32))) }
    }

    @Test(arguments: 0..<6) func `an answer goes to its requester and frees the lane`(_ index: Int) {
        var machine = Machine()
        #expect(machine.isFree)
        machine.requestSent(Self.requests[index], from: 3, now: .zero)
        #expect(!machine.isFree)
        machine.receiptReceived(Self.sent(), now: .zero)
        #expect(!machine.isFree)
        #expect(machine.pushReceived(Self.answers[index], now: .seconds(1)) == .answer(to: 3))
        #expect(machine.isFree)
        #expect(machine.nextDeadline == nil)
    }

    @Test func `a failed login is an answer too`() {
        var machine = Self.waiting(for: Self.login)
        #expect(machine.pushReceived(Self.push(0x86, Self.node), now: .zero) == .answer(to: 1))
    }

    @Test func `the long and the legacy form of a login are both answers`() {
        // P4 and P5 of the reference.
        for push in [
            Data([0x85, 0, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF]),
            Data([0x85, 1, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF, 0x60, 0x5D, 0x5A, 0x6A, 3, 2]),
        ] {
            var machine = Self.waiting(for: Self.login)
            #expect(machine.pushReceived(push, now: .zero) == .answer(to: 1))
        }
    }

    @Test func `what names another node, another tag or another kind is no answer`() {
        for (index, request) in Self.requests.enumerated() {
            var machine = Self.waiting(for: request)
            let strange = [
                Self.response(tag: [1, 2, 3, 4]), Self.push(0x80, Self.node), Data(), Data([0x8C]), Data([0x87, 0, 1]),
            ]
            let others = [0x85, 0x87, 0x8B, 0x8D].map { Self.push($0, Self.otherKey) }
            for push in strange + others + Self.answers.filter({ $0.first != Self.answers[index].first }) {
                #expect(machine.pushReceived(push, now: .zero) == .notMine)
            }
            #expect(!machine.isFree)
        }
    }

    @Test func `an error frees the lane`() {
        var machine = Self.waiting(for: Self.status, receipt: Data([1, 2]))
        #expect(machine.isFree)
        #expect(machine.pushReceived(Self.push(0x87, Self.node), now: .zero) == .notMine)
    }

    @Test func `an answer is waited for as long as the receipt says and a little more`() {
        var machine = Self.waiting(for: Self.status, receipt: Self.sent(timeout: 5_000))
        #expect(machine.nextDeadline == .milliseconds(6_500))
        #expect(machine.deadlineReached(now: .milliseconds(6_499)) == .none)
        #expect(machine.deadlineReached(now: .milliseconds(6_500)) == .expired(1))
        #expect(machine.isFree)
        #expect(machine.deadlineReached(now: .milliseconds(6_500)) == .none)
    }

    @Test func `a receipt that does not tell, or tells too much, has a limit`() {
        let configuration = MeshRequestConfiguration()
        for (receipt, limit) in [
            (Self.sent(timeout: 0), configuration.fallback), (Data([6]), configuration.fallback),
            (Data([0]), configuration.fallback), (Self.sent(timeout: .max), configuration.longest),
        ] {
            #expect(Self.waiting(for: Self.status, receipt: receipt).nextDeadline == limit)
        }
    }

    @Test func `a late answer still finds its requester, for a while`() {
        for time in [59, 60] {
            var machine = Self.waiting(for: Self.status, receipt: Self.sent(timeout: 0))
            _ = machine.deadlineReached(now: .seconds(15))
            let action = machine.pushReceived(Self.push(0x87, Self.node), now: .seconds(15 + time))
            #expect(action == (time == 59 ? .late(to: 1) : .notMine))
        }
    }

    @Test func `a late answer does not end the next request`() {
        var machine = Self.waiting(for: Self.binary, receipt: Self.sent(tag: [1, 1, 1, 1]))
        _ = machine.deadlineReached(now: .seconds(10))
        machine.requestSent(Self.binary, from: 2, now: .seconds(10))
        #expect(machine.pushReceived(Self.response(tag: [1, 1, 1, 1]), now: .seconds(10)) == .late(to: 1))
        machine.receiptReceived(Self.sent(tag: [2, 2, 2, 2]), now: .seconds(10))
        #expect(machine.pushReceived(Self.response(tag: [1, 1, 1, 1]), now: .seconds(10)) == .late(to: 1))
        #expect(!machine.isFree)
        #expect(machine.pushReceived(Self.response(tag: [2, 2, 2, 2]), now: .seconds(10)) == .answer(to: 2))
    }

    @Test func `what comes before the receipt belongs to the request before, if it can`() {
        var machine = Self.waiting(for: Self.login)
        _ = machine.deadlineReached(now: .seconds(10))
        machine.requestSent(Self.login, from: 2, now: .seconds(10))
        #expect(machine.pushReceived(Self.push(0x86, Self.node), now: .seconds(10)) == .late(to: 1))
        machine.receiptReceived(Self.sent(), now: .seconds(10))
        #expect(machine.pushReceived(Self.push(0x85, Self.node), now: .seconds(11)) == .answer(to: 2))
    }

    @Test(arguments: 0..<6) func `an answer may come before its receipt`(_ index: Int) {
        var machine = Machine()
        machine.requestSent(Self.requests[index], from: 1, now: .zero)
        #expect(machine.pushReceived(Self.answers[index], now: .zero) == .answer(to: 1))
        #expect(!machine.isFree, "the command still awaits its receipt")
        machine.receiptReceived(Self.sent(), now: .zero)
        #expect(machine.isFree)
    }

    @Test func `an early answer with another tag than the receipt's was none`() {
        var machine = Machine()
        machine.requestSent(Self.binary, from: 1, now: .zero)
        #expect(machine.pushReceived(Self.response(tag: [1, 1, 1, 1]), now: .zero) == .answer(to: 1))
        machine.receiptReceived(Self.sent(tag: [2, 2, 2, 2]), now: .zero)
        #expect(!machine.isFree)
        #expect(machine.pushReceived(Self.response(tag: [2, 2, 2, 2]), now: .zero) == .answer(to: 1))
        #expect(machine.isFree)
    }

    @Test func `an answer that comes twice is late the second time`() {
        var machine = Self.waiting(for: Self.status)
        #expect(machine.pushReceived(Self.push(0x87, Self.node), now: .zero) == .answer(to: 1))
        #expect(machine.pushReceived(Self.push(0x87, Self.node), now: .zero) == .late(to: 1))
    }

    @Test func `the radio stays occupied when the requester leaves`() {
        var machine = Self.waiting(for: Self.status)
        machine.requesterLeft(2)
        machine.requesterLeft(1)
        #expect(!machine.isFree)
        #expect(machine.pushReceived(Self.push(0x87, Self.node), now: .zero) == .orphan)
        #expect(machine.isFree)
        #expect(machine.pushReceived(Self.push(0x87, Self.node), now: .zero) == .orphan)
    }

    @Test func `a requester that left is not told of the end`() {
        var machine = Machine()
        machine.requestSent(Self.status, from: 1, now: .zero)
        machine.requesterLeft(1)
        machine.receiptReceived(Self.sent(), now: .zero)
        #expect(machine.deadlineReached(now: .seconds(7)) == .expired(nil))
    }

    @Test func `a request without a receipt frees the lane, and may be answered late`() {
        var machine = Machine()
        machine.requestSent(Self.status, from: 1, now: .zero)
        machine.requestFailed(now: .seconds(5))
        #expect(machine.isFree)
        #expect(machine.pushReceived(Self.push(0x87, Self.node), now: .seconds(6)) == .late(to: 1))
    }

    @Test func `a driver that never tells of a receipt does not block the lane for ever`() {
        var machine = Machine()
        machine.requestSent(Self.status, from: 1, now: .zero)
        #expect(machine.deadlineReached(now: .seconds(120)) == .expired(1))
        #expect(machine.isFree)
    }

    @Test func `a receipt that belongs to nothing is passed over`() {
        var machine = Machine()
        machine.receiptReceived(Self.sent(), now: .zero)
        machine.requestFailed(now: .zero)
        #expect(machine.isFree)
    }

    @Test func `a lost link forgets everything`() {
        var machine = Self.waiting(for: Self.status)
        machine.linkLost()
        #expect(machine.isFree)
        #expect(machine.pushReceived(Self.push(0x87, Self.node), now: .zero) == .notMine)
    }

    @Test func `no more than the newest requests are remembered`() {
        var machine = Machine()
        for number in 0..<UInt8(Machine.lateLimit + 1) {
            machine.requestSent(Self.binary, from: 1, now: .zero)
            machine.receiptReceived(Self.sent(tag: [number, 0, 0, 0]), now: .zero)
            _ = machine.deadlineReached(now: .seconds(7))
        }
        #expect(machine.pushReceived(Self.response(tag: [0, 0, 0, 0]), now: .seconds(8)) == .notMine)
        #expect(machine.pushReceived(Self.response(tag: [1, 0, 0, 0]), now: .seconds(8)) == .late(to: 1))
    }

    /// Whatever happens, the machine is free again by its deadline, and tells nobody who has left.
    @Test func `random events never leave the radio occupied`() {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix(state: seed)
        var machine = Machine()
        var now = Duration.zero
        var present: Set<LaneRequester> = []
        func check(_ requester: LaneRequester?) {
            guard let requester else { return }
            #expect(present.contains(requester), "seed \(seed)")
        }
        for _ in 0..<20_000 {
            now += .milliseconds(Int.random(in: 0...3_000, using: &random))
            switch Int.random(in: 0...6, using: &random) {
            case 0 where machine.isFree:
                let requester = LaneRequester(client: .random(in: 1...4, using: &random))
                present.insert(requester)
                machine.requestSent(
                    Self.requests.randomElement(using: &random) ?? Self.status, from: requester, now: now)
            case 1:
                let receipts = [Self.sent(), Self.sent(timeout: 0), Data([1, 2]), Data([6]), Data()]
                machine.receiptReceived(receipts.randomElement(using: &random) ?? Data(), now: now)
            case 2: machine.requestFailed(now: now)
            case 3:
                switch machine.pushReceived(Self.answers.randomElement(using: &random) ?? Data(), now: now) {
                case .answer(let requester), .late(let requester): check(requester)
                case .orphan, .notMine: break
                }
            case 4:
                let requester = LaneRequester(client: .random(in: 1...4, using: &random))
                present.remove(requester)
                machine.requesterLeft(requester)
            default:
                if case .expired(let requester) = machine.deadlineReached(now: now) { check(requester) }
            }
            #expect(machine.isFree == (machine.nextDeadline == nil), "seed \(seed)")
            if let deadline = machine.nextDeadline { #expect(deadline <= now + .seconds(120), "seed \(seed)") }
        }
    }
}
