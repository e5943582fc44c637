// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshBLE
internal import MeshBluetoothStack
internal import MeshLoop

/// Ending the link from here.
extension HCILink {
    /// How long what was accepted may take to leave. A peer that is out of reach takes nothing any more.
    private static let drainTime = Duration.seconds(1)

    func close() async {
        isClosing = true
        disconnectionHandler = nil
        notifications.removeAll()
        await end()
    }

    /// Ends the link after what was accepted has been sent; whoever uses it is told, unless it was ``close()`` that was called.
    func end() async {
        await drain(upTo: Self.drainTime)
        await withCheckedContinuation { continuation in
            if self.end != nil { return continuation.resume() }
            self.closers.append(continuation)
            self.perform(self.machine.disconnectRequested(now: self.loop.now))
        }
    }

    /// Returns when the controller has sent all that it was given and was to be given, or the time is over. Disconnect does not
    /// wait for data: a pairing's last keys would be lost, and with them the bond, for the peer would have no keys.
    func drain(upTo limit: Duration) async {
        guard end == nil, hasUnsent else { return }
        let timer = LoopTimer(loop)
        timer.schedule(after: limit) { self.drained() }
        await withCheckedContinuation { continuation in
            let isOver = self.end != nil || !self.hasUnsent
            if isOver { continuation.resume() } else { self.drainers.append(continuation) }
        }
        timer.cancel()
    }

    /// Whether something waits here, or in the controller.
    var hasUnsent: Bool {
        controller.assumeIsolated { controller in
            let waiting = controller.outbound?.waitingByteCount(handle) ?? 0
            let outstanding = controller.outbound?.outstandingCount(handle) ?? 0
            return waiting > 0 || outstanding > 0
        }
    }

    func drained() {
        let waiting = drainers
        drainers = []
        for waiter in waiting { waiter.resume() }
    }
}
