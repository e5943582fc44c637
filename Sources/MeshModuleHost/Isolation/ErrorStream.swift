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
    /// What a pipe holds: a process that has ended has left no more. Another one that has its end may write for ever.
    private static let capacity = 65_536

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

    /// The process has ended: what it has left, in which its last words are.
    func finish() -> [(level: LogLevel, text: String)] {
        poll?.wait(for: [])
        var records: [(level: LogLevel, text: String)] = []
        var left = Self.capacity
        while left > 0 {
            let count = take { records.append($0) }
            guard count > 0 else { break }
            left -= count
        }
        if let record = lines.finish() { records.append(record) }
        return records
    }

    private func read() {
        let count = take { onRecord($0.level, $0.text) }
        // Everybody who had it has closed it.
        if count == 0 { poll?.wait(for: []) }
    }

    /// Reads one portion; as read(2).
    private func take(_ tell: ((level: LogLevel, text: String)) -> Void) -> Int {
        withUnsafeTemporaryAllocation(byteCount: Self.portion, alignment: 1) { buffer in
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            for record in lines.take(buffer.prefix(max(0, count))) { tell(record) }
            return count
        }
    }
}
