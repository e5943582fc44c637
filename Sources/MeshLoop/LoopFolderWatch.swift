// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV

/// Tells when something in a folder is made, removed, renamed or changes its rights (inotify). Dropping it ends the watch. Used
/// on the loop's thread only.
public final class LoopFolderWatch {
    private let uv: UnsafeMutablePointer<uv_fs_event_t>
    private let onChange: () -> Void

    /// `onChange` may come several times for one change. The end of the folder itself is a change, and the last one.
    public init(_ loop: EventLoop, folder: String, onChange: @escaping () -> Void) throws(LoopError) {
        assert(loop.isOnLoop)
        uv = .allocate(capacity: 1)
        self.onChange = onChange
        uv_fs_event_init(loop.uv, uv)
        uv.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        let status = uv_fs_event_start(uv, { handle, _, _, _ in LoopFolderWatch.changed(handle) }, folder, 0)
        // `deinit` closes the handle.
        if status < 0 { throw LoopError(status: status, operation: "watch \(folder)") }
    }

    deinit {
        uv.pointee.data = nil
        uv_close(handle(uv)) { $0?.deallocate() }
    }

    private static func changed(_ pointer: UnsafeMutablePointer<uv_fs_event_t>?) {
        guard let data = pointer?.pointee.data else { return }
        Unmanaged<LoopFolderWatch>.fromOpaque(data).takeUnretainedValue().onChange()
    }
}
