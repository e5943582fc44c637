// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CLibUV
internal import Glibc

/// Unix sockets in the file system, as system calls that never wait.
enum UnixSocket {
    /// The longest path, in bytes: `sun_path` without its final NUL (unix(7)).
    static let maximumPathLength = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// Calls `body` with the address of a path. A path that does not fit, or is none, is an error, never cut.
    static func withAddress<Result>(
        of path: String, _ operation: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) throws(LoopError) -> Result {
        let length = path.utf8.count
        guard length <= maximumPathLength, length > 0, !path.utf8.contains(0) else {
            throw LoopError(
                kind: .invalidArgument, operation: operation,
                detail: length > maximumPathLength
                    ? "the path has \(length) bytes, a socket's at most \(maximumPathLength)" : "this is no path")
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    /// A descriptor that is bound to a new file at the path. A file that nobody listens on any more is replaced if
    /// `replacesStale`; any other that is there is an error.
    static func bind(_ path: String, mode: UInt32, replacesStale: Bool) throws(LoopError) -> Int32 {
        let operation = "bind \(path)"
        let descriptor = try make(operation)
        do throws(LoopError) {
            if replacesStale, try isDeserted(path, operation) { unlink(path) }
            // The file must never be more open than asked for, not even for a moment.
            let mask = umask(mode_t(0o777 & ~mode))
            let failure = try withAddress(of: path, operation) { Glibc.bind(descriptor, $0, $1) == 0 ? 0 : errno }
            umask(mask)
            try LoopError.check(-failure, operation)
        } catch {
            close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Whether there is a socket's file at the path on which nobody listens. Throws where there is another file, or somebody
    /// who does.
    static func isDeserted(_ path: String, _ operation: String) throws(LoopError) -> Bool {
        let probe = try make(operation)
        defer { close(probe) }
        // The length is judged before the file: what a path that is cut would name is nobody's.
        let failure = try withAddress(of: path, operation) { address, length -> Int32? in
            var facts = stat()
            guard lstat(path, &facts) == 0 else { return nil }
            guard facts.st_mode & S_IFMT == S_IFSOCK else { return ENOTSOCK }
            return Glibc.connect(probe, address, length) == 0 ? 0 : errno
        }
        switch failure {
        case nil: return false
        case ECONNREFUSED?: return true
        case ENOTSOCK?:
            throw LoopError(kind: .addressInUse, operation: operation, detail: "a file that is no socket is there")
        // EAGAIN as well: somebody listens, and has no room for more connections (unix(7)).
        default:
            throw LoopError(kind: .addressInUse, operation: operation, detail: "another process listens there")
        }
    }

    private static func make(_ operation: String) throws(LoopError) -> Int32 {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_UNIX, type, 0)
        if descriptor < 0 { throw LoopError(status: -errno, operation: operation) }
        return descriptor
    }
}

/// Which file a path names.
struct FileIdentity: Equatable {
    private var device: UInt64
    private var inode: UInt64

    /// Nil when there is none. A symbolic link counts as itself.
    init?(_ path: String) {
        var facts = stat()
        guard lstat(path, &facts) == 0 else { return nil }
        device = UInt64(facts.st_dev)
        inode = UInt64(facts.st_ino)
    }
}
