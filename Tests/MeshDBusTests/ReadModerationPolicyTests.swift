// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import MeshDBus

struct ReadModerationPolicyTests {
    fileprivate typealias Policy = ReadModerationPolicy

    /// Reads `gap` apart until one is followed by a pause; how many there were, at most 100.
    private func reads(_ gap: Duration, _ policy: inout Policy, isReplyAwaited: Bool = false) -> Int {
        for count in 1...100 {
            let now = Duration.seconds(5) + gap * count
            if policy.wasRead(isReplyAwaited: isReplyAwaited, now: now) != .whenReadable { return count }
        }
        return 100
    }

    @Test(arguments: [0, 1, 5, 15]) func `a stream is read in pauses`(_ milliseconds: Int) {
        var policy = Policy()
        #expect(reads(.milliseconds(milliseconds), &policy) == Policy.streamReads)
        for _ in 0..<1_000 {
            #expect(policy.pauseEnded(messages: Policy.worthwhile, isReplyAwaited: false) == .after(Policy.pause))
        }
    }

    @Test(arguments: [16, 20, 30, 60, 1_000]) func `what comes more seldom never waits`(_ milliseconds: Int) {
        var policy = Policy()
        #expect(reads(.milliseconds(milliseconds), &policy) == 100)
    }

    @Test func `a few messages in a row never wait`() {
        var policy = Policy()
        for round in 0..<100 {
            for number in 1..<Policy.streamReads {
                let now = Duration.milliseconds(round * 100 + number)
                #expect(policy.wasRead(isReplyAwaited: false, now: now) == .whenReadable)
            }
        }
    }

    @Test func `a stream that gets faster is noticed`() {
        var policy = Policy()
        var now = Duration.zero
        for _ in 0..<50 {
            now += .milliseconds(20)
            #expect(policy.wasRead(isReplyAwaited: false, now: now) == .whenReadable)
        }
        var fast = 0
        repeat {
            now += .milliseconds(5)
            fast += 1
        } while policy.wasRead(isReplyAwaited: false, now: now) == .whenReadable && fast < 100
        #expect(fast < 2 * Policy.streamReads)
    }

    @Test func `while a reply is awaited nothing waits`() {
        var policy = Policy()
        #expect(reads(.milliseconds(1), &policy, isReplyAwaited: true) == 100)
        // What came meanwhile does not count.
        #expect(reads(.milliseconds(1), &policy) == Policy.streamReads)
        #expect(policy.pauseEnded(messages: 50, isReplyAwaited: true) == .whenReadable)
        #expect(reads(.milliseconds(1), &policy) == Policy.streamReads)
        policy.callWasSent()
        #expect(reads(.milliseconds(1), &policy) == Policy.streamReads)
    }

    @Test(arguments: 0..<Policy.worthwhile) func `pauses end with the stream`(_ messages: Int) {
        var policy = Policy()
        #expect(reads(.milliseconds(5), &policy) == Policy.streamReads)
        #expect(policy.pauseEnded(messages: messages, isReplyAwaited: false) == .whenReadable)
        #expect(policy.wasRead(isReplyAwaited: false, now: .seconds(6)) == .whenReadable)
    }
}
