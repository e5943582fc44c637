// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

extension JournalDatabase {
    /// The page cache. A row among 100,000 is four pages away, and the system caches the file anyway.
    private static let cacheKibibytes = 128
    /// The log's length, in pages of 4 KiB, at which it is moved into the database.
    private static let checkpointPages = 256

    /// Opens the file. One that is missing is made, one that is damaged is set aside.
    func open() throws(JournalError) {
        do throws(JournalError) {
            try openFile()
        } catch {
            guard case .sqlite(let cause) = error, cause.isDamage else { throw error }
            try replaceDamaged(cause)
        }
    }

    /// Sets the file aside and begins a new one, which goes on with the numbers that are known.
    func replaceDamaged(_ cause: SQLiteError) throws(JournalError) {
        guard let file else { throw .closed }
        connection = nil
        try file.setAside()
        log(
            .error, "the message journal is damaged; a new one begins, without its messages and cursors",
            [("path", file.path), ("kept_as", file.corruptPath), ("found", "cannot \(cause.operation)")])
        replaced = cause
        try openFile()
    }

    /// Writes as little as can be written, where nobody looks: whether it can.
    func tryWriting() throws(JournalError) {
        try connected().execute("PRAGMA user_version = \(JournalSchema.version)", "write the journal")
    }

    private func openFile() throws(JournalError) {
        guard let file else { throw .closed }
        try file.create()
        let connection = try SQLiteConnection(path: file.path)
        connection.waitForLocks(settings.busyTimeout)
        // Looked at before anything is changed: it may be somebody else's.
        let version = try schemaVersion(connection)
        try configure(connection)
        try migrate(connection, from: version)
        book = try readBook(connection, known: book)
        if firstSequence == 0 { firstSequence = book.lastSequence + 1 }
        self.connection = connection
    }

    private func schemaVersion(_ connection: SQLiteConnection) throws(JournalError) -> Int64 {
        let operation = "open the journal"
        let version = try connection.number("PRAGMA user_version", operation)
        let application = try connection.number("PRAGMA application_id", operation)
        if application != JournalSchema.applicationID {
            let tables = try connection.number("SELECT count(*) FROM sqlite_schema", operation)
            guard application == 0, version == 0, tables == 0 else { throw .foreign }
        }
        guard version <= JournalSchema.version else { throw .newerSchema(version) }
        return version
    }

    private func configure(_ connection: SQLiteConnection) throws(JournalError) {
        try connection.execute(
            """
            PRAGMA cache_size = -\(Self.cacheKibibytes);
            PRAGMA temp_store = MEMORY;
            PRAGMA cell_size_check = ON;
            PRAGMA trusted_schema = OFF;
            PRAGMA secure_delete = ON;
            PRAGMA journal_mode = WAL;
            PRAGMA wal_autocheckpoint = \(Self.checkpointPages);
            PRAGMA journal_size_limit = \(Self.checkpointPages * 4_096);
            PRAGMA synchronous = FULL;
            """, "open the journal")
    }

    private func migrate(_ connection: SQLiteConnection, from version: Int64) throws(JournalError) {
        guard version < JournalSchema.version else { return }
        let steps = JournalSchema.steps[Int(version)...].joined(separator: "\n")
        try connection.execute(
            """
            BEGIN IMMEDIATE;
            \(steps)
            PRAGMA application_id = \(JournalSchema.applicationID);
            PRAGMA user_version = \(JournalSchema.version);
            COMMIT;
            """, "make the journal's tables")
    }

    /// What the file says, and what was known before it: after a damage the numbers must not begin again. Reads both ends
    /// of the messages, too: damage there is found now.
    private func readBook(_ connection: SQLiteConnection, known: Book) throws(JournalError) -> Book {
        var book = Book()
        let devices = try connection.rows(.devices) { row in
            (row.text(1) ?? "", Device(id: row.integer(0), head: row.integer(2)))
        }
        book.devices = Dictionary(devices) { first, _ in first }
        for (name, device) in known.devices where book.devices[name]?.head ?? 0 < device.head {
            if let id = book.devices[name]?.id {
                try connection.run(.setHead, .integer(id), .integer(device.head))
                book.devices[name]?.head = device.head
            } else {
                let id = try connection.first(.addDevice, .text(name), .integer(device.head)) { $0.integer(0) }
                book.devices[name] = Device(id: id ?? 0, head: device.head)
            }
        }
        let newest = try connection.first(.newestMessage) { $0.integer(0) } ?? 0
        _ = try connection.first(.oldestMessages, .integer(0), .integer(1)) { $0.integer(0) }
        book.lastSequence = book.devices.values.reduce(newest) { max($0, $1.head) }
        book.cursors = Int(try connection.first(.countCursors) { $0.integer(0) } ?? 0)
        return book
    }
}
