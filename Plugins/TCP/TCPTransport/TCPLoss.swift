// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop
internal import MeshStream

/// Why a connection ended without being asked to.
enum TCPLoss: Equatable {
    /// The peer closed or reset it.
    case closedByPeer(soonAfterConnect: Bool)
    /// The operating system gave it up.
    case failed
    /// No written frame went out in time.
    case writeStalled

    /// A close by the peer this soon after the connection was made looks like a radio that another host took: a radio serves
    /// one client, the newest, and closes the others (companion-protocol §1.1).
    private static let contentionWindow = Duration.seconds(10)

    /// `error`: what the end of the stream came with, nil for an orderly end by the peer.
    init(_ loss: StreamLinkStateMachine.Loss, _ error: LoopError?) {
        switch loss {
        case .ended(let age) where error?.isByPeer ?? true:
            self = .closedByPeer(soonAfterConnect: age < Self.contentionWindow)
        case .ended: self = .failed
        case .writeStalled: self = .writeStalled
        }
    }
}
