// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV

extension LoopStream {
    /// Closes this side once all that was written has gone to the kernel: the peer gets the end after the last byte, and may
    /// still send. Nothing can be written afterwards. A peer that is gone is noticed by reading.
    public func finishWriting() {
        guard !isClosed else { return }
        let request = UnsafeMutablePointer<uv_shutdown_t>.allocate(capacity: 1)
        let status = uv_shutdown(request, stream) { request, _ in request?.deallocate() }
        // Not connected any more, or done before.
        if status < 0 { request.deallocate() }
    }
}
