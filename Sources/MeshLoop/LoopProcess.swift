// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV

/// A child process. Dropping it does not end the child: call ``signal(_:)``. Used on the loop's thread only.
public final class LoopProcess {
    /// How a child ended.
    public struct Exit: Sendable, Hashable {
        /// The status it gave to `exit`, 0...255.
        public var status: Int64
        /// The signal that ended it, or 0.
        public var signal: Int32
    }

    private let uv: UnsafeMutablePointer<uv_process_t>
    private let time: VirtualTime?
    private var onExit: ((Exit) -> Void)?
    /// Its process id.
    public var pid: Int32 { uv.pointee.pid }
    /// Whether it has not ended yet.
    public var isRunning: Bool { onExit != nil }

    /// Starts `arguments[0]` (searched in PATH) with exactly this environment. `descriptors` become the child's 0, 1,
    /// 2, …; nil there means `/dev/null`. All others are closed in the child.
    public init(
        _ loop: EventLoop, arguments: [String], environment: [String: String], descriptors: [Int32?],
        onExit: @escaping (Exit) -> Void
    ) throws(LoopError) {
        assert(loop.isOnLoop)
        time = loop.virtualTime
        uv = .allocate(capacity: 1)
        uv.initialize(to: uv_process_t())
        self.onExit = onExit
        var stdio = descriptors.map { descriptor in
            var container = uv_stdio_container_t()
            container.flags = descriptor == nil ? UV_IGNORE : UV_INHERIT_FD
            container.data.fd = descriptor ?? 0
            return container
        }
        let status = withCStrings(arguments) { argv in
            withCStrings(environment.map { "\($0)=\($1)" }) { env in
                stdio.withUnsafeMutableBufferPointer { stdio in
                    var options = uv_process_options_t()
                    options.file = UnsafePointer(argv[0])
                    options.args = argv.baseAddress
                    options.env = env.baseAddress
                    options.stdio_count = Int32(stdio.count)
                    options.stdio = stdio.baseAddress
                    options.exit_cb = { LoopProcess.exited($0, $1, $2) }
                    return uv_spawn(loop.uv, uv, &options)
                }
            }
        }
        uv.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        if status < 0 { self.onExit = nil } else { time?.outsideWork += 1 }
        try LoopError.check(status, "start \(arguments.first ?? "")")
    }

    deinit {
        if isRunning { time?.outsideWork -= 1 }
        uv.pointee.data = nil
        uv_close(handle(uv)) { $0?.deallocate() }
    }

    /// Sends it a signal. Does nothing once it has ended, so a reused process id is never hit.
    public func signal(_ number: Int32) {
        if isRunning { uv_process_kill(uv, number) }
    }

    private static func exited(_ pointer: UnsafeMutablePointer<uv_process_t>?, _ status: Int64, _ signal: Int32) {
        guard let data = pointer?.pointee.data else { return }
        let process = Unmanaged<LoopProcess>.fromOpaque(data).takeUnretainedValue()
        let onExit = process.onExit
        process.onExit = nil
        process.time?.outsideWork -= 1
        onExit?(Exit(status: status, signal: signal))
    }
}

/// A NULL-ended array of C strings, valid during the call.
private func withCStrings<Result>(
    _ strings: [String], _ body: (UnsafeMutableBufferPointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
    var copies = strings.map { string in
        let bytes = string.utf8CString
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
        for (index, byte) in bytes.enumerated() { copy[index] = byte }
        return Optional(copy)
    }
    copies.append(nil)
    defer { for copy in copies { copy?.deallocate() } }
    return copies.withUnsafeMutableBufferPointer { body($0) }
}
