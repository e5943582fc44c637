// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV
internal import Glibc

/// The clock of a loop with ``LoopTime/virtual`` time, and the timers that wait for it. Used on the loop's thread only.
final class VirtualTime {
    /// A timer that will fire. Unretained: a timer that goes takes its entry with it.
    private struct Entry {
        var deadline: Duration
        /// Among equal deadlines, the one that was set first fires first.
        var serial: UInt64
        var timer: Unmanaged<LoopTimer>
    }

    /// How many turns in a row must bring nothing before the clock goes on. libuv puts some things off to its next turn,
    /// such as the end of a connect, and the watch of a descriptor begins with the poll: they are there by then.
    private static let quietTurns = 4

    /// Not zero, which would hide a deadline that was never set.
    private(set) var now = Duration.seconds(86_400)
    /// What is under way outside of the loop and will come back to it. The clock waits for it.
    var outsideWork = 0
    /// In the order in which they fire, the next one last.
    private var entries: [Entry] = []
    private var nextSerial: UInt64 = 0
    private var quiet = 0

    // MARK: Timers

    func schedule(_ timer: LoopTimer, after milliseconds: UInt64) {
        cancel(timer)
        let entry = Entry(
            deadline: now + .milliseconds(milliseconds), serial: nextSerial, timer: .passUnretained(timer))
        nextSerial += 1
        // Behind all that are due later: it is the last one of its own deadline.
        var index = entries.endIndex
        while index > 0, entries[index - 1].deadline <= entry.deadline { index -= 1 }
        entries.insert(entry, at: index)
    }

    func cancel(_ timer: LoopTimer) {
        let pointer = Unmanaged.passUnretained(timer).toOpaque()
        entries.removeAll { $0.timer.toOpaque() == pointer }
    }

    // MARK: Turns of the loop

    /// Whether the loop has to look again before anything else happens.
    var needsTurn: Bool {
        guard let next = entries.last else { return false }
        return outsideWork == 0 || next.deadline <= now
    }

    /// Jobs have run.
    func worked() {
        quiet = 0
    }

    func willPoll(_ loop: EventLoop) {
        if !entries.isEmpty, hasEvents(loop) { quiet = 0 }
    }

    /// After a poll and the jobs that it led to. Fires what is due, and lets the clock go on when nothing else can happen.
    func hasPolled(_ loop: EventLoop) {
        guard !entries.isEmpty else { return }
        quiet = hasEvents(loop) ? 0 : quiet + 1
        if quiet > Self.quietTurns, outsideWork == 0, let next = entries.last { now = max(now, next.deadline) }
        // What is set meanwhile has its turn after the jobs of these.
        let end = nextSerial
        while let next = entries.last, next.deadline <= now, next.serial < end {
            entries.removeLast()
            quiet = 0
            next.timer.takeUnretainedValue().expire()
        }
    }

    /// Whether a poll would bring something: libuv's set of descriptors can be polled itself (epoll(7)).
    private func hasEvents(_ loop: EventLoop) -> Bool {
        var entry = pollfd(fd: uv_backend_fd(loop.uv), events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) > 0
    }
}
