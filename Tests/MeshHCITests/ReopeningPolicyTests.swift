// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI
import Testing

@testable import MeshHCITransport

struct ReopeningPolicyTests {
    private let gone = MeshError(.adapterUnavailable, "there is no adapter hci1")
    private let busy = MeshError(.adapterUnavailable, "another program has taken hci1")

    @Test func `a controller that stays away is asked for more and more rarely`() {
        var policy = ReopeningPolicy()
        let delays = (1...7).map { _ in
            _ = policy.failed(gone)
            return policy.delay
        }
        #expect(delays == [1, 2, 4, 8, 16, 16, 16].map { .seconds($0) })
    }

    @Test func `a reason is news once`() {
        var policy = ReopeningPolicy()
        let news = [gone, gone, busy, busy, gone].map { policy.failed($0) }
        #expect(news == [true, false, true, false, true])
    }

    @Test func `one that was ready is opened soon, and its loss is news`() {
        var policy = ReopeningPolicy()
        for _ in 1...5 { _ = policy.failed(gone) }
        policy.becameReady()
        #expect(policy.failure == nil)
        let isNews = policy.failed(gone)
        #expect(isNews)
        #expect(policy.delay == .seconds(1))
    }
}
