// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshLoop

/// The search on one adapter, as ``BlueZService`` drives it: a reference, because the machine in it cannot be copied.
final class AdapterSearch {
    let adapter: String
    /// Tells it from others on the same adapter, before and after it.
    let serial: UInt64
    var machine = DiscoveryStateMachine()
    let timer: LoopTimer
    /// When the timer fires.
    var firesAt: Duration?
    /// Counts the failures that those who wait were told of.
    var failures = 0
    var lastFailure: BlueZFailure?
    /// Whether those who wait were told so last.
    var isStuck = false
    /// The call that is under way.
    var call: Task<Void, Never>?

    init(adapter: String, serial: UInt64, loop: EventLoop) {
        self.adapter = adapter
        self.serial = serial
        timer = LoopTimer(loop)
    }
}
