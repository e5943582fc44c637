// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// Tells when something in a folder is made, removed, renamed or changes its rights (inotify(7)). Dropping it ends the watch.
/// Used on the loop's thread only.
///
/// Not libuv's: that one also tells of each write to a file, and in `/dev` programs write all the time.
public final class LoopFolderWatch {
    private let watch: InotifyWatch

    /// `onChange` comes once for any number of changes. The end of the folder itself is one, and the last.
    public init(_ loop: EventLoop, folder: String, onChange: @escaping () -> Void) throws(LoopError) {
        let changes = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF
        watch = try InotifyWatch(
            loop, path: folder, for: changes | IN_ONLYDIR, "watch \(folder)",
            onChange: onChange)
    }
}
