// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI

/// A call that waits for the radio. The lane knows it by its number; a caller that gives up takes the slot away, and the
/// lane still keeps the command's place until its reply, which then goes to nobody.
struct CommandSlot {
    /// What the call waits for besides the replies in the lane.
    enum Purpose {
        /// Nothing.
        case command
        /// Nothing; what comes is for the subscribers.
        case fetch
        /// Another node's answer: one of the requests of which the radio keeps one.
        case request
        /// The trace with this tag.
        case trace(tag: UInt32)
        /// Nothing; the receipt's tag belongs to this delivery.
        case text(delivery: UInt64)
        /// Nothing; these commands of the same kind go just before, and their replies are wanted as well.
        case batch(leading: [Data])
    }

    /// What came.
    struct Answers {
        var replies: [Data] = []
        var push: Data?
    }

    let frame: Data
    /// What has to be answered right before it.
    var lead: [LaneEntry.Lead] = []
    let expectation: ReplyExpectation
    let purpose: Purpose
    /// When the caller wants to wait no longer.
    var deadline: Duration?
    var answers = Answers()
    /// Whether the lane is done with it.
    var isReplied = false
    /// Nil for a command whose outcome nobody waits for.
    var waiter: CheckedContinuation<Result<Answers, MeshError>, Never>?

    init(frame: Data, expectation: ReplyExpectation, purpose: Purpose) {
        self.frame = frame
        self.expectation = expectation
        self.purpose = purpose
    }

    var isRequest: Bool {
        if case .request = purpose { true } else { false }
    }
}

/// A message that waits for its acknowledgement, over all attempts.
struct Delivery {
    /// What the acknowledgement of each attempt will carry.
    var codes: [UInt32] = []
    var confirmation: SendConfirmation?
    /// Until when the present attempt's is worth waiting for; nil once that is over.
    var deadline: Duration?
    var waiter: CheckedContinuation<Void, Never>?

    /// Nobody waits any longer.
    mutating func wake() {
        waiter?.resume()
        waiter = nil
        deadline = nil
    }
}
