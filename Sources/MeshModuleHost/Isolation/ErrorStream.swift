// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CProcess
internal import Glibc
internal import MeshLoop
internal import MeshTransportAPI

/// The reading end of a process's standard error. Owns the descriptor. Used on the loop's thread only.
final class ErrorStream {
    /// So much is read in one go, then others have their turn.
    private static let portion = 4_096

    private let descriptor: Int32
    private let onRecord: (LogLevel, String) -> Void
    private var poll: LoopPoll?
    private var lines = ErrorLines()

    /// The stream, and the end that the process gets, which is the caller's to close.
    static func open(
        _ loop: EventLoop, onRecord: @escaping (LogLevel, String) -> Void
    ) throws(LoopError) -> (stream: ErrorStream, theirs: Int32) {
        var ends: [Int32] = [-1, -1]
        let failure = meshhost_pipe(&ends)
        guard failure == 0 else {
            throw LoopError(kind: .noResources, operation: "pipe", detail: String(cString: strerror(failure)))
        }
        do throws(LoopError) {
            return (try ErrorStream(loop, descriptor: ends[0], onRecord: onRecord), ends[1])
        } catch {
            Glibc.close(ends[1])
            throw error
        }
    }

    /// Takes the descriptor over.
    private init(
        _ loop: EventLoop, descriptor: Int32, onRecord: @escaping (LogLevel, String) -> Void
    ) throws(LoopError) {
        self.descriptor = descriptor
        self.onRecord = onRecord
        let poll = try LoopPoll(loop, descriptor: descriptor) { [unowned self] _, _ in read() }
        self.poll = poll
        poll.wait(for: .readable)
    }

    deinit {
        poll = nil
        Glibc.close(descriptor)
    }

    /// The process has ended: takes what is left, as much as one portion.
    func finish() {
        read()
        if let record = lines.finish() { onRecord(record.level, record.text) }
        poll?.wait(for: [])
    }

    private func read() {
        withUnsafeTemporaryAllocation(byteCount: Self.portion, alignment: 1) { buffer in
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            if count > 0 {
                for record in lines.take(buffer.prefix(count)) { onRecord(record.level, record.text) }
            } else if count == 0 {
                // Everybody who had it has closed it.
                poll?.wait(for: [])
            }
        }
    }
}
