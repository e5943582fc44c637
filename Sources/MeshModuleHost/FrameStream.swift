// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshLoop

/// The frames of one link on their way to the consumer of `receivedData`, with back-pressure.
///
/// `AsyncStream(unfolding:)` would tell when a frame is consumed, but runs its closure on the global executor: two thread
/// hops and 14 µs for each frame (measured, Swift 6.3.1). So a small buffered stream stands in front and a backlog
/// behind it. A consumer on the loop empties the buffer in its own turn and the pump, queued behind it, refills it.
/// Nothing tells when a consumer that has stalled goes on; only while one has, a timer looks.
///
/// Used on the loop's thread only, save `stream`: that is what makes it Sendable.
final class FrameStream: @unchecked Sendable {
    private static let bufferLimit = 256
    /// Credits go back in portions, so that not every frame takes the inbox's lock.
    private static let portion = (frames: 128, bytes: 1 << 17)
    private static let firstRetry: Duration = .milliseconds(1)
    private static let lastRetry: Duration = .milliseconds(50)
    /// How often a stalled consumer is looked at after the link has ended.
    private static let retriesAfterEnd = 40

    let stream: AsyncStream<Data>
    private let continuation: AsyncStream<Data>.Continuation
    private let loop: MeshLoop
    private let release: (_ frames: Int, _ bytes: Int) -> Void
    private let lost: (_ frames: Int) -> Void
    private var backlog: [Data] = []
    private var head = 0
    private var unreported = (frames: 0, bytes: 0)
    private var timer: LoopTimer?
    private var isPumpQueued = false
    private var retry = FrameStream.firstRetry
    private var retriesLeft: Int?
    private var isFinished = false

    /// `release` is told what the consumer's buffer has taken, `lost` what nobody will read.
    init(
        loop: MeshLoop, release: @escaping (_ frames: Int, _ bytes: Int) -> Void,
        lost: @escaping (_ frames: Int) -> Void
    ) {
        self.loop = loop
        self.release = release
        self.lost = lost
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.bufferLimit))
    }

    func push(_ frame: Data) {
        guard !isFinished, retriesLeft == nil else { return }
        if head == backlog.count, offer(frame) { return }
        if isFinished { return }
        backlog.append(frame)
        schedulePump(progress: true)
    }

    /// No more frames come: the stream finishes when the consumer has read what is here.
    func finish() {
        guard !isFinished else { return }
        if head == backlog.count { return end() }
        retriesLeft = Self.retriesAfterEnd
        schedulePump(progress: true)
    }

    /// Nothing more is taken: the stream finishes now. What the consumer's buffer holds goes with ``removeBuffered()``.
    func discard() {
        guard !isFinished else { return }
        end()
    }

    /// Empties the buffer of a stream that has been discarded. Does not suspend: nothing can be waited for any more.
    func removeBuffered(isolation: isolated (any Actor)? = #isolation) async {
        assert(isFinished)
        var frames = stream.makeAsyncIterator()
        while await frames.next(isolation: isolation) != nil {}
    }

    /// Hands one frame to the consumer's buffer. False when there is no room, or nobody to read.
    private func offer(_ frame: Data) -> Bool {
        switch continuation.yield(frame) {
        case .enqueued:
            unreported.frames += 1
            unreported.bytes += frame.count
            if unreported.frames >= Self.portion.frames || unreported.bytes >= Self.portion.bytes { report() }
            return true
        case .dropped:
            return false
        case .terminated:
            lost(backlog.count - head + 1)
            end()
            return false
        @unknown default:
            return false
        }
    }

    private func pump() {
        isPumpQueued = false
        timer = nil
        let before = head
        while head < backlog.count, !isFinished, offer(backlog[head]) { head += 1 }
        if isFinished { return }
        if head == backlog.count {
            backlog.removeAll(keepingCapacity: backlog.capacity <= 4_096)
            head = 0
            if retriesLeft != nil { end() }
            return
        }
        let progress = head > before
        if head >= 1_024 {
            backlog.removeSubrange(..<head)
            head = 0
        }
        if !progress, let left = retriesLeft {
            guard left > 0 else {
                lost(backlog.count - head)
                return end()
            }
            retriesLeft = left - 1
        }
        schedulePump(progress: progress)
    }

    private func schedulePump(progress: Bool) {
        guard !isPumpQueued else { return }
        if progress {
            if timer != nil { return }
            retry = Self.firstRetry
            isPumpQueued = true
            loop.performLater { self.pump() }
        } else {
            isPumpQueued = true
            let timer = LoopTimer(loop)
            timer.schedule(after: retry) { self.pump() }
            self.timer = timer
            retry = min(retry * 2, Self.lastRetry)
        }
    }

    private func end() {
        isFinished = true
        backlog = []
        head = 0
        timer = nil
        report()
        continuation.finish()
    }

    private func report() {
        let (frames, bytes) = unreported
        unreported = (0, 0)
        if frames > 0 { release(frames, bytes) }
    }
}
