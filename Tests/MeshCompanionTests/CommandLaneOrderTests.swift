// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTestSupport
import Testing

/// Answers of the host's own, commands that make the radio go away, and commands that could not be sent.
struct CommandLaneOrderTests {
    typealias Lane = CommandLaneStateMachine
    typealias Base = CommandLaneTests

    static let refusal = Data([0x01, 0x01])
    static let reboot = Data([0x13]) + Data("reboot".utf8)

    // MARK: Order

    @Test func `an answer of the host's own is given at once when nothing is before it`() {
        var lane = Base.open()
        #expect(lane.answerReceived(Self.refusal, for: 1) == .answerNow)
        Base.submit(&lane, Base.getTime, from: 2)
        _ = lane.nextStep(now: .zero)
        #expect(lane.answerReceived(Self.refusal, for: 1) == .answerNow)
    }

    @Test func `an answer of the host's own does not overtake replies`() {
        var lane = Base.open()
        Base.submit(&lane, Base.getBattery, from: 1)
        #expect(lane.answerReceived(Self.refusal, for: 1) == .queued)
        Base.submit(&lane, Base.getTime, from: 1)
        #expect(lane.answerReceived(Self.refusal, for: 1) == .queued)
        #expect(lane.nextStep(now: .zero) == .send(Base.getBattery, from: 1))
        #expect(lane.nextStep(now: .zero) == .wait)
        #expect(lane.frameReceived(Base.battery, now: .zero) == .reply(to: 1, isLast: true))
        #expect(lane.nextStep(now: .zero) == .answer(Self.refusal, to: 1))
        #expect(lane.nextStep(now: .zero) == .send(Base.getTime, from: 1))
        #expect(lane.nextStep(now: .zero) == .wait)
        #expect(lane.isAwaited(by: 1))
        #expect(lane.frameReceived(Base.time, now: .zero) == .reply(to: 1, isLast: true))
        #expect(lane.nextStep(now: .zero) == .answer(Self.refusal, to: 1))
        #expect(lane.nextStep(now: .zero) == .wait)
        #expect(!lane.isAwaited(by: 1))
    }

    @Test func `an answer of the host's own comes right after a timeout, before the fence`() {
        var lane = Base.open()
        Base.submit(&lane, Base.getBattery, from: 1)
        _ = lane.nextStep(now: .zero)
        #expect(lane.answerReceived(Self.refusal, for: 1) == .queued)
        #expect(lane.deadlineReached(now: .seconds(5)) == .timedOut(1))
        #expect(lane.nextStep(now: .seconds(5)) == .answer(Self.refusal, to: 1))
        #expect(lane.nextStep(now: .seconds(5)) == .wait)
    }

    @Test func `a lost link owes answers in their order too`() {
        var lane = Base.open()
        Base.submit(&lane, Base.getBattery, from: 1)
        _ = lane.nextStep(now: .zero)
        _ = lane.answerReceived(Self.refusal, for: 1)
        Base.submit(&lane, Base.getBattery, from: 1)
        #expect(lane.linkLost() == [.error(to: 1), .answer(Self.refusal, to: 1), .error(to: 1)])
    }

    @Test func `whoever leaves gets no answers either`() {
        var lane = Base.open()
        Base.submit(&lane, Base.getBattery, from: 1)
        _ = lane.nextStep(now: .zero)
        _ = lane.answerReceived(Self.refusal, for: 1)
        lane.requesterLeft(1)
        #expect(lane.frameReceived(Base.battery, now: .zero) == .orphan(isLast: true))
        #expect(lane.nextStep(now: .zero) == .wait)
    }

