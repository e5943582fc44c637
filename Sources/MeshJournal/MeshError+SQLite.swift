// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CSQLite
internal import Glibc
internal import MeshTransportAPI

/// The failures of SQLite, and of the file beneath it, as the host's errors.
extension MeshError {
    /// What a failed call means for the journal at `path`.
    init(_ error: JournalError, path: String) {
        switch error {
        case .sqlite(let error):
            self.init(error, path: path)
        case .system(let number, let operation):
            self.init(systemError: number, operation: operation, path: path, cause: nil)
        case .notAFile:
            self.init(.storageFailed, "\(path) is not a file; move it away, or choose another path")
        case .inUse:
            self.init(
                .serviceUnavailable, "another process has the journal \(path) open; stop it, or choose another path")
        case .newerSchema(let version):
            self.init(
                .notSupported,
                "\(path) was written by a newer version of the program (schema \(version), this one knows "
                    + "\(JournalSchema.version)); update it, or move the file away to begin a new journal")
        case .foreign:
            self.init(
                .configurationInvalid,
                "\(path) is the database of another program; move it away, or choose another path")
        case .closed:
            self.init(.cancelled, "the journal \(path) is closed")
        }
    }

    private init(_ error: SQLiteError, path: String) {
        let operation = error.operation
        func fail(_ code: Code, _ message: String) -> MeshError {
            MeshError(code, message, cause: error, context: Context(operation: operation))
        }
        let failed = "cannot \(operation) (\(path))"
        switch error.primaryCode {
        case SQLITE_BUSY, SQLITE_LOCKED:
            self = fail(.serviceUnavailable, "\(failed): another program has locked it; end that program")
        case SQLITE_FULL:
            self = fail(.storageFailed, "\(failed): the disk is full; free some space")
        case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH:
            self = fail(.permissionDenied, "\(failed): it cannot be written; check owner and mode of file and folder")
        case SQLITE_NOMEM:
            self = fail(.resourceExhausted, "\(failed): no memory is left")
        case SQLITE_CORRUPT, SQLITE_NOTADB:
            self = fail(.storageFailed, "\(failed): the file is damaged")
        case SQLITE_TOOBIG:
            self = fail(.invalidArgument, "\(failed): it is too large")
        case SQLITE_IOERR where error.code == SQLITE_IOERR | 12 << 8:  // SQLITE_IOERR_NOMEM, a macro of macros
            self = fail(.resourceExhausted, "\(failed): no memory is left")
        case SQLITE_IOERR, SQLITE_CANTOPEN:
            self.init(systemError: error.systemError, operation: operation, path: path, cause: error)
        default:
            self = fail(.internalError, "\(failed): \(String(cString: sqlite3_errstr(error.code)))")
        }
    }

    private init(systemError number: Int32, operation: String, path: String, cause: SQLiteError?) {
        let reason =
            number != 0
            ? String(cString: strerror(number)) : cause.map { String(cString: sqlite3_errstr($0.code)) } ?? "failed"
        let (code, advice): (Code, String) =
            switch number {
            case EACCES, EPERM, EROFS: (.permissionDenied, "; check owner and mode of file and folder")
            case ENOSPC, EDQUOT, EFBIG: (.storageFailed, "; free some space")
            case ENOENT, ENOTDIR: (.storageFailed, "; make the folder, or choose another path")
            case ENOMEM, EMFILE, ENFILE: (.resourceExhausted, "")
            default: (.storageFailed, "")
            }
        self.init(
            code, "cannot \(operation) (\(path)): \(reason)\(advice)", cause: cause,
            context: Context(operation: operation))
    }
}
