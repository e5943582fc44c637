// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshLoop
internal import MeshTransportAPI

/// What one link has notified, until its consumer takes it.
///
/// Not a part of the transport's actor, since each notification of a busy link would pay for finding out that it is on the
/// loop already. Sendable because of one invariant: it is used on the transport's loop only.
final class BLEInbox: @unchecked Sendable {
    /// Totals over a transport's life; confined like the inbox.
    final class Totals: @unchecked Sendable {
        var frames: Int64 = 0
        var bytes: Int64 = 0
        var dropped: Int64 = 0
        var empty: Int64 = 0
    }

    private static let frameLimit = 1_024
    private static let byteLimit = 1_048_576

    let queue = FrameQueue()
    private let loop: EventLoop
    private let totals: Totals
    private let environment: TransportEnvironment
    /// What the MTU allows, and whose it is; nil before the link is up.
    private var allowance: (bytes: Int, peer: String)?
    /// Nobody is there for what may still come.
    private var isClosed = false
    private var hasToldOversize = false
    private var dropsToReport = 0

    init(_ loop: EventLoop, _ totals: Totals, _ environment: TransportEnvironment) {
        self.loop = loop
        self.totals = totals
        self.environment = environment
    }

    /// The link is up.
    func open(limit: Int, peer: String) {
        allowance = (limit, peer)
    }

    /// Nothing more is taken. What was taken can still be had.
    func close() {
        isClosed = true
    }

    /// A value was notified. What comes before the link is up waits for its stream.
    func received(_ value: Data) {
        assert(loop.isOnLoop)
        if isClosed || queue.isFinished { return }
        let count = value.count
        if count == 0 {
            totals.empty += 1
            return
        }
        totals.frames += 1
        totals.bytes += Int64(count)
        if let allowance, count > allowance.bytes { tellOversize(count, allowance.bytes, allowance.peer) }
        // Nothing slows a device down that notifies: the newest frames are dropped, so that those before them stay whole and
        // in order.
        guard queue.count < Self.frameLimit, queue.byteCount + count <= Self.byteLimit else { return drop() }
        queue.put(value)
    }

    private func tellOversize(_ count: Int, _ limit: Int, _ peer: String) {
        if hasToldOversize { return }
        hasToldOversize = true
        environment.log(
            .info, "The radio sends more in one notification than the MTU allows.",
            [("peer", peer), ("bytes", "\(count)"), ("limit", "\(limit)")])
    }

    private func drop() {
        totals.dropped += 1
        if dropsToReport == 0 { loop.atEndOfTurn { self.reportDrops() } }
        dropsToReport += 1
    }

    /// Tells how many frames were dropped; once for many.
    func reportDrops() {
        guard dropsToReport > 0 else { return }
        environment.linkEvents(.framesDropped(count: dropsToReport))
        dropsToReport = 0
    }
}
