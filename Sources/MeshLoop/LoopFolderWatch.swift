// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// Tells when something in a folder is made, removed, renamed or changes its rights (inotify(7)). Dropping it ends the watch.
/// Used on the loop's thread only.
///
/// Not libuv's: that one also tells of each write to a file, and in `/dev` programs write all the time.
public final class LoopFolderWatch {
    private let descriptor: Int32
    private var poll: LoopPoll?

    /// `onChange` comes once for any number of changes. The end of the folder itself is one, and the last.
    public init(_ loop: EventLoop, folder: String, onChange: @escaping () -> Void) throws(LoopError) {
        let operation = "watch \(folder)"
        descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        // From here on `deinit` runs, also after a throw.
        guard descriptor >= 0 else { throw LoopError(status: -errno, operation: operation) }
        let changes = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF
        guard inotify_add_watch(descriptor, folder, UInt32(changes) | UInt32(IN_ONLYDIR)) >= 0 else {
            throw LoopError(status: -errno, operation: operation)
        }
        poll = try LoopPoll(loop, descriptor: descriptor) { [descriptor] _, _ in
            LoopFolderWatch.drain(descriptor)
            onChange()
        }
        poll?.wait(for: .readable)
    }

    deinit {
        // The poll ends before its descriptor does.
        poll = nil
        if descriptor >= 0 { close(descriptor) }
    }

    /// What it was does not matter: whoever watches looks again.
    private static func drain(_ descriptor: Int32) {
        withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) { buffer in
            while read(descriptor, buffer.baseAddress, buffer.count) > 0 {}
        }
    }
}
