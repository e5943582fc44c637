// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV
internal import Glibc

extension LoopStream {
    /// Opens a serial port for this process alone: who has it is named in the error. An unplugged device is the stream's end.
    ///
    /// Runs on libuv's thread pool. Cancelling does not interrupt it; the port is then opened and returned all the same.
    public static func open(
        _ line: SerialLine, on loop: EventLoop, isolation: isolated (any Actor)? = #isolation
    ) async throws(LoopError) -> LoopStream {
        let descriptor = try await loop.blocking { () throws(LoopError) in try SerialDevice.open(line) }
        return try LoopStream(serial: descriptor, loop)
    }

    /// Takes over the descriptor. To libuv it is a pipe: bytes both ways, by `read` and `write`.
    private convenience init(serial descriptor: Int32, _ loop: EventLoop) throws(LoopError) {
        let pipe = UnsafeMutablePointer<uv_pipe_t>.allocate(capacity: 1)
        uv_pipe_init(loop.uv, pipe, 0)
        let status = uv_pipe_open(pipe, descriptor)
        self.init(loop, UnsafeMutableRawPointer(pipe).assumingMemoryBound(to: uv_stream_t.self), kind: .serial)
        if status < 0 {
            Glibc.close(descriptor)
            close()
            throw LoopError(status: status, operation: "open a serial port")
        }
    }

    /// Sets DTR and RTS of an open serial port. Asks the device, which may take its time.
    public func setControl(
        _ control: SerialControl, isolation: isolated (any Actor)? = #isolation
    ) async throws(LoopError) {
        let operation = "set DTR and RTS"
        // One of its own: the stream may be closed meanwhile, and its number another file's.
        let descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { throw LoopError(status: -errno, operation: operation) }
        try await loop.blocking { () throws(LoopError) in
            defer { Glibc.close(descriptor) }
            try SerialDevice.setControl(descriptor, control, operation)
        }
    }
}
