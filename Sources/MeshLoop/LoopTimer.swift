// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV

/// A one-shot timer. Dropping it cancels it. Used on the loop's thread only.
///
/// The closure runs in the isolation it was written in, so an actor on the loop touches its own state directly.
public final class LoopTimer {
    /// Longer delays are as long; sums of times stay sums.
    private static let longest = Duration.seconds(1 << 40)

    private let loop: EventLoop
    private let uv: UnsafeMutablePointer<uv_timer_t>
    private var fire: (() -> Void)?

    public init(_ loop: EventLoop) {
        assert(loop.isOnLoop)
        self.loop = loop
        uv = .allocate(capacity: 1)
        uv_timer_init(loop.uv, uv)
        uv.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        if fire != nil { loop.virtualTime?.cancel(self) }
        uv.pointee.data = nil
        uv_close(handle(uv)) { $0?.deallocate() }
    }

    /// Whether it will fire.
    public var isScheduled: Bool { fire != nil }

    /// Fires once, `delay` after now and not before; at most a millisecond later while the loop has time. An earlier
    /// schedule is replaced.
    public func schedule(after delay: Duration, _ fire: @escaping () -> Void) {
        assert(loop.isOnLoop)
        self.fire = fire
        if let virtualTime = loop.virtualTime { return virtualTime.schedule(self, after: delay.wholeMilliseconds) }
        uv_update_time(loop.uv)
        // libuv counts from the last whole millisecond of its clock, which may be one that lags (CLOCK_MONOTONIC_COARSE):
        // counted from there, a timer would come too early for a deadline in nanoseconds.
        let due = (loop.now + min(max(delay, .zero), Self.longest)).wholeMilliseconds
        let start = uv_now(loop.uv)
        uv_timer_start(uv, { LoopTimer.expired($0) }, delay > .zero && due > start ? due - start : 0, 0)
    }

    /// It will not fire any more.
    public func cancel() {
        guard fire != nil else { return }
        fire = nil
        if let virtualTime = loop.virtualTime { return virtualTime.cancel(self) }
        uv_timer_stop(uv)
    }

    private static func expired(_ pointer: UnsafeMutablePointer<uv_timer_t>?) {
        guard let data = pointer?.pointee.data else { return }
        Unmanaged<LoopTimer>.fromOpaque(data).takeUnretainedValue().expire()
    }

    /// Its time has come.
    func expire() {
        let fire = fire
        self.fire = nil
        fire?()
    }
}

extension Duration {
    /// Milliseconds, rounded up; 0 for negative values, and what fits into 63 bits for the longest.
    var wholeMilliseconds: UInt64 {
        guard self > .zero else { return 0 }
        // Compared first: even `components` has values that it cannot express.
        guard self < .seconds(Int64.max / 1_000) else { return UInt64(Int64.max) }
        let (seconds, attoseconds) = components
        return UInt64(seconds) * 1_000 + UInt64((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
