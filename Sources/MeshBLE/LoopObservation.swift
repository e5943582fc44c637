// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop

/// An observation that calls a closure on the loop when it is dropped.
public final class LoopObservation: GATTObservation {
    private let loop: EventLoop
    private let end: @Sendable () -> Void

    /// `end` may assume the isolation of actors on `loop`.
    public init(on loop: EventLoop, _ end: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.end = end
    }

    deinit {
        // Later: it may be dropped by the very handler that is being called.
        loop.perform(end)
    }
}
