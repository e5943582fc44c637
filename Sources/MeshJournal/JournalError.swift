// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CSQLite

/// What SQLite said. Never its message, which may quote what was stored: the code's own text says enough.
struct SQLiteError: Error, Hashable {
    /// The extended result code (`SQLITE_…`).
    var code: Int32
    /// The `errno` beneath it, or 0.
    var systemError: Int32
    /// What was being done, such as `keep a message`.
    var operation: String

    /// The primary result code.
    var primaryCode: Int32 { code & 0xFF }
    /// Whether the file is not, or is no longer, a sound database.
    var isDamage: Bool { primaryCode == SQLITE_CORRUPT || primaryCode == SQLITE_NOTADB }
    /// Whether another program has the file locked.
    var isLock: Bool { primaryCode == SQLITE_BUSY || primaryCode == SQLITE_LOCKED }
}

/// Why a call of the journal failed, inside the target; `MeshError+SQLite.swift` has the words.
enum JournalError: Error {
    case sqlite(SQLiteError)
    /// A call to the system failed; `errno`.
    case system(Int32, operation: String)
    /// Something else than a file has the path.
    case notAFile
    /// Another process has the journal open.
    case inUse
    /// A newer version of the program wrote it.
    case newerSchema(Int64)
    /// A database, but none of ours.
    case foreign
    /// It was closed.
    case closed

    /// Whether it tells of the file, or what lies beneath it, rather than of the one call.
    var isOfStorage: Bool {
        switch self {
        case .sqlite(let error): error.primaryCode != SQLITE_TOOBIG && error.primaryCode != SQLITE_CONSTRAINT
        case .system, .notAFile, .inUse, .newerSchema, .foreign: true
        case .closed: false
        }
    }
}
