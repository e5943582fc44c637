// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import Testing

/// `JournalProgram`, which is built beside the tests, as a process of its own. Its calls block.
final class JournalChild {
    private let pid: pid_t
    /// Its input and output.
    private let socket: Int32
    private var buffer: [UInt8] = []
    private var isOver = false

    init(_ arguments: String...) throws {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        defer { posix_spawn_file_actions_destroy(&actions) }
        let path = try Self.path
        let strings = ([path] + arguments).map { strdup($0) }
        defer { for string in strings { free(string) } }
        var pid: pid_t = 0
        let status = posix_spawn(&pid, path, &actions, nil, strings + [nil], environ)
        close(ends[1])
        socket = ends[0]
        self.pid = pid
        isOver = status != 0
        try #require(status == 0, "\(path): \(String(cString: strerror(status)))")
    }

    deinit {
        kill()
        close(socket)
    }

    /// The next line it prints; nil when it has ended.
    func line() -> String? {
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                defer { buffer.removeSubrange(...end) }
                return String(decoding: buffer[..<end], as: UTF8.self)
            }
            let count = read(socket, &chunk, chunk.count)
            guard count > 0 else { return nil }
            buffer += chunk[..<count]
        }
    }

    /// Ends its input and waits for its end; the status it gave.
    func finish() -> Int32 {
        shutdown(socket, Int32(SHUT_WR))
        return wait()
    }

    /// Ends it without a word of warning, if it is still there.
    func kill() {
        guard !isOver else { return }
        Glibc.kill(pid, SIGKILL)
        _ = wait()
    }

    private func wait() -> Int32 {
        isOver = true
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return status >> 8 & 0xFF
    }

    private static var path: String {
        get throws {
            var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
            let count = buffer.withUnsafeMutableBytes {
                readlink("/proc/self/exe", $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
            }
            let tests = String(decoding: buffer[..<max(0, count)], as: UTF8.self)
            let slash = try #require(tests.lastIndex(of: "/"))
            return tests[..<slash] + "/JournalProgram"
        }
    }
}
