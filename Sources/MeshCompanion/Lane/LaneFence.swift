// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials

/// Harmless questions that every firmware answers, each with a code of its own. ERR is never an answer to a fence: it may
/// be the late one to something else.
enum LaneFence: CaseIterable, Sendable {
    case time
    case battery
    case device

    var frame: Data {
        switch self {
        case .time: CompanionFrame.getTime
        case .battery: Data([CommandCode.getBatteryAndStorage.rawValue])
        case .device: CompanionFrame.deviceQuery(version: CompanionFrame.hostProtocolVersion)
        }
    }

    var reply: ReplyCode {
        switch self {
        case .time: .currentTime
        case .battery: .batteryAndStorage
        case .device: .deviceInfo
        }
    }
}

/// What has to be answered before a reply can be trusted again.
struct LaneQuarantine: Sendable {
    /// The fences still to be tried; the first is the next one or the one that was sent.
    private(set) var fences: ArraySlice<LaneFence>
    /// How many of them must be answered.
    private(set) var needed: Int
    private let followsSeries: Bool

    /// After a command whose reply, with this expectation, may still come.
    ///
    /// A fence must not be of the command's own kind, nor of one that was sent before and not answered: each kind is used
    /// once. A command that may be answered by any one frame needs two fences of different kinds: had its reply passed for
    /// the first one's answer, it cannot pass for the second's too. So does a series, between whose frames the firmware
    /// answers other commands: the silence before the second fence shows that the series is over.
    init(after expectation: ReplyExpectation, attempts: Int) {
        followsSeries = expectation.isSeries
        needed = expectation.isSeries || expectation == .anyReply ? 2 : 1
        fences = LaneFence.allCases.filter { !expectation.names($0.reply) }.prefix(max(1, attempts) + needed - 1)
    }

    /// Whether the next fence shows nothing unless there was silence before it: that of the end of a series.
    var needsSilence: Bool { followsSeries && needed == 1 }

    /// The fence was answered; whether that was the last one needed.
    mutating func answered() -> Bool {
        fences = fences.dropFirst()
        needed -= 1
        return needed <= 0
    }

    /// The fence was not answered; whether there are enough left.
    mutating func unanswered() -> Bool {
        fences = fences.dropFirst()
        return fences.count >= needed
    }
}
