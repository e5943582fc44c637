// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTestSupport
import Testing

/// The lane in virtual time. Requesters are numbers.
struct CommandLaneTests {
    typealias Lane = CommandLaneStateMachine

    static let getTime = Data([0x05])
    static let time = Data([0x09, 1, 0, 0, 0])
    static let getBattery = Data([0x14])
    static let battery = Data([0x0C, 0x80, 0])
    static let push = Data([0x88, 0, 0, 1])
    static let ok = Data([0x00])
    static let error = Data([0x01, 2])

    static func open(_ configure: (inout CommandLaneConfiguration) -> Void = { _ in }) -> Lane {
        var configuration = CommandLaneConfiguration()
        configure(&configuration)
        var lane = Lane(configuration: configuration)
        lane.linkReady()
        return lane
    }

    /// Queues a command as an owner's client would.
    @discardableResult
    static func submit(_ lane: inout Lane, _ frame: Data, from requester: LaneRequester) -> Lane.CommandAction {
        guard case .admitted(let expectation) = CommandAdmission.of(frame, role: .owner) else {
            Issue.record("not admitted: \([UInt8](frame))")
            return .refuseQueueFull
        }
        return lane.commandReceived(frame, expecting: expectation, from: requester)
    }

    @Test func `without a link a command is refused at once`() {
        var lane = Lane()
        #expect(Self.submit(&lane, Self.getTime, from: 1) == .refuseLinkAway)
        #expect(lane.nextStep(now: .zero) == .wait)
    }

    @Test func `one command is in flight, and its reply goes to its asker`() {
        var lane = Self.open()
        #expect(Self.submit(&lane, Self.getTime, from: 1) == .queued)
        #expect(Self.submit(&lane, Self.getBattery, from: 2) == .queued)
        #expect(lane.nextStep(now: .zero) == .send(Self.getTime, from: 1))
        #expect(lane.nextStep(now: .zero) == .wait)
        #expect(lane.frameReceived(Self.push, now: .zero) == .push)
        #expect(lane.frameReceived(Self.battery, now: .zero) == .observation)
        #expect(lane.frameReceived(Self.time, now: .zero) == .reply(to: 1, isLast: true))
        #expect(lane.nextStep(now: .zero) == .send(Self.getBattery, from: 2))
        #expect(lane.frameReceived(Self.battery, now: .zero) == .reply(to: 2, isLast: true))
        #expect(lane.nextDeadline == nil)
    }

    @Test func `requesters take turns`() {
        var lane = Self.open()
        for _ in 0..<3 { Self.submit(&lane, Self.getTime, from: 1) }
        Self.submit(&lane, Self.getTime, from: 2)
        var order: [LaneRequester] = []
        while case .send(_, let requester) = lane.nextStep(now: .zero) {
            order.append(requester)
            _ = lane.frameReceived(Self.time, now: .zero)
        }
        #expect(order == [1, 2, 1, 1])
    }

    @Test func `an error ends whatever is in flight`() {
        var lane = Self.open()
        Self.submit(&lane, Self.getTime, from: 1)
        _ = lane.nextStep(now: .zero)
        #expect(lane.frameReceived(Self.error, now: .zero) == .reply(to: 1, isLast: true))
    }

    @Test func `a contact list holds the lane until its end`() {
        var lane = Self.open()
        Self.submit(&lane, Data([0x04]), from: 1)
        Self.submit(&lane, Self.getTime, from: 2)
        _ = lane.nextStep(now: .zero)
        #expect(lane.frameReceived(Data([0x02, 2, 0, 0, 0]), now: .seconds(1)) == .reply(to: 1, isLast: false))
        #expect(lane.nextDeadline == .seconds(6))
        #expect(lane.frameReceived(Data([0x03]) + Data(count: 147), now: .seconds(4)) == .reply(to: 1, isLast: false))
        #expect(lane.nextDeadline == .seconds(9))
        #expect(lane.nextStep(now: .seconds(4)) == .wait)
        #expect(lane.frameReceived(Data([0x04, 0, 0, 0, 0]), now: .seconds(5)) == .reply(to: 1, isLast: true))
        #expect(lane.nextStep(now: .seconds(5)) == .send(Self.getTime, from: 2))
    }

    @Test func `a series without an end makes the link dead, also when its asker has gone`() {
        for isGone in [false, true] {
            var lane = Self.open { $0.seriesLimit = 3 }
            Self.submit(&lane, Data([0x04]), from: 1)
            Self.submit(&lane, Self.getTime, from: 2)
            _ = lane.nextStep(now: .zero)
            if isGone { lane.requesterLeft(1) }
            let row = Data([0x03]) + Data(count: 147)
            for _ in 0..<3 {
                let part = lane.frameReceived(row, now: .zero)
                #expect(part == (isGone ? .orphan(isLast: false) : .reply(to: 1, isLast: false)))
            }
            #expect(lane.frameReceived(row, now: .zero) == .endless(isGone ? nil : 1))
            #expect(lane.frameReceived(row, now: .zero) == .late)
            #expect(lane.nextDeadline == nil)
            #expect(lane.nextStep(now: .zero) == .wait)
            #expect(lane.linkLost() == [2])
        }
    }

