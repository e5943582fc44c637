// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop

/// A connection that is no client yet: TLS's handshake or the proof of a token is under way. Belongs to the ``RadioSession``
/// and is used on the loop only.
final class Entrant {
    /// How many a share waits for at once. A client takes a few round trips; one more than these ends the oldest, so that
    /// whoever only connects does not keep others out.
    static let limit = 32

    let connection: ShareClient
    /// Nil on a share without tokens: only TLS is waited for.
    var access: ShareAccessStateMachine?
    /// The token whose code it was asked for; nil before that, and if the share has none of that name.
    var token: ShareToken?
    let timer: LoopTimer

    init(_ connection: ShareClient, hasProof: Bool, loop: EventLoop) {
        self.connection = connection
        access = hasProof ? ShareAccessStateMachine(now: loop.now) : nil
        timer = LoopTimer(loop)
    }
}
