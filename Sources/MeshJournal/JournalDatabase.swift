// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI

/// The journal's file and what is known of it. All of it blocks.
///
/// Sendable because of one invariant: ``MessageJournal`` has at most one call of it running at a time, on a thread of
/// libuv's pool, and touches nothing of it meanwhile.
final class JournalDatabase: @unchecked Sendable {
    /// What is known without asking the file. A value, so that a transaction that fails gives back what was before.
    struct Book {
        var devices: [String: Device] = [:]
        /// The newest number of all.
        var lastSequence: Int64 = 0
        /// How many cursors there are.
        var cursors = 0
        /// Messages up to this number were looked at for their age and have to stay: their times are in the future.
        var agePosition: Int64 = 0
    }

    /// One device that the journal has ever heard of.
    struct Device {
        let id: Int64
        /// The newest sequence number, kept or not.
        var head: Int64
        /// How many messages are kept; counted when it is first needed.
        var entries: Int?
    }

    /// What a batch of calls gave.
    struct Outcome: Sendable {
        /// Resume the callers, in the order of the calls.
        var deliveries: [@Sendable () -> Void]
        /// The newest sequence numbers, by device.
        var heads: [String: Int64]
        /// What the calls have shown of the file; nil: nothing, such as reads that succeed.
        var storage: Storage?
    }

    /// What calls have shown of the file.
    enum Storage: Sendable {
        case wrote
        case failed(JournalError)
    }

    let settings: JournalSettings
    let log: LogSink
    /// nil: closed.
    var file: JournalFile?
    /// nil: closed, or damaged and not yet begun anew.
    var connection: SQLiteConnection? { didSet { isSynchronous = nil } }
    var book = Book()
    /// Messages after this one came while this object lived, which has been for the time since `openedAt`.
    var firstSequence: Int64 = 0
    let openedAt: Duration
    /// Why a damaged file was set aside; nobody has asked yet.
    var replaced: SQLiteError?
    /// How many transactions were tried.
    private(set) var transactions = 0
    /// What the batch under way has shown of the file. One failure counts more than any number of successes.
    private var storage: Storage?
    /// Whether a commit waits for the disk at present.
    private(set) var isSynchronous: Bool?

    /// Takes the file's lock; ``open()`` comes next.
    init(path: String, settings: JournalSettings, log: LogSink, at moment: JournalMoment) throws(JournalError) {
        self.settings = settings
        self.log = log
        openedAt = moment.uptime
        file = try JournalFile(path)
    }

    /// Closes the file. SQLite moves what is in the log into the database. Does nothing when it is closed.
    func close() {
        connection = nil
        file = nil
    }

    /// The newest sequence numbers, by device.
    var heads: [String: Int64] { book.devices.mapValues(\.head) }

    // MARK: Batches

    /// Does calls that are either all reads or all writes. Writes share a transaction; if it fails, each gets one of its
    /// own, so that it fails by itself alone. Only where another program has the file locked they fail together: each would
    /// wait for it anew.
    func perform(_ operations: [JournalOperation]) -> Outcome {
        storage = nil
        let deliveries: [@Sendable () -> Void]
        if operations.count > 1, operations.allSatisfy(\.isWrite) {
            deliveries = together(operations)
        } else {
            deliveries = operations.map(alone)
        }
        return Outcome(deliveries: deliveries, heads: heads, storage: storage)
    }

    private func together(_ operations: [JournalOperation]) -> [@Sendable () -> Void] {
        do throws(JournalError) {
            let deliveries = try inTransaction(operations)
            storage = .wrote
            return deliveries
        } catch .sqlite(let error) where error.isLock {
            return operations.map { failure(of: $0, .sqlite(error)) }
        } catch {
            return operations.map(alone)
        }
    }

    private func alone(_ operation: JournalOperation) -> @Sendable () -> Void {
        do throws(JournalError) {
            return try attempt(operation)
        } catch {
            guard case .sqlite(let cause) = error, cause.isDamage else { return failure(of: operation, error) }
            // Found long after the start. What comes must be kept all the same: the radio has forgotten it.
            do throws(JournalError) {
                try replaceDamaged(cause)
                return try attempt(operation)
            } catch {
                return failure(of: operation, error)
            }
        }
    }

    private func failure(of operation: JournalOperation, _ error: JournalError) -> @Sendable () -> Void {
        if error.isOfStorage { storage = .failed(error) }
        return { operation.fail(error) }
    }

    private func attempt(_ operation: JournalOperation) throws(JournalError) -> (@Sendable () -> Void) {
        guard file != nil else { throw .closed }
        // After a damage that could not be dealt with.
        if connection == nil { try open() }
        guard operation.isWrite else { return try operation.run(self) }
        let delivery = try inTransaction([operation])[0]
        if storage == nil { storage = .wrote }
        return delivery
    }

    private func inTransaction(
        _ operations: [JournalOperation]
    ) throws(JournalError) -> [@Sendable () -> Void] {
        let before = book
        do throws(JournalError) {
            try setSynchronous(operations.contains(where: \.isDurable))
            let connection = try connected()
            transactions += 1
            try connection.execute("BEGIN IMMEDIATE", "lock the journal")
            var deliveries: [@Sendable () -> Void] = []
            for operation in operations { deliveries.append(try operation.run(self)) }
            try connection.execute("COMMIT", "write the journal")
            return deliveries
        } catch {
            book = before
            if let connection, connection.isInTransaction { try? connection.execute("ROLLBACK", "undo a change") }
            throw error
        }
    }

    /// Between transactions only. In WAL mode NORMAL waits for the disk at checkpoints, FULL at each commit too.
    private func setSynchronous(_ isSynchronous: Bool) throws(JournalError) {
        guard isSynchronous != self.isSynchronous else { return }
        try connected().execute("PRAGMA synchronous = \(isSynchronous ? "FULL" : "NORMAL")", "write the journal")
        self.isSynchronous = isSynchronous
    }

    /// The open connection.
    func connected() throws(JournalError) -> SQLiteConnection {
        guard let connection else { throw .closed }
        return connection
    }
}
