// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTestSupport
import Testing

/// Transactions, priorities, held mesh requests, commands that make the radio go away, and commands that could not be sent.
struct CommandLaneOrderTests {
    typealias Lane = CommandLaneStateMachine
    typealias Base = CommandLaneTests

    static let scope = Data([0x36, 0x00])
    static let login = Data([0x1A]) + Data(repeating: 7, count: 32)
    static let sent = Data([0x06, 0]) + Data(count: 8)
    static let reboot = Data([0x13]) + Data("reboot".utf8)

    static func entry(
        _ frame: Data, after lead: [LaneEntry.Lead] = [], priority: LanePriority = .read, isMeshRequest: Bool = false
    ) -> LaneEntry {
        LaneEntry(
            frame, expecting: CommandSpec.expectation(for: frame), after: lead, priority: priority,
            isMeshRequest: isMeshRequest)
    }

    // MARK: Transactions

    @Test func `nothing comes between the commands of a transaction`() {
        var lane = Base.open()
        let lead = LaneEntry.Lead(Self.scope, expecting: .one(.ok))
        #expect(lane.entryReceived(Self.entry(Base.getTime, after: [lead, lead]), from: 1) == .queued)
        #expect(lane.entryReceived(Self.entry(Base.getBattery, priority: .send), from: 2) == .queued)
        #expect(lane.nextStep(now: .zero) == .send(Base.getBattery, from: 2))
        #expect(lane.frameReceived(Base.battery, now: .zero) == .reply(to: 2, isLast: true))
        #expect(lane.nextStep(now: .zero) == .send(Self.scope, from: 1))
        #expect(lane.entryReceived(Self.entry(Base.getBattery, priority: .send), from: 2) == .queued)
        #expect(lane.frameReceived(Base.ok, now: .zero) == .leadAnswered)
        #expect(!lane.isIdle && lane.isAwaited(by: 1))
        #expect(lane.frameReceived(Base.ok, now: .zero) == .observation)
        #expect(lane.nextStep(now: .zero) == .send(Self.scope, from: 1))
        #expect(lane.commandInFlight == Self.scope)
        #expect(lane.frameReceived(Base.ok, now: .zero) == .leadAnswered)
        #expect(lane.nextStep(now: .zero) == .send(Base.getTime, from: 1))
        #expect(lane.frameReceived(Base.time, now: .zero) == .reply(to: 1, isLast: true))
        #expect(lane.nextStep(now: .zero) == .send(Base.getBattery, from: 2))
    }

    @Test func `a refused lead ends the transaction, if it is needed`() {
        for isRequired in [true, false] {
            var lane = Base.open()
            let lead = LaneEntry.Lead(Self.scope, expecting: .one(.ok), isRequired: isRequired)
            _ = lane.entryReceived(Self.entry(Base.getTime, after: [lead]), from: 1)
            _ = lane.nextStep(now: .zero)
            let action = lane.frameReceived(Base.error, now: .zero)
            #expect(action == (isRequired ? .reply(to: 1, isLast: true) : .leadAnswered))
            #expect(lane.nextStep(now: .zero) == (isRequired ? .wait : .send(Base.getTime, from: 1)))
        }
    }

    @Test func `a lead that is not answered ends the transaction too`() {
        var lane = Base.open()
        _ = lane.entryReceived(
            Self.entry(Base.getTime, after: [.init(Self.scope, expecting: .one(.ok), isRequired: false)]), from: 1)
        _ = lane.nextStep(now: .zero)
        #expect(lane.deadlineReached(now: .seconds(5)) == .timedOut(1))
        #expect(lane.nextStep(now: .seconds(5)) == .wait)
        #expect(lane.deadlineReached(now: .seconds(6)) == .sendFence(Base.getTime))
        #expect(lane.frameReceived(Base.time, now: .seconds(6)) == .fenceAnswered)
        #expect(lane.nextStep(now: .seconds(6)) == .wait)
    }

