// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials

/// A transport that takes and hands over frames by plain calls, for a consumer on the same executor.
///
/// An `AsyncStream` costs several task switches for each frame, an `async` send from synchronous code a task: more than all
/// the rest of a frame's way through a host. This is beside the contract, not in place of it: ``MeshTransport/receivedData`` still ends when the link does, and
/// gives whatever had not been taken by then.
public protocol DirectTransport: MeshTransport {
    /// From now on the frames of the present connection go to `handler`, in order, those that have come already first.
    ///
    /// `handler` runs on the transport's executor and may call back into the transport. A frame it does not take (it
    /// returns false) is kept, and no more are handed over until ``resumeDelivery()``.
    func deliverFrames(to handler: @escaping @Sendable (Data) -> Bool) async

    /// Goes on after a frame that was not taken.
    func resumeDelivery() async

    /// Sends one frame if that needs no waiting; a plain call on the transport's executor. When it returns false nothing
    /// was sent and ``MeshTransport/send(_:)`` has to be used, which also tells what is wrong.
    nonisolated func sendAtOnce(_ frame: Data) -> Bool
}