    @Test func `a channel reply must name the channel that was asked for`() {
        // Reference §2.2 X2: another proxy gave channel 1 to who had asked for 4 and to who had asked for 3.
        var lane = Self.open()
        Self.submit(&lane, Data([0x1F, 4]), from: 1)
        _ = lane.nextStep(now: .zero)
        #expect(lane.frameReceived(Data([0x12, 1]) + Data(count: 48), now: .zero) == .observation)
        #expect(lane.frameReceived(Data([0x12, 4]) + Data(count: 48), now: .zero) == .reply(to: 1, isLast: true))
    }

    @Test func `a contact by key must have that key`() {
        var lane = Self.open()
        let key = Data(repeating: 7, count: 32)
        Self.submit(&lane, Data([0x1E]) + key, from: 1)
        _ = lane.nextStep(now: .zero)
        #expect(lane.frameReceived(Data([0x03]) + Data(count: 147), now: .zero) == .observation)
        #expect(lane.frameReceived(Data([0x03]) + key + Data(count: 115), now: .zero) == .reply(to: 1, isLast: true))
    }

    @Test func `a reply after the timeout is never given to the next command`() {
        var lane = Self.open()
        Self.submit(&lane, Self.getTime, from: 1)
        Self.submit(&lane, Self.getTime, from: 2)
        _ = lane.nextStep(now: .zero)
        #expect(lane.deadlineReached(now: .seconds(4)) == .none)
        #expect(lane.deadlineReached(now: .seconds(5)) == .timedOut(1))
        #expect(lane.nextStep(now: .seconds(5)) == .wait)
        // A late reply restarts the silence; a push does not.
        #expect(lane.frameReceived(Self.battery, now: .milliseconds(5_050)) == .late)
        #expect(lane.frameReceived(Self.push, now: .milliseconds(5_100)) == .push)
        #expect(lane.nextDeadline == .milliseconds(5_150))
        // The fence must be of another kind than the command, whose late reply would answer it.
        #expect(lane.deadlineReached(now: .milliseconds(5_150)) == .sendFence(Self.getBattery))
        #expect(lane.frameReceived(Self.time, now: .milliseconds(5_200)) == .late)
        #expect(lane.frameReceived(Self.battery, now: .milliseconds(5_210)) == .fenceAnswered)
        #expect(lane.nextStep(now: .milliseconds(5_210)) == .send(Self.getTime, from: 2))
    }

    /// Gives the lane a frame that nobody asked for every 50 ms, and what `answers` says to each fence, until the lane is
    /// idle or dead; all but the empty actions.
    static func babble(
        _ lane: inout Lane, from start: Duration, answers: (Data) -> Data?
    ) -> (actions: [Lane.DeadlineAction], end: Duration) {
        var actions: [Lane.DeadlineAction] = []
        var now = start
        while now < start + .seconds(60), !lane.isIdle, actions.last != .linkDead {
            now += .milliseconds(50)
            if case .fenceAnswered = lane.frameReceived(ok, now: now) { Issue.record("OK is no fence's answer") }
            let action = lane.deadlineReached(now: now)
            if action != .none { actions.append(action) }
            if case .sendFence(let fence) = action, let answer = answers(fence) {
                _ = lane.frameReceived(answer, now: now)
            }
        }
        return (actions, now)
    }

    @Test func `a radio that is never silent is asked all the same`() {
        var lane = Self.open()
        Self.submit(&lane, Self.getTime, from: 1)
        _ = lane.nextStep(now: .zero)
        #expect(lane.deadlineReached(now: .seconds(5)) == .timedOut(1))
        let (actions, end) = Self.babble(&lane, from: .seconds(5)) { $0 == Self.getBattery ? Self.battery : nil }
        #expect(actions == [.sendFence(Self.getBattery)])
        #expect(lane.isIdle)
        #expect(end == .seconds(8))
    }

    @Test func `a radio that is never silent and answers no fence is given up`() {
        var lane = Self.open()
        Self.submit(&lane, Self.getTime, from: 1)
        _ = lane.nextStep(now: .zero)
        #expect(lane.deadlineReached(now: .seconds(5)) == .timedOut(1))
        let (actions, end) = Self.babble(&lane, from: .seconds(5)) { _ in nil }
        let deviceQuery = CompanionFrame.deviceQuery(version: 3)
        #expect(actions == [.sendFence(Self.getBattery), .sendFence(deviceQuery), .linkDead])
        #expect(end == .seconds(17))
    }

    @Test func `a series is not over before it is silent`() {
        // Between the rows of a list the firmware answers other commands: answers to fences do not show its end.
        var lane = Self.open()
        Self.submit(&lane, Data([0x04]), from: 1)
        _ = lane.nextStep(now: .zero)
        #expect(lane.deadlineReached(now: .seconds(5)) == .timedOut(1))
        let (actions, end) = Self.babble(&lane, from: .seconds(5)) { $0 == Self.getTime ? Self.time : Self.battery }
        #expect(actions == [.sendFence(Self.getTime), .linkDead])
        #expect(end == .seconds(14))
    }

