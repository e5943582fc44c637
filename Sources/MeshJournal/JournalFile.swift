// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

/// The file of a journal and the lock that makes this object its only user. All of it blocks.
///
/// The lock is a file of its own (`.lock`): SQLite's locks are gone as soon as the process closes any descriptor of the
/// database, and people may read it with `sqlite3` while the program runs.
final class JournalFile {
    let path: String
    private let lock: Int32

    /// Where a damaged file is kept.
    var corruptPath: String { path + ".corrupt" }

    /// Takes the lock.
    init(_ path: String) throws(JournalError) {
        self.path = path
        lock = open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        // From here on a throw runs `deinit`, which closes the descriptor: every stored property has its value.
        guard lock >= 0 else { throw .system(errno, operation: "lock the journal") }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            throw errno == EWOULDBLOCK ? .inUse : .system(errno, operation: "lock the journal")
        }
    }

    deinit {
        // Closing is not enough while a child that was just forked still has the descriptor.
        flock(lock, LOCK_UN)
        close(lock)
    }

    /// Makes the file, readable for this user only, if there is none; SQLite would let everybody read it. Before SQLite
    /// opens it.
    func create() throws(JournalError) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        if descriptor < 0 {
            throw errno == EISDIR || errno == ELOOP || errno == ENXIO
                ? .notAFile : .system(errno, operation: "open the journal")
        }
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { throw .notAFile }
    }

    /// Gives a damaged database another name, with the log that belongs to it. One that was set aside before is lost.
    func setAside() throws(JournalError) {
        unlink(corruptPath + "-wal")
        unlink(path + "-shm")
        if rename(path, corruptPath) != 0 { throw .system(errno, operation: "set the damaged journal aside") }
        if rename(path + "-wal", corruptPath + "-wal") != 0, errno != ENOENT {
            throw .system(errno, operation: "set the damaged journal aside")
        }
    }

    /// What the database and its log take.
    var size: Int64 {
        [path, path + "-wal"].reduce(0) { sum, path in
            var facts = stat()
            return stat(path, &facts) == 0 ? sum + Int64(facts.st_size) : sum
        }
    }
}
