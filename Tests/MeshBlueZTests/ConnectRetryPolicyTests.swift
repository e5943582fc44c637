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

    @Test func `what somebody left behind is ended, and a device without keys is forgotten once`() {
        var policy = ConnectRetryPolicy()
        for _ in 0..<2 {
            expect(
                policy.connectFailed(.inProgress, isBonded: false), is: .disconnectThenRetry(after: .milliseconds(500)))
        }
        expect(policy.connectFailed(.inProgress, isBonded: false), is: .forgetThenRetry)
        expect(policy.connectFailed(.inProgress, isBonded: false), is: .fail)
    }

    @Test func `keys are never thrown away for that`() {
        var policy = ConnectRetryPolicy()
        for _ in 0..<2 { _ = policy.connectFailed(.inProgress, isBonded: true) }
        expect(policy.connectFailed(.inProgress, isBonded: true), is: .fail)
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
