// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import MeshSharing

struct FailedProofsTests {
    private typealias Origin = FailedProofs.Origin
    private static let near = Origin(network: "127.0.0.1", isLocal: true)
    private static let far = Origin(network: "192.0.2.7", isLocal: false)
    private static let farther = Origin(network: "192.0.2.8", isLocal: false)

    @Test func `the third failure within a minute bars a token from there for a minute`() {
        var proofs = FailedProofs()
        func isBarred(_ time: Int, _ origin: Origin = Self.far, _ token: String? = "alice") -> Bool {
            proofs.isBarred(origin, token: token, now: .seconds(time))
        }
        for time in [0, 30] { #expect(proofs.failed(Self.far, token: "alice", now: .seconds(time)) == .zero) }
        #expect(!isBarred(59))
        #expect(proofs.failed(Self.far, token: "alice", now: .seconds(59)) == .zero)
        #expect(isBarred(118))
        #expect(!isBarred(119))
        // Nobody else from there, and it from nowhere else.
        #expect(!isBarred(60, Self.far, "bob") && !isBarred(60, Self.far, nil) && !isBarred(60, Self.farther))
        #expect(!proofs.isBarred(Self.far, now: .seconds(60)))
        // All that was is over.
        _ = proofs.failed(Self.far, token: "alice", now: .seconds(120))
        #expect(!isBarred(120))
    }

    @Test func `nobody on this machine is barred, whoever fails how often`() {
        var proofs = FailedProofs()
        for time in 0..<100 {
            let lateness = proofs.failed(Self.near, token: time % 2 == 0 ? "alice" : nil, now: .milliseconds(time))
            #expect(lateness == (time < 2 ? .zero : FailedProofs.lateness))
        }
        for token in ["alice", "bob", nil] { #expect(!proofs.isBarred(Self.near, token: token, now: .seconds(1))) }
        #expect(!proofs.isBarred(Self.near, now: .seconds(1)))
        // A minute later all is forgotten.
        #expect(proofs.failed(Self.near, token: "alice", now: .seconds(61)) == .zero)
    }

    @Test func `names that the share does not have count as one`() {
        var proofs = FailedProofs()
        for time in 0..<3 { _ = proofs.failed(Self.far, token: nil, now: .seconds(time)) }
        #expect(proofs.isBarred(Self.far, token: nil, now: .seconds(3)))
        #expect(!proofs.isBarred(Self.far, token: "alice", now: .seconds(3)))
    }

    @Test func `a network that tries token after token is barred as a whole`() {
        var proofs = FailedProofs()
        for number in 0..<FailedProofs.networkLimit {
            #expect(!proofs.isBarred(Self.far, now: .seconds(number)))
            _ = proofs.failed(Self.far, token: "\(number)", now: .seconds(number))
        }
        let end = FailedProofs.networkLimit - 1
        #expect(proofs.isBarred(Self.far, now: .seconds(end + 59)))
        #expect(!proofs.isBarred(Self.far, now: .seconds(end + 60)))
        #expect(!proofs.isBarred(Self.farther, now: .seconds(end)))
    }

    @Test func `failures half a minute apart are no attack`() {
        var proofs = FailedProofs()
        for time in stride(from: 0, to: 600, by: 31) {
            _ = proofs.failed(Self.far, token: "alice", now: .seconds(time))
            #expect(!proofs.isBarred(Self.far, token: "alice", now: .seconds(time)))
        }
    }

    @Test func `one that fails on a connection it had before stays barred`() {
        var proofs = FailedProofs()
        for time in 0..<20 { _ = proofs.failed(Self.far, token: "alice", now: .seconds(time)) }
        #expect(proofs.isBarred(Self.far, token: "alice", now: .seconds(78)))
        #expect(!proofs.isBarred(Self.far, token: "alice", now: .seconds(79)))
    }

    @Test func `so many are remembered, and who failed least recently is forgotten first`() {
        var proofs = FailedProofs()
        func origin(_ name: String) -> Origin { Origin(network: name, isLocal: false) }
        for (name, time) in [("old", 1), ("new", 30)] {
            for _ in 0..<3 { _ = proofs.failed(origin(name), token: "a", now: .seconds(time)) }
        }
        // Each is remembered with its network and with its token.
        for number in 0..<FailedProofs.memoryLimit / 2 - 2 {
            _ = proofs.failed(origin("\(number)"), token: "a", now: .seconds(20))
        }
        func isBarred(_ name: String) -> Bool { proofs.isBarred(origin(name), token: "a", now: .seconds(40)) }
        #expect(isBarred("old") && isBarred("new"))
        _ = proofs.failed(origin("one more"), token: "a", now: .seconds(40))
        #expect(!isBarred("old") && isBarred("new"))
    }
}
