// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials

/// Frames of one connection between the socket and the consumer, with the consumer's waiter.
///
/// It never drops a frame: over its limits it asks, through ``isFull``, for the socket to be left unread. One read goes
/// over them by at most what fits in the loop's read buffer.
///
/// Sendable, so that a consumer's stream can hold it: its members are used on the loop's thread only, by the transport.
final class FrameInbox: @unchecked Sendable {
    /// The limits: enough for the burst of a contacts dump (350 rows of 148 bytes), little enough to be forgotten.
    private static let frameLimit = 1_024
    private static let byteLimit = 262_144

    private var ring: [Data?] = Array(repeating: nil, count: 16)
    private var head = 0
    private(set) var count = 0
    private var byteCount = 0
    private var isFinished = false
    private var waiter: (id: UInt64, continuation: CheckedContinuation<Data?, Never>)?
    private var lastWaiter: UInt64 = 0
    private var cancelled: UInt64 = 0

    /// Whether no more should be put in.
    var isFull: Bool { count >= Self.frameLimit || byteCount >= Self.byteLimit }
    /// Whether there is room again: half of the limits, so that reading is not switched at each frame.
    var hasRoom: Bool { count <= Self.frameLimit / 2 && byteCount <= Self.byteLimit / 2 }

    /// Hands a frame to the waiting consumer, or keeps it.
    func put(_ frame: Data) {
        if isFinished { return }
        if let waiter {
            self.waiter = nil
            waiter.continuation.resume(returning: frame)
            return
        }
        if count == ring.count { grow() }
        ring[(head + count) & (ring.count - 1)] = frame
        count += 1
        byteCount += frame.count
    }

    /// The consumer gets what is kept, then the end. With `discarding` it gets the end at once.
    func finish(discarding: Bool) {
        isFinished = true
        if discarding {
            ring = []
            count = 0
            byteCount = 0
        }
        waiter?.continuation.resume(returning: nil)
        waiter = nil
    }

    /// A frame, if one is kept. A full turn of the ring costs no shifting.
    func take() -> Data? {
        guard count > 0 else { return nil }
        let frame = ring[head]
        ring[head] = nil
        head = (head + 1) & (ring.count - 1)
        count -= 1
        byteCount -= frame?.count ?? 0
        return frame
    }

    /// A number for a consumer about to wait; ``cancelWaiter(_:)`` names it.
    func newWaiter() -> UInt64 {
        lastWaiter += 1
        return lastWaiter
    }

    /// Waits for a frame or the end. A consumer that waited already gets the end: there is one at a time.
    func wait(_ id: UInt64, _ continuation: CheckedContinuation<Data?, Never>) {
        waiter?.continuation.resume(returning: nil)
        waiter = nil
        if let frame = take() {
            continuation.resume(returning: frame)
        } else if isFinished || cancelled >= id {
            continuation.resume(returning: nil)
        } else {
            waiter = (id, continuation)
        }
    }

    /// The consumer gave up.
    func cancelWaiter(_ id: UInt64) {
        cancelled = max(cancelled, id)
        guard let waiter, waiter.id == id else { return }
        self.waiter = nil
        waiter.continuation.resume(returning: nil)
    }

    private func grow() {
        var larger = [Data?](repeating: nil, count: ring.count * 2)
        for index in 0..<count { larger[index] = ring[(head + index) & (ring.count - 1)] }
        ring = larger
        head = 0
    }
}
