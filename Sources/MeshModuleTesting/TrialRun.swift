// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import Glibc
internal import MeshLoop
internal import MeshTransportAPI
internal import MeshTransportTesting

/// The process of one trial, as who waits for it sees it. Used on the loop's thread only.
final class TrialRun {
    /// What came of it.
    struct Ending {
        var answer: TrialAnswer
        /// What the process wrote to standard output, which is nobody's to write to.
        var output: [String]
        /// The last lines of standard error.
        var errors: [String]

        init(answer: TrialAnswer, output: [String], errors: [String]) {
            self.answer = answer
            self.output = output
            self.errors = errors
        }

        /// No process was started.
        init(skipped why: String) {
            self.init(answer: TrialAnswer(.skipped(why)), output: [], errors: [])
        }
    }

    private let loop: EventLoop
    /// How long the process may say nothing.
    private let patience: Duration
    private var process: LoopProcess?
    private let timer: LoopTimer
    private var exit: LoopProcess.Exit?
    private var isOverdue = false
    /// What the process did last.
    private var doing = ""
    private var answer: TrialAnswer?

    init(_ loop: EventLoop, patience: Duration) {
        self.loop = loop
        self.patience = patience
        timer = LoopTimer(loop)
    }

    /// Starts `program` with the request, and turns the loop until it has ended.
    func run(_ program: String, _ request: TrialRequest) throws -> Ending {
        let input = try Pipe()
        let pipes = [try Pipe(), try Pipe(), try Pipe()]
        let output = try PipeReader(loop, pipes[0])
        let errors = try PipeReader(loop, pipes[1])
        let words = try PipeReader(loop, pipes[2]) { [unowned self] in hear($0) }
        var environment = ProcessInfo.processInfo.environment
        // A Swift module that crashes would go on for seconds to tell where.
        environment["SWIFT_BACKTRACE"] = "enable=no"
        process = try LoopProcess(
            loop, arguments: [program, TrialProcess.word], environment: environment,
            descriptors: [input.readEnd] + pipes.map(\.writeEnd)
        ) { [unowned self] in
            exit = $0
            loop.stop()
        }
        for pipe in pipes { pipe.closeWriteEnd() }
        input.write(request.document)
        hurry()
        while exit == nil { loop.run() }
        timer.cancel()
        for reader in [output, errors, words] { reader.finish() }
        return Ending(answer: ending(), output: output.lines, errors: errors.lines)
    }

    private func hear(_ line: String) {
        if line.hasPrefix("{"), let json = try? JSONValue(parsing: Data(line.utf8)) {
            answer = TrialAnswer(json)
        } else {
            doing = line
        }
        hurry()
    }

    private func hurry() {
        timer.schedule(after: patience) { [unowned self] in
            isOverdue = true
            process?.signal(SIGKILL)
        }
    }

    private func ending() -> TrialAnswer {
        if let answer { return answer }
        let place = doing.isEmpty ? "" : ", in \(doing)"
        if isOverdue {
            var answer = TrialAnswer(.broken("nothing has happened for \(patience.optionText)\(place)"))
            answer.isOverdue = true
            return answer
        }
        guard let exit, exit.signal != 0 else {
            return TrialAnswer(.broken("the process ended with status \(exit?.status ?? -1)\(place)"))
        }
        let name = strsignal(exit.signal).map { String(cString: $0) } ?? ""
        return TrialAnswer(.broken("the process was ended by signal \(exit.signal) (\(name))\(place)"))
    }
}

/// A pipe. Its ends are closed with it.
private final class Pipe {
    let readEnd: Int32
    private(set) var writeEnd: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else {
            throw MeshError(.resourceExhausted, "no pipe can be made: \(String(cString: strerror(errno)))")
        }
        // One thread: no program is started in between.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        (readEnd, writeEnd) = (ends[0], ends[1])
    }

    deinit {
        closeWriteEnd()
        close(readEnd)
    }

    func closeWriteEnd() {
        if writeEnd >= 0 { close(writeEnd) }
        writeEnd = -1
    }

    /// Writes all of it, and ends it. A reader that has gone is noticed elsewhere.
    func write(_ document: Data) {
        var bytes = Array(document)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(writeEnd, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { break }
            bytes = bytes.dropFirst(count)
        }
        closeWriteEnd()
    }
}

/// Reads lines out of a pipe, and keeps the last ones.
private final class PipeReader {
    private static let limit = 20

    private let pipe: Pipe
    private var poll: LoopPoll?
    private let onLine: (String) -> Void
    private var rest: [UInt8] = []
    private(set) var lines: [String] = []

    init(_ loop: EventLoop, _ pipe: Pipe, onLine: @escaping (String) -> Void = { _ in }) throws {
        self.pipe = pipe
        self.onLine = onLine
        poll = try LoopPoll(loop, descriptor: pipe.readEnd) { [unowned self] _, _ in
            if !read() { poll = nil }
        }
        poll?.wait(for: .readable)
    }

    /// Reads what is left, and watches no more.
    func finish() {
        poll = nil
        while read() {}
        if !rest.isEmpty { take(rest[...]) }
        rest = []
    }

    /// Whether there was something, or may be later.
    private func read() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = Glibc.read(pipe.readEnd, &buffer, buffer.count)
        guard count > 0 else { return count < 0 && errno == EAGAIN && poll != nil }
        rest += buffer.prefix(count)
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            take(rest[..<end])
            rest.removeSubrange(...end)
        }
        // A line without an end.
        if rest.count > 1 << 20 { rest = [] }
        return true
    }

    private func take(_ line: ArraySlice<UInt8>) {
        let line = String(decoding: line, as: UTF8.self)
        lines.append(line)
        if lines.count > Self.limit { lines.removeFirst() }
        onLine(line)
    }
}
