// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// One watch of inotify(7). Dropping it ends the watch. Used on the loop's thread only.
final class InotifyWatch {
    private let descriptor: Int32
    private var poll: LoopPoll?

    /// `onChange` comes once for any number of changes: what they were does not matter, whoever watches looks again.
    init(
        _ loop: EventLoop, path: String, for changes: Int32, _ operation: String, onChange: @escaping () -> Void
    ) throws(LoopError) {
        descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        // From here on `deinit` runs, also after a throw.
        guard descriptor >= 0 else { throw LoopError(status: -errno, operation: operation) }
        guard inotify_add_watch(descriptor, path, UInt32(bitPattern: changes)) >= 0 else {
            throw LoopError(status: -errno, operation: operation)
        }
        poll = try LoopPoll(loop, descriptor: descriptor) { [descriptor] _, _ in
            InotifyWatch.drain(descriptor)
            onChange()
        }
        poll?.wait(for: .readable)
    }

    deinit {
        // The poll ends before its descriptor does.
        poll = nil
        if descriptor >= 0 { close(descriptor) }
    }

    private static func drain(_ descriptor: Int32) {
        withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) { buffer in
            while read(descriptor, buffer.baseAddress, buffer.count) > 0 {}
        }
    }
}