    @Test func `the rest of a transaction goes with its requester, and with the link`() {
        for between in [true, false] {
            var lane = Base.open()
            let lead = LaneEntry.Lead(Self.scope, expecting: .one(.ok))
            _ = lane.entryReceived(Self.entry(Base.getTime, after: [lead]), from: 1)
            _ = lane.nextStep(now: .zero)
            if between { _ = lane.frameReceived(Base.ok, now: .zero) }
            var other = lane
            #expect(other.linkLost() == [1])
            lane.requesterLeft(1)
            if !between { #expect(lane.frameReceived(Base.ok, now: .zero) == .orphan(isLast: true)) }
            #expect(lane.nextStep(now: .zero) == .wait)
            #expect(lane.isIdle)
        }
    }

    // MARK: Whose turn

    @Test func `sends go before reads, and reads before probes`() {
        var lane = Base.open()
        _ = lane.entryReceived(Self.entry(Base.getTime, priority: .probe), from: 1)
        _ = lane.entryReceived(Self.entry(Base.getBattery, priority: .read), from: 2)
        _ = lane.entryReceived(Self.entry(Self.scope, priority: .send), from: 3)
        #expect(lane.nextStep(now: .zero) == .send(Self.scope, from: 3))
        _ = lane.frameReceived(Base.ok, now: .zero)
        #expect(lane.nextStep(now: .zero) == .send(Base.getBattery, from: 2))
        _ = lane.frameReceived(Base.battery, now: .zero)
        #expect(lane.nextStep(now: .zero) == .send(Base.getTime, from: 1))
    }

    /// Requester 1 has a send for each turn; who gets the first turns, if these wait too.
    static func turns(_ count: Int, beside entries: [(LaneRequester, LanePriority)]) -> [LaneRequester] {
        var lane = Base.open()
        for (requester, priority) in entries {
            _ = lane.entryReceived(entry(Base.getTime, priority: priority), from: requester)
        }
        return (0..<count).map { _ in
            _ = lane.entryReceived(entry(Base.getTime, priority: .send), from: 1)
            guard case .send(_, let requester) = lane.nextStep(now: .zero) else { return 0 }
            _ = lane.frameReceived(Base.time, now: .zero)
            return requester
        }
    }

    @Test func `sends without end let a read through now and then`() {
        #expect(Self.turns(7, beside: [(2, .read)]) == [1, 1, 1, 1, 2, 1, 1])
        #expect(Self.turns(7, beside: [(.host, .read)]) == [1, 1, 1, 1, .host, 1, 1])
    }

    @Test func `of those that were passed over the one that has waited longest is let through`() {
        let turns = Self.turns(15, beside: [(2, .probe), (3, .read), (4, .read)])
        #expect(turns == [1, 1, 1, 1, 2, 1, 1, 1, 1, 3, 1, 1, 1, 1, 4])
    }

    @Test func `a mesh request that has to wait is not let through`() {
        var lane = Base.open()
        _ = lane.entryReceived(Self.entry(Self.login, isMeshRequest: true), from: 2)
        for _ in 0..<20 {
            _ = lane.entryReceived(Self.entry(Base.getTime, priority: .send), from: 1)
            #expect(lane.nextStep(now: .zero, holdingMeshRequests: true) == .send(Base.getTime, from: 1))
            _ = lane.frameReceived(Base.time, now: .zero)
        }
    }

    @Test func `a held mesh request holds up nobody else`() {
        var lane = Base.open()
        _ = lane.entryReceived(Self.entry(Self.login, priority: .send, isMeshRequest: true), from: 1)
        _ = lane.entryReceived(Self.entry(Base.getTime), from: 1)
        _ = lane.entryReceived(Self.entry(Base.getBattery), from: 2)
        #expect(lane.nextStep(now: .zero, holdingMeshRequests: true) == .send(Base.getBattery, from: 2))
        _ = lane.frameReceived(Base.battery, now: .zero)
        #expect(lane.nextStep(now: .zero, holdingMeshRequests: true) == .wait)
        #expect(lane.nextStep(now: .zero) == .send(Self.login, from: 1))
        #expect(lane.frameReceived(Self.sent, now: .zero) == .reply(to: 1, isLast: true))
        #expect(lane.nextStep(now: .zero, holdingMeshRequests: true) == .send(Base.getTime, from: 1))
    }

    @Test(arguments: 0..<300)
    func `whatever is queued, each requester gets as many answers as it has asked`(_ seed: Int) {
        var random = SplitMix(state: UInt64(seed))
        var lane = Base.open()
        var now = Duration.zero
        var awaited: [LaneRequester: Int] = [:]
        func got(_ requester: LaneRequester) {
            #expect(awaited[requester, default: 0] > 0, "seed \(seed)")
            awaited[requester, default: 0] -= 1
        }
        for _ in 0..<600 {
            now += .milliseconds(Int64(random.next() % 400))
            let requester = LaneRequester(client: 1 + random.next() % 3)
            switch random.next() % 8 {
            case 0, 1, 2:
                let lead = (0..<random.next() % 3).map { _ in
                    LaneEntry.Lead(Self.scope, expecting: .one(.ok), isRequired: random.next() % 2 == 0)
                }
                let priority = LanePriority(rawValue: Int(random.next() % 3))!
                let entry = Self.entry(
                    Base.getTime, after: lead, priority: priority, isMeshRequest: random.next() % 2 == 0)
                if lane.entryReceived(entry, from: requester) == .queued { awaited[requester, default: 0] += 1 }
            case 3, 4, 5:
                let frame = lane.commandInFlight == Self.scope && random.next() % 3 > 0 ? Base.ok : Base.time
                let answer = random.next() % 10 == 0 ? Base.error : frame
                if case .reply(let asker, true) = lane.frameReceived(answer, now: now) { got(asker) }
            case 6:
                switch lane.deadlineReached(now: now) {
                case .timedOut(let asker?): got(asker)
                case .linkDead:
                    for asker in lane.linkLost() { got(asker) }
                    lane.linkReady()
                default: break
                }
            default:
                if let asker = lane.commandNotSent(lane.sendNumber, mayHaveGone: random.next() % 2 == 0, now: now) {
                    got(asker)
                }
            }
            _ = lane.nextStep(now: now, holdingMeshRequests: random.next() % 2 == 0)
            for (requester, count) in awaited {
                #expect(lane.isAwaited(by: requester) == (count > 0), "seed \(seed)")
            }
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
        #expect(lane.linkLost() == [2])
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
