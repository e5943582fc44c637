// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI
internal import Synchronization

/// What a transport says of its present link. Noted on whatever thread it is said, so that it is there when `connect` returns
/// or the stream of frames ends: these reach the coordinator by another way than events do, and may be faster.
final class LinkFacts: Sendable {
    private struct Facts {
        var info: LinkInfo?
        var downReason: MeshError?
        var givenUp: MeshError?
    }

    private let facts = Mutex(Facts())

    /// What the link is, once it is up.
    var info: LinkInfo? { facts.withLock { $0.info } }
    /// Why it ended.
    var endReason: MeshError? { facts.withLock { $0.givenUp ?? $0.downReason } }

    func note(_ event: LinkEvent) {
        switch event {
        case .up(let info): facts.withLock { $0.info = info }
        case .down(let reason): facts.withLock { $0.downReason = reason }
        case .phase, .framesDropped, .bytesSkipped, .adapter: break
        }
    }

    /// The session gave the link up. Later reasons are consequences.
    func giveUp(_ reason: MeshError) { facts.withLock { $0.givenUp = $0.givenUp ?? reason } }

    func reset() { facts.withLock { $0 = Facts() } }
}
