// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import CLibUV
import MeshLoop

/// Counts the turns of a loop, on its thread. It does not keep the loop turning.
final class TurnCounter {
    private(set) var turns = 0
    private let uv = UnsafeMutablePointer<uv_prepare_t>.allocate(capacity: 1)

    init(_ loop: EventLoop) {
        uv_prepare_init(loop.unsafeUVLoop.assumingMemoryBound(to: uv_loop_t.self), uv)
        uv.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        uv_prepare_start(uv) { handle in
            guard let data = handle?.pointee.data else { return }
            Unmanaged<TurnCounter>.fromOpaque(data).takeUnretainedValue().turns += 1
        }
    }

    deinit {
        uv.pointee.data = nil
        uv_close(UnsafeMutableRawPointer(uv).assumingMemoryBound(to: uv_handle_t.self)) { $0?.deallocate() }
    }
}