    @Test(arguments: 0..<300)
    func `whatever is pipelined, each requester gets its answers in its order`(_ seed: Int) {
        var random = SplitMix(state: UInt64(seed))
        var lane = Base.open()
        var now = Duration.zero
        var number: UInt8 = 0
        // What each requester has asked and not got: the number of a local answer, or 0 for a command.
        var awaited: [LaneRequester: [UInt8]] = [:]
        func got(_ value: UInt8, _ requester: LaneRequester) {
            #expect(awaited[requester]?.first == value, "seed \(seed)")
            awaited[requester]?.removeFirst()
        }
        func pump() {
            while true {
                switch lane.nextStep(now: now) {
                case .wait: return
                case .answer(let answer, let requester): got(answer.last!, requester)
                case .send: break
                }
            }
        }
        for _ in 0..<600 {
            now += .milliseconds(Int64(random.next() % 400))
            let requester = LaneRequester(client: 1 + random.next() % 3)
            switch random.next() % 8 {
            case 0, 1:
                if Base.submit(&lane, Base.getTime, from: requester) == .queued {
                    awaited[requester, default: []].append(0)
                }
            case 2, 3:
                number = number == 255 ? 1 : number + 1
                awaited[requester, default: []].append(number)
                if lane.answerReceived(Data([1, number]), for: requester) == .answerNow { got(number, requester) }
            case 4, 5:
                if case .reply(let asker, _) = lane.frameReceived(Base.time, now: now) { got(0, asker) }
            case 6:
                switch lane.deadlineReached(now: now) {
                case .timedOut(let asker?): got(0, asker)
                case .linkDead:
                    for owed in lane.linkLost() {
                        switch owed {
                        case .error(let asker): got(0, asker)
                        case .answer(let answer, let asker): got(answer.last!, asker)
                        }
                    }
                    lane.linkReady()
                default: break
                }
            default:
                if let asker = lane.commandNotSent(lane.sendNumber, mayHaveGone: random.next() % 2 == 0, now: now) {
                    got(0, asker)
                }
            }
            pump()
            for (requester, waiting) in awaited { #expect(lane.isAwaited(by: requester) == !waiting.isEmpty) }
        }
    }

    // MARK: Commands that make the radio go away

    @Test func `the answer to REBOOT goes to who asked for it`() {
        var lane = Base.open()
        Base.submit(&lane, Self.reboot, from: 1)
        Base.submit(&lane, Base.getTime, from: 2)
        #expect(lane.nextStep(now: .zero) == .send(Self.reboot, from: 1))
        #expect(lane.nextStep(now: .zero) == .wait)
        #expect(lane.frameReceived(Base.error, now: .zero) == .reply(to: 1, isLast: true))
        #expect(lane.nextStep(now: .zero) == .send(Base.getTime, from: 2))
    }

    @Test func `a radio that reboots owes nothing, and its late answer goes to nobody`() {
        var lane = Base.open()
        Base.submit(&lane, Self.reboot, from: 1)
        Base.submit(&lane, Base.getTime, from: 2)
        _ = lane.nextStep(now: .zero)
        #expect(lane.deadlineReached(now: .seconds(2)) == .departed(1))
        #expect(lane.nextStep(now: .seconds(2)) == .wait)
        #expect(lane.frameReceived(Base.ok, now: .seconds(2)) == .late)
        #expect(lane.deadlineReached(now: .seconds(3)) == .sendFence(Base.getTime))
        #expect(lane.frameReceived(Base.error, now: .seconds(3)) == .late)
        #expect(lane.frameReceived(Base.time, now: .seconds(3)) == .fenceAnswered)
        #expect(lane.nextStep(now: .seconds(3)) == .send(Base.getTime, from: 2))
    }

    @Test func `a link that ends after REBOOT is no error to its asker`() {
        var lane = Base.open()
        Base.submit(&lane, Self.reboot, from: 1)
        Base.submit(&lane, Base.getTime, from: 2)
        _ = lane.nextStep(now: .zero)
        #expect(lane.linkLost() == [.error(to: 2)])
    }

    @Test func `reboots do not pile up on a link that takes nothing`() {
        var lane = Base.open()
        for _ in 0..<50 { Base.submit(&lane, Self.reboot, from: 1) }
        var now = Duration.zero
        var sends = 0
        while true {
            if case .send = lane.nextStep(now: now) { sends += 1 }
            guard let deadline = lane.nextDeadline else { break }
            now = deadline
            if case .sendFence = lane.deadlineReached(now: now) { sends += 1 }
        }
        #expect(sends == 3)
    }

    // MARK: Commands that could not be sent

    @Test func `a command that could not be sent ends at once, and the next one goes`() {
        var lane = Base.open()
        Base.submit(&lane, Base.getTime, from: 1)
        Base.submit(&lane, Base.getBattery, from: 2)
        _ = lane.nextStep(now: .zero)
        #expect(lane.commandNotSent(lane.sendNumber, mayHaveGone: false, now: .zero) == 1)
        #expect(lane.nextStep(now: .zero) == .send(Base.getBattery, from: 2))
    }

    @Test func `a command that may have gone in spite of its error is fenced off`() {
        var lane = Base.open()
        Base.submit(&lane, Base.getTime, from: 1)
        Base.submit(&lane, Base.getBattery, from: 2)
        _ = lane.nextStep(now: .zero)
        #expect(lane.commandNotSent(lane.sendNumber, mayHaveGone: true, now: .zero) == 1)
        #expect(lane.nextStep(now: .zero) == .wait)
        #expect(lane.deadlineReached(now: .milliseconds(100)) == .sendFence(Base.getBattery))
    }

    @Test func `the failure of an earlier send does not end the command in flight`() {
        var lane = Base.open()
        Base.submit(&lane, Base.getTime, from: 1)
        Base.submit(&lane, Base.getTime, from: 2)
        _ = lane.nextStep(now: .zero)
        let first = lane.sendNumber
        _ = lane.frameReceived(Base.time, now: .zero)
        #expect(lane.commandNotSent(first, mayHaveGone: false, now: .zero) == nil)
        _ = lane.nextStep(now: .zero)
        #expect(lane.commandNotSent(first, mayHaveGone: false, now: .zero) == nil)
        #expect(lane.frameReceived(Base.time, now: .zero) == .reply(to: 2, isLast: true))
    }
}
