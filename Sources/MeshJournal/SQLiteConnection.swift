// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CSQLite
internal import FoundationEssentials
internal import Glibc
internal import MeshTransportAPI

/// A value for a parameter of a statement.
enum SQLiteValue {
    case integer(Int64)
    case text(String)
    case blob(Data)
    case null
}

/// The row that a statement stands on; valid until its next step.
struct SQLiteRow {
    fileprivate let statement: OpaquePointer

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

    /// nil for NULL.
    func text(_ column: Int32) -> String? {
        guard let bytes = sqlite3_column_text(statement, column) else { return nil }
        let count = Int(sqlite3_column_bytes(statement, column))
        return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    func blob(_ column: Int32) -> Data {
        guard let bytes = sqlite3_column_blob(statement, column) else { return Data() }
        return Data(bytes: bytes, count: Int(sqlite3_column_bytes(statement, column)))
    }
}

/// One open database with the statements that were prepared for it. Every call blocks. One thread at a time; it need not
/// always be the same one.
final class SQLiteConnection {
    private let handle: OpaquePointer
    private var prepared: [JournalStatement: OpaquePointer] = [:]

    /// Opens a file that exists.
    init(path: String) throws(JournalError) {
        var handle: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let code = sqlite3_open_v2(path, &handle, flags, nil)
        guard code == SQLITE_OK, let handle else {
            defer { sqlite3_close_v2(handle) }
            throw .sqlite(
                SQLiteError(
                    code: code, systemError: handle.map { sqlite3_system_errno($0) } ?? 0, operation: "open the journal"
                ))
        }
        self.handle = handle
    }

    deinit {
        for statement in prepared.values { sqlite3_finalize(statement) }
        sqlite3_close_v2(handle)
    }

    /// Whether a transaction has begun and is not over. Some errors end it by themselves.
    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// How long a statement waits for another program's lock.
    func waitForLocks(_ time: Duration) {
        sqlite3_busy_timeout(handle, Int32(clamping: time.milliseconds))
    }

    /// Runs statements without parameters whose results nobody wants.
    func execute(_ sql: String, _ operation: String) throws(JournalError) {
        errno = 0
        try check(sqlite3_exec(handle, sql, nil, nil, nil), operation)
    }

    /// The number that a statement without parameters gives.
    func number(_ sql: String, _ operation: String) throws(JournalError) -> Int64 {
        var statement: OpaquePointer?
        try check(sqlite3_prepare_v2(handle, sql, -1, &statement, nil), operation)
        defer { sqlite3_finalize(statement) }
        guard let statement, sqlite3_step(statement) == SQLITE_ROW else { throw error(operation) }
        return SQLiteRow(statement: statement).integer(0)
    }

    /// Runs a statement; what it changed.
    @discardableResult
    func run(_ statement: JournalStatement, _ values: SQLiteValue...) throws(JournalError) -> Int {
        try step(statement, values) { _ in }
        return Int(sqlite3_changes(handle))
    }

    /// The first row of a statement, read by `read`; nil if there is none.
    func first<Value>(
        _ statement: JournalStatement, _ values: SQLiteValue..., read: (SQLiteRow) -> Value
    ) throws(JournalError) -> Value? {
        var value: Value?
        try step(statement, values) { if value == nil { value = read($0) } }
        return value
    }

    /// All rows of a statement, read by `read`.
    func rows<Value>(
        _ statement: JournalStatement, _ values: SQLiteValue..., read: (SQLiteRow) -> Value
    ) throws(JournalError) -> [Value] {
        var rows: [Value] = []
        try step(statement, values) { rows.append(read($0)) }
        return rows
    }

    private func step(
        _ name: JournalStatement, _ values: [SQLiteValue], row: (SQLiteRow) -> Void
    ) throws(JournalError) {
        let statement = try prepare(name)
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        errno = 0
        for (index, value) in values.enumerated() { try bind(value, Int32(index + 1), statement, name) }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: row(SQLiteRow(statement: statement))
            case SQLITE_DONE: return
            default: throw error(name.operation)
            }
        }
    }

    private func prepare(_ name: JournalStatement) throws(JournalError) -> OpaquePointer {
        if let statement = prepared[name] { return statement }
        var statement: OpaquePointer?
        try check(
            sqlite3_prepare_v3(handle, name.sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil),
            name.operation)
        guard let statement else { throw error(name.operation) }
        prepared[name] = statement
        return statement
    }

    private func bind(
        _ value: SQLiteValue, _ index: Int32, _ statement: OpaquePointer, _ name: JournalStatement
    ) throws(JournalError) {
        let code =
            switch value {
            case .integer(let number):
                sqlite3_bind_int64(statement, index, number)
            case .text(let text):
                sqlite3_bind_text(statement, index, text, Int32(clamping: text.utf8.count), mh_sqlite_transient())
            case .blob(let data) where data.isEmpty:
                // A blob without bytes has no address, and an address of nothing is bound as NULL.
                sqlite3_bind_zeroblob(statement, index, 0)
            case .blob(let data):
                data.withUnsafeBytes {
                    sqlite3_bind_blob64(statement, index, $0.baseAddress, UInt64($0.count), mh_sqlite_transient())
                }
            case .null:
                sqlite3_bind_null(statement, index)
            }
        try check(code, name.operation)
    }

    private func check(_ code: Int32, _ operation: String) throws(JournalError) {
        if code != SQLITE_OK { throw error(operation) }
    }

    /// SQLite notes the `errno` of most failures, but not of a COMMIT's, and keeps that of earlier ones.
    private func error(_ operation: String) -> JournalError {
        let systemError = errno != 0 ? errno : sqlite3_system_errno(handle)
        return .sqlite(
            SQLiteError(
                code: sqlite3_extended_errcode(handle), systemError: systemError, operation: operation))
    }
}
