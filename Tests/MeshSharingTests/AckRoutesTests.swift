// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import MeshSharing

struct AckRoutesTests {
    /// The code of companion-protocol §3.3, R6.
    static let ack: UInt32 = 0xEFBE_ADDE

    @Test func `an acknowledgement goes to who sent the text, once`() {
        var routes = AckRoutes()
        routes.sent(ack: Self.ack, by: 1, estimatedTimeout: .seconds(5), now: .zero)
        routes.sent(ack: 77, by: 2, estimatedTimeout: .seconds(5), now: .zero)
        #expect(routes.confirmed(77, now: .seconds(1)) == .client(2))
        #expect(routes.confirmed(Self.ack, now: .seconds(1)) == .client(1))
        #expect(routes.confirmed(Self.ack, now: .seconds(1)) == .unknown)
        #expect(routes.count == 0)
    }

    @Test func `the same words of several are acknowledged in the order of sending`() {
        var routes = AckRoutes()
        for client: UInt64 in [3, 1, 3] { routes.sent(ack: Self.ack, by: client, estimatedTimeout: .zero, now: .zero) }
        #expect(routes.confirmed(Self.ack, now: .zero) == .client(3))
        #expect(routes.confirmed(Self.ack, now: .zero) == .client(1))
        #expect(routes.confirmed(Self.ack, now: .zero) == .client(3))
        #expect(routes.confirmed(Self.ack, now: .zero) == .unknown)
    }

    @Test func `nobody is told of a text of one who has gone`() {
        var routes = AckRoutes()
        routes.sent(ack: Self.ack, by: 1, estimatedTimeout: .zero, now: .zero)
        routes.sent(ack: Self.ack, by: 2, estimatedTimeout: .zero, now: .zero)
        routes.clientLeft(1)
        #expect(routes.confirmed(Self.ack, now: .zero) == .gone)
        #expect(routes.confirmed(Self.ack, now: .zero) == .client(2))
    }

    @Test func `a text that is not acknowledged has no code`() {
        var routes = AckRoutes()
        routes.sent(ack: 0, by: 1, estimatedTimeout: .zero, now: .zero)
        #expect(routes.confirmed(0, now: .zero) == .unknown)
    }

    @Test(arguments: [(5, 120), (40, 120), (41, 123), (600, 1_800)])
    func `it is awaited for three times the estimate, and for two minutes at least`(_ estimate: Int, _ lifetime: Int) {
        for (now, isKnown) in [(Duration.seconds(lifetime) - .nanoseconds(1), true), (.seconds(lifetime), false)] {
            var routes = AckRoutes()
            routes.sent(ack: Self.ack, by: 1, estimatedTimeout: .seconds(estimate), now: .zero)
            #expect(routes.confirmed(Self.ack, now: now) == (isKnown ? .client(1) : .unknown))
        }
    }

    @Test func `one who sends without end takes no more than its room, and none of others`() {
        var routes = AckRoutes()
        routes.sent(ack: 5_000, by: 2, estimatedTimeout: .zero, now: .zero)
        for ack in 1...1_000 as ClosedRange<UInt32> {
            routes.sent(ack: ack, by: 1, estimatedTimeout: .zero, now: .zero)
        }
        #expect(routes.count == AckRoutes.capacity)
        #expect(routes.confirmed(745, now: .zero) == .unknown)
        #expect(routes.confirmed(746, now: .zero) == .client(1))
        #expect(routes.confirmed(5_000, now: .zero) == .client(2))
    }

    @Test func `one who awaits none gets the room of the oldest`() {
        var routes = AckRoutes()
        for ack in 1...UInt32(AckRoutes.capacity) { routes.sent(ack: ack, by: 1, estimatedTimeout: .zero, now: .zero) }
        routes.sent(ack: 5_000, by: 2, estimatedTimeout: .zero, now: .zero)
        #expect(routes.confirmed(1, now: .zero) == .unknown)
        #expect(routes.confirmed(2, now: .zero) == .client(1))
        #expect(routes.confirmed(5_000, now: .zero) == .client(2))
    }

    @Test func `what is not awaited any more makes room`() {
        var routes = AckRoutes()
        for ack in 1...200 as ClosedRange<UInt32> {
            routes.sent(ack: ack, by: 1, estimatedTimeout: .zero, now: .seconds(Int(ack)))
        }
        routes.sent(ack: 1_000, by: 1, estimatedTimeout: .zero, now: .seconds(300))
        // Those of 1 s to 180 s have had their two minutes.
        #expect(routes.count == 21)
    }
}
