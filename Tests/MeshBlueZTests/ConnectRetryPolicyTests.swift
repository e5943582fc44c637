// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import MeshBlueZTransport

struct ConnectRetryPolicyTests {
    @Test func `a link aborted by this side is tried again nine times`() {
        var policy = ConnectRetryPolicy()
        expect(policy.connectFailed(.linkAborted, isBonded: true), is: .retry(after: .zero))
        for _ in 0..<8 {
            expect(policy.connectFailed(.linkAborted, isBonded: true), is: .retry(after: .milliseconds(100)))
        }
        expect(policy.connectFailed(.linkAborted, isBonded: true), is: .fail)
    }

    @Test func `nine more tries after aborted links pause less than a second in all (R9)`() {
        var policy = ConnectRetryPolicy()
        var pauses = Duration.zero
        var tries = 0
        while case .retry(let pause) = policy.connectFailed(.linkAborted, isBonded: true) {
            pauses += pause
            tries += 1
        }
        #expect(tries == 9 && pauses < .seconds(1))
    }

    @Test func `another program's attempt is waited for, ended once, and then left alone`() {
        var policy = ConnectRetryPolicy()
        expect(policy.connectFailed(.inProgress, isBonded: false), is: .wait(.milliseconds(500)))
        expect(
            policy.connectFailed(.inProgress, isBonded: false), is: .disconnectThenRetry(after: .milliseconds(500)))
        expect(policy.connectFailed(.inProgress, isBonded: false), is: .fail)
    }

    @Test func `one that was begun after another had been ended is waited for only`() {
        var policy = ConnectRetryPolicy()
        expect(policy.connectFailed(.inProgress, isBonded: false, takeover: .none), is: .wait(.milliseconds(500)))
        expect(policy.connectFailed(.inProgress, isBonded: false, takeover: .none), is: .fail)
    }

    @Test func `who takes over forgets a device without keys, once`() {
        var policy = ConnectRetryPolicy()
        for _ in 0..<2 { _ = policy.connectFailed(.inProgress, isBonded: false, takeover: .always) }
        expect(policy.connectFailed(.inProgress, isBonded: false, takeover: .always), is: .forgetThenRetry)
        expect(policy.connectFailed(.inProgress, isBonded: false, takeover: .always), is: .fail)
    }

    @Test func `keys are never thrown away for that`() {
        var policy = ConnectRetryPolicy()
        for _ in 0..<2 { _ = policy.connectFailed(.inProgress, isBonded: true, takeover: .always) }
        expect(policy.connectFailed(.inProgress, isBonded: true, takeover: .always), is: .fail)
    }

    @Test func `a device that is not in the tree any more is looked for again`() {
        var policy = ConnectRetryPolicy()
        for _ in 0..<3 { expect(policy.connectFailed(.objectGone, isBonded: false), is: .searchThenRetry) }
        expect(policy.connectFailed(.objectGone, isBonded: false), is: .fail)
    }

    @Test func `a device that is connected already is used`() {
        var policy = ConnectRetryPolicy()
        expect(policy.connectFailed(.alreadyDone, isBonded: false), is: .useLink)
    }

    @Test(arguments: [
        BlueZFailure.cancelled, .serviceGone, .accessDenied, .adapterOff, .peerSilent, .noSlots, .bondStale, .other,
    ])
    func `what does not pass at once is the caller's business`(failure: BlueZFailure) {
        var policy = ConnectRetryPolicy()
        expect(policy.connectFailed(failure, isBonded: false), is: .fail)
    }
}
