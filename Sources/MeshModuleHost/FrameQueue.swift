// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials

/// The frames of one link on their way to the consumer of `receivedData`.
///
/// It has no limit of its own: the inbox bounds what is taken from the module until `release` has said what the consumer
/// took. Sendable, so that a consumer's stream can hold it: its members are used on the loop's thread only.
final class FrameQueue: @unchecked Sendable {
    /// Credits go back in portions, so that not every frame takes the inbox's lock.
    private static let portion = (frames: 128, bytes: 1 << 17)

    private let release: (_ frames: Int, _ bytes: Int) -> Void
    private var frames: [Data?] = []
    private var head = 0
    private var unreported = (frames: 0, bytes: 0)
    private var waiter: (id: UInt64, continuation: CheckedContinuation<Data?, Never>)?
    private var lastWaiter: UInt64 = 0
    private var isFinished = false

    /// `release` is told what the consumer has taken.
    init(release: @escaping (_ frames: Int, _ bytes: Int) -> Void) {
        self.release = release
    }

    /// Hands a frame to the waiting consumer, or keeps it.
    func put(_ frame: Data) {
        if isFinished { return }
        if let waiter {
            self.waiter = nil
            taken(frame.count)
            waiter.continuation.resume(returning: frame)
        } else {
            frames.append(frame)
        }
    }

    /// The consumer gets what is kept, then the end; with `discarding` it gets the end at once.
    func finish(discarding: Bool) {
        isFinished = true
        if discarding {
            frames = []
            head = 0
        }
        waiter?.continuation.resume(returning: nil)
        waiter = nil
    }

    /// The next frame, if one is kept.
    func take() -> Data? {
        guard head < frames.count, let frame = frames[head] else { return nil }
        frames[head] = nil
        head += 1
        if head == frames.count {
            frames.removeAll(keepingCapacity: frames.capacity <= 2_048)
            head = 0
        } else if head >= 1_024 {
            frames.removeSubrange(..<head)
            head = 0
        }
        taken(frame.count)
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
        if isFinished {
            continuation.resume(returning: nil)
        } else {
            waiter = (id, continuation)
        }
    }

    /// The consumer gave up.
    func cancelWaiter(_ id: UInt64) {
        guard let waiter, waiter.id == id else { return }
        self.waiter = nil
        waiter.continuation.resume(returning: nil)
    }

    private func taken(_ bytes: Int) {
        unreported.frames += 1
        unreported.bytes += bytes
        guard head == frames.count || unreported.frames >= Self.portion.frames || unreported.bytes >= Self.portion.bytes
        else { return }
        let credits = unreported
        unreported = (0, 0)
        release(credits.frames, credits.bytes)
    }
}
