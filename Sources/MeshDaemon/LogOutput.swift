// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// Where log lines go: a file, a pipe, a terminal or a socket that is written to without ever waiting.
///
/// An inherited descriptor is shared with other programs, the shell for one, and is not set non-blocking. A pipe or
/// terminal is opened once more instead (proc_pid_fd(5)), which gives this process a description of its own.
struct LogOutput: ~Copyable {
    /// The longest line: up to here a pipe takes all or nothing (PIPE_BUF, pipe(7)).
    static let maximumLine = 4_096

    private let inherited: Int32
    private let own: Int32
    private let isSocket: Bool
    /// The end of a line that a terminal took half of.
    private var rest: ArraySlice<UInt8> = []
    /// Lines that found no room since the last note.
    private(set) var lost: UInt64 = 0

    init(_ descriptor: Int32) {
        var facts = stat()
        let kind = fstat(descriptor, &facts) == 0 ? facts.st_mode & S_IFMT : 0
        inherited = descriptor
        isSocket = kind == S_IFSOCK
        own =
            kind == S_IFIFO || kind == S_IFCHR
            ? open("/proc/self/fd/\(descriptor)", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1
    }

    deinit {
        if own >= 0 { close(own) }
    }

    /// Writes a line that tells of what was lost.
    mutating func writeNote(_ line: [UInt8]) {
        let before = lost
        write(line)
        lost = lost > before ? before : 0
    }

    /// Writes a line, or counts it as lost.
    mutating func write(_ line: [UInt8]) {
        rest = rest.dropFirst(put(rest))
        guard rest.isEmpty else { return lost += 1 }
        var line = line[...]
        if line.count > Self.maximumLine { line = line.prefix(Self.maximumLine - 1) + [UInt8(ascii: "\n")] }
        let count = put(line)
        if count == 0 { lost += 1 } else { rest = line.dropFirst(count) }
    }

    /// How many bytes there was room for.
    private func put(_ bytes: ArraySlice<UInt8>) -> Int {
        guard !bytes.isEmpty else { return 0 }
        return bytes.withUnsafeBytes { bytes in
            while true {
                let count = put(bytes)
                if count >= 0 || errno != EINTR { return max(count, 0) }
            }
        }
    }

    private func put(_ bytes: UnsafeRawBufferPointer) -> Int {
        if own >= 0 { return Glibc.write(own, bytes.baseAddress, bytes.count) }
        if isSocket {
            return send(inherited, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
        }
        // A file, which always takes what it gets; or a pipe that may not be opened again, which has room for one line.
        var facts = pollfd(fd: inherited, events: Int16(POLLOUT), revents: 0)
        guard poll(&facts, 1, 0) == 1 else { return 0 }
        return Glibc.write(inherited, bytes.baseAddress, bytes.count)
    }
}
