// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV

/// Calls a closure when the process gets a signal. Dropping it restores the default. Used on the loop's thread only.
public final class LoopSignal {
    private let uv: UnsafeMutablePointer<uv_signal_t>
    private let onSignal: () -> Void

    /// `number` is such as `SIGTERM`.
    public init(_ loop: EventLoop, _ number: Int32, _ onSignal: @escaping () -> Void) throws(LoopError) {
        assert(loop.isOnLoop)
        uv = .allocate(capacity: 1)
        self.onSignal = onSignal
        uv_signal_init(loop.uv, uv)
        uv.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        try LoopError.check(
            uv_signal_start(uv, { pointer, _ in LoopSignal.arrived(pointer) }, number), "signal \(number)")
    }

    deinit {
        uv.pointee.data = nil
        uv_close(handle(uv)) { $0?.deallocate() }
    }

    private static func arrived(_ pointer: UnsafeMutablePointer<uv_signal_t>?) {
        guard let data = pointer?.pointee.data else { return }
        Unmanaged<LoopSignal>.fromOpaque(data).takeUnretainedValue().onSignal()
    }
}