    @Test func `two unanswered fences mean that the link is dead`() {
        var lane = Self.open()
        Self.submit(&lane, Self.getBattery, from: 1)
        _ = lane.nextStep(now: .zero)
        var now = Duration.zero
        var actions: [Lane.DeadlineAction] = []
        while let deadline = lane.nextDeadline, actions.last != .linkDead {
            now = deadline
            actions.append(lane.deadlineReached(now: now))
        }
        // Nothing more goes to a radio that answers nothing, and each fence is of a kind of its own.
        let deviceQuery = CompanionFrame.deviceQuery(version: 3)
        #expect(actions == [.timedOut(1), .sendFence(Self.getTime), .none, .sendFence(deviceQuery), .linkDead])
        #expect(lane.nextDeadline == nil)
        #expect(lane.nextStep(now: now) == .wait)
    }

    @Test func `whoever leaves gets nothing, and the lane waits for the reply all the same`() {
        var lane = Self.open()
        Self.submit(&lane, Self.getTime, from: 1)
        Self.submit(&lane, Self.getBattery, from: 1)
        Self.submit(&lane, Self.getBattery, from: 2)
        _ = lane.nextStep(now: .zero)
        lane.requesterLeft(1)
        #expect(lane.nextStep(now: .zero) == .wait)
        #expect(lane.frameReceived(Self.time, now: .zero) == .orphan(isLast: true))
        #expect(lane.nextStep(now: .zero) == .send(Self.getBattery, from: 2))
        #expect(lane.nextStep(now: .zero) == .wait)
    }

    @Test func `a lost link owes an error to everybody who waits`() {
        var lane = Self.open()
        Self.submit(&lane, Self.getTime, from: 1)
        Self.submit(&lane, Self.getTime, from: 2)
        Self.submit(&lane, Self.getTime, from: 2)
        _ = lane.nextStep(now: .zero)
        #expect(lane.linkLost() == [1, 2, 2])
        #expect(!lane.isOpen)
        lane.linkReady()
        #expect(lane.nextStep(now: .zero) == .wait)
    }

    @Test func `own telemetry is a push that answers its command`() {
        var lane = Self.open()
        Self.submit(&lane, Data([0x27, 0, 0, 0]), from: 1)
        _ = lane.nextStep(now: .zero)
        #expect(lane.frameReceived(Data([0x8B, 0]) + Data(count: 8), now: .zero) == .reply(to: 1, isLast: true))
        #expect(lane.nextDeadline == nil)
    }

    @Test func `a requester may not fill the lane`() {
        var lane = Self.open { $0.queueLimit = 2 }
        #expect(Self.submit(&lane, Self.getTime, from: 1) == .queued)
        #expect(Self.submit(&lane, Self.getTime, from: 1) == .queued)
        #expect(Self.submit(&lane, Self.getTime, from: 1) == .refuseQueueFull)
        #expect(Self.submit(&lane, Self.getTime, from: 2) == .queued)
    }

    @Test(arguments: 0..<200)
    func `whatever happens, a reply only goes to who asked for its kind`(_ seed: Int) {
        var random = SplitMix(state: UInt64(seed))
        var lane = Self.open()
        var now = Duration.zero
        // What each requester has asked and not got yet, as the code of the reply it waits for.
        var awaited: [LaneRequester: [UInt8]] = [:]
        var inFlight: (requester: LaneRequester, reply: UInt8)?
        let kinds: [(Data, UInt8)] = [(Self.getTime, 9), (Self.getBattery, 0x0C), (Data([0x1F, 3]), 0x12)]
        for _ in 0..<500 {
            now += .milliseconds(Int64(random.next() % 900))
            switch random.next() % 6 {
            case 0, 1:
                let requester = LaneRequester(client: random.next() % 4)
                let (frame, reply) = kinds[Int(random.next() % 3)]
                if Self.submit(&lane, frame, from: requester) == .queued {
                    awaited[requester, default: []].append(reply)
                }
            case 2, 3:
                let code = [UInt8(9), 0x0C, 0x12][Int(random.next() % 3)]
                let frame = code == 0x12 ? Data([0x12, 3]) + Data(count: 48) : Data([code, 0, 0, 0, 0])
                if case .reply(let requester, _) = lane.frameReceived(frame, now: now) {
                    #expect(inFlight?.requester == requester && inFlight?.reply == code, "seed \(seed)")
                    inFlight = nil
                }
            case 4:
                if case .timedOut = lane.deadlineReached(now: now) { inFlight = nil }
            default:
                if random.next() % 20 == 0 {
                    let requester = LaneRequester(client: random.next() % 4)
                    lane.requesterLeft(requester)
                    awaited[requester] = nil
                    if inFlight?.requester == requester { inFlight = nil }
                }
            }
            if case .send(_, let requester) = lane.nextStep(now: now) {
                #expect(inFlight == nil, "two in flight, seed \(seed)")
                inFlight = (requester, awaited[requester]!.removeFirst())
            }
        }
    }
}
