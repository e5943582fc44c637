// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// What the system says of a path. Asks, and changes nothing.
struct PathFacts {
    enum Kind {
        case folder
        case file
        case socket
        case other
    }

    var kind: Kind
    var owner: uid_t
    var group: gid_t
    /// The permission bits.
    var mode: mode_t

    /// Nil when nothing is there, also because a folder on the way is none.
    init?(_ path: String, followsLink: Bool = true) throws(SystemError) {
        var facts = stat()
        let status = followsLink ? stat(path, &facts) : lstat(path, &facts)
        if status != 0 {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw SystemError(number: errno)
        }
        kind =
            switch facts.st_mode & S_IFMT {
            case S_IFDIR: .folder
            case S_IFREG: .file
            case S_IFSOCK: .socket
            default: .other
            }
        owner = facts.st_uid
        group = facts.st_gid
        mode = facts.st_mode & 0o7777
    }

    /// The mode as chmod(1) takes it.
    var octalMode: String { String(mode, radix: 8) }

    /// Why this user may not do that with a path (`R_OK`, `W_OK`, `X_OK`); nil when it may.
    static func obstacle(to access: Int32, _ path: String) -> SystemError? {
        faccessat(AT_FDCWD, path, access, AT_EACCESS) == 0 ? nil : SystemError(number: errno)
    }

    /// The folder that a path lies in.
    static func folder(of path: String) -> String {
        let parts = path.split(separator: "/")
        return "/" + parts.dropLast().joined(separator: "/")
    }
}

/// A failed system call.
struct SystemError: Error {
    var number: Int32

    /// Whether it is this user who may not.
    var isPermission: Bool { number == EACCES || number == EPERM || number == EROFS }
    var text: String { String(cString: strerror(number)) }
}
