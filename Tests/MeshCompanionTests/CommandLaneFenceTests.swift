// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import Testing

/// The fence against a radio that answers in order, late, or not at all: every way of being late is tried.
struct CommandLaneFenceTests {
    /// What the radio does with one command: its answer comes this much later, or never.
    static let fates: [Duration?] = [
        .zero, .milliseconds(60), .milliseconds(5_050), .milliseconds(6_500), .milliseconds(9_000), nil,
    ]
    static let contacts = Data([0x04])
    static let unknown = Data([0x7E])

    /// A radio that answers in the order it was asked; each answer bears the number of its command.
    struct Radio {
        var fates: [Duration?]
        /// The code of the answer to ``unknown``.
        var unknownReply: UInt8
        var count: UInt8 = 0
        var answers: [(at: Duration, frame: Data)] = []

        mutating func receive(_ command: Data, now: Duration) {
            count += 1
            let fate = Int(count) <= fates.count ? fates[Int(count) - 1] : .zero
            guard let fate else { return }
            let at = max(now + fate, answers.last?.at ?? .zero)
            switch command.first {
            case 0x04:
                for (row, code) in ([0x02, 0x03, 0x03, 0x04] as [UInt8]).enumerated() {
                    answers.append((at + .milliseconds(Int64(row) * 20), Data([code, count, 0, 0, 0])))
                }
            case 0x05: answers.append((at, Data([0x09, count, 0, 0, 0])))
            case 0x14: answers.append((at, Data([0x0C, count, 0])))
            case 0x16: answers.append((at, Data([0x0D, count])))
            default: answers.append((at, Data([unknownReply, count])))
            }
        }
    }

    /// Runs the lane against the radio with these commands, each of a requester of its own, until all are answered. The
    /// radio's number for each command is checked against the replies its requester gets.
    static func run(_ commands: [Data], _ fates: [Duration?], unknownReply: UInt8) -> String? {
        var radio = Radio(fates: fates, unknownReply: unknownReply)
        var lane = CommandLaneTests.open()
        var now = Duration.zero
        var numbers: [LaneRequester: UInt8] = [:]
        var ended = 0
        for (index, command) in commands.enumerated() {
            CommandLaneTests.submit(&lane, command, from: LaneRequester(client: UInt64(index + 1)))
        }
        while ended < commands.count {
            while case .send(let frame, let requester) = lane.nextStep(now: now) {
                radio.receive(frame, now: now)
                numbers[requester] = radio.count
            }
            let answer = radio.answers.first
            guard let next = [answer?.at, lane.nextDeadline].compactMap({ $0 }).min() else { return "stuck" }
            now = next
            if let answer, answer.at == now {
                radio.answers.removeFirst()
                guard case .reply(let requester, let isLast) = lane.frameReceived(answer.frame, now: now) else {
                    continue
                }
                if numbers[requester] != answer.frame[1] {
                    return "\(requester.client) got the answer to command \(answer.frame[1])"
                }
                if isLast { ended += 1 }
            } else {
                switch lane.deadlineReached(now: now) {
                case .timedOut: ended += 1
                case .sendFence(let frame): radio.receive(frame, now: now)
                case .linkDead: return nil
                case .none, .departed: break
                }
            }
        }
        return nil
    }

    @Test(arguments: [Data([0x05]), Data([0x14]), Data([0x16, 3]), contacts, unknown])
    func `no reply is given to another command, however late replies are`(_ first: Data) {
        let seconds = [Data([0x05]), Data([0x14]), Data([0x16, 3]), Self.contacts]
        let unknownReplies: [UInt8] = first == Self.unknown ? [0x09, 0x0C, 0x0D, 0x00, 0x30] : [0x30]
        let count = Self.fates.count
        for second in seconds {
            for unknownReply in unknownReplies {
                for choice in 0..<count * count * count * count {
                    let fates = [choice, choice / count, choice / count / count, choice / count / count / count]
                        .map { Self.fates[$0 % count] }
                    let problem = Self.run([first, second, second], fates, unknownReply: unknownReply)
                    if let problem {
                        Issue.record("\([UInt8](first)), \([UInt8](second)), \(fates): \(problem)")
                        return
                    }
                }
            }
        }
    }

    @Test func `a fence that was answered late does not answer the next one`() {
        var lane = CommandLaneTests.open()
        CommandLaneTests.submit(&lane, Data([0x1F, 3]), from: 1)
        CommandLaneTests.submit(&lane, CommandLaneTests.getTime, from: 2)
        _ = lane.nextStep(now: .zero)
        _ = lane.deadlineReached(now: .seconds(5))
        #expect(lane.deadlineReached(now: .seconds(6)) == .sendFence(CommandLaneTests.getTime))
        #expect(lane.deadlineReached(now: .seconds(9)) == .none)
        #expect(lane.deadlineReached(now: .seconds(10)) == .sendFence(CommandLaneTests.getBattery))
        #expect(lane.frameReceived(CommandLaneTests.time, now: .seconds(10)) == .late)
        #expect(lane.frameReceived(CommandLaneTests.battery, now: .seconds(10)) == .fenceAnswered)
    }

    @Test func `an unknown command and a series take two fences`() {
        for command in [Self.unknown, Self.contacts] {
            var lane = CommandLaneTests.open()
            CommandLaneTests.submit(&lane, command, from: 1)
            _ = lane.nextStep(now: .zero)
            _ = lane.deadlineReached(now: .seconds(5))
            #expect(lane.deadlineReached(now: .seconds(6)) == .sendFence(CommandLaneTests.getTime))
            #expect(lane.frameReceived(CommandLaneTests.time, now: .seconds(6)) == .late)
            #expect(lane.deadlineReached(now: .seconds(7)) == .sendFence(CommandLaneTests.getBattery))
            #expect(lane.frameReceived(CommandLaneTests.battery, now: .seconds(7)) == .fenceAnswered)
        }
    }
}
