// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import FoundationEssentials
public import MeshLoop
public import MeshTransportAPI

/// The messages that the radios gave to this host, and how far each client has read them.
///
/// A radio forgets a message when it is read, so the journal is the only copy. One SQLite file in WAL mode for all devices;
/// the present process is its only writer. On the loop. Every statement runs on libuv's thread pool, one call at a time, in
/// the order of the calls; the loop is never blocked. Calls that have to wait are done together: their changes share a
/// transaction, their results do not. A call ends and gives its result whether or not its task is cancelled meanwhile.
///
/// A journal that is found damaged is kept as `.corrupt`, and a new one begins: at the start, or when it is noticed. It goes
/// on with the numbers that are known.
public actor MessageJournal {
    /// The largest frame, in bytes: far more than a radio's, which have at most 176.
    public static let maximumFrameLength = 65_536
    /// The largest key, in bytes.
    public static let maximumKeyLength = 1_024
    /// How many calls may wait.
    public static let maximumWaiting = 8_192
    /// How many calls are done together, so that the first does not wait long for the last.
    private static let callsAtOnce = 256
    /// Reading a cursor counts as using it, written down once in this time.
    private static let useInterval: Int64 = 86_400_000

    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    /// The file.
    public nonisolated let path: String
    private let database: JournalDatabase
    private let isDurable: Bool
    private let wallClock: @Sendable () -> Duration
    private var heads: [String: Int64]
    private var queue: [JournalOperation] = []
    private var isWorking = false
    private var isClosed = false
    private var health = JournalHealthStateMachine()
    /// Made with the first failure.
    private var retry: LoopTimer?
    /// The last failure and the last damaged file, for who asks late.
    private var failure: MeshError?
    private var replacement: JournalEvent?
    private var observer: (@Sendable (JournalEvent) -> Void)?

    private init(
        loop: EventLoop, path: String, database: JournalDatabase, heads: [String: Int64], isDurable: Bool,
        wallClock: @escaping @Sendable () -> Duration
    ) {
        self.loop = loop
        self.path = path
        self.database = database
        self.heads = heads
        self.isDurable = isDurable
        self.wallClock = wallClock
    }

    /// Opens the journal, or begins one; its folder must be there. `wallClock` gives the time since 1970-01-01 UTC.
    ///
    /// Throws ``MeshError/Code-swift.struct/serviceUnavailable`` when another process has it open,
    /// ``MeshError/Code-swift.struct/notSupported`` when a newer version wrote it,
    /// ``MeshError/Code-swift.struct/configurationInvalid`` when it is another program's database,
    /// ``MeshError/Code-swift.struct/permissionDenied`` or ``MeshError/Code-swift.struct/storageFailed``.
    public static func open(
        path: String, settings: JournalSettings, loop: EventLoop, log: LogSink,
        wallClock: @escaping @Sendable () -> Duration = { .seconds(Date().timeIntervalSince1970) }
    ) async throws(MeshError) -> MessageJournal {
        let moment = JournalMoment(wallClock: wallClock().milliseconds, uptime: loop.now)
        let (database, heads) = try await loop.blocking { () throws(MeshError) in
            do throws(JournalError) {
                let database = try JournalDatabase(path: path, settings: settings, log: log, at: moment)
                try database.open()
                return (database, database.heads)
            } catch {
                throw MeshError(error, path: path)
            }
        }
        let journal = MessageJournal(
            loop: loop, path: path, database: database, heads: heads, isDurable: settings.durability == .full,
            wallClock: wallClock)
        await journal.noteReplacement()
        return journal
    }

    /// Tells of what befalls the journal from now on, on the loop, and at once of what has befallen it.
    public func observe(_ observer: @escaping @Sendable (JournalEvent) -> Void) {
        self.observer = observer
        if let replacement { observer(replacement) }
        if let failure { observer(.failing(failure)) }
    }

    /// Does what was asked before, then closes the file. Later calls fail. Does nothing the second time.
    public func close() async {
        isClosed = true
        retry = nil
        observer = nil
        let end = enqueue(.read) { database in database.close() }
        // It can only have been closed already.
        _ = await end.get()
    }

    /// Keeps a message. When it returns, the message has survived what ``JournalSettings/durability`` says. nil: it is in
    /// the journal already, with the same device and key, received within its own window or the settings'.
    public func append(_ message: NewMessage) async throws(MeshError) -> JournalEntry? {
        guard message.frame.count <= Self.maximumFrameLength, message.key.count <= Self.maximumKeyLength else {
            throw MeshError(
                .invalidArgument,
                "a message of \(message.frame.count) bytes with a key of \(message.key.count) is too large for the journal",
                context: MeshError.Context(device: message.device, operation: "keep a message"))
        }
        let result = try submit(.write(isDurable: isDurable), device: message.device) {
            database, moment throws(JournalError) in try database.append(message, at: moment)
        }
        return try await value(of: result, device: message.device)
    }

    /// Messages of a device after a sequence number, oldest first, `limit` at most.
    public func entries(
        of device: String, after sequence: Int64, limit: Int
    ) async throws(MeshError) -> [JournalEntry] {
        guard limit > 0 else { return [] }
        let result = try submit(.read, device: device) { database, _ throws(JournalError) in
            try database.entries(of: device, after: sequence, limit: limit)
        }
        return try await value(of: result, device: device)
    }

    /// The newest sequence number of a device, whether or not the message is still kept; 0 if there never was one. From
    /// memory: a plain call.
    public func head(of device: String) -> Int64 {
        heads[device] ?? 0
    }

    /// How far an identity has read; nil if it is not known.
    public func cursor(of identity: ClientIdentity, device: String) async throws(MeshError) -> Int64? {
        let name = identity.description
        let result = try submit(.read, device: device) { database, _ throws(JournalError) in
            try database.cursor(of: name, device: device)
        }
        guard let found = try await value(of: result, device: device) else { return nil }
        let moment = now
        if abs(moment.wallClock.saturatingAdd(-found.usedAt)) >= Self.useInterval, !isClosed {
            // Nobody waits for it; if it fails, the next reading tries again.
            _ = enqueue(.write(isDurable: false)) { database throws(JournalError) in
                try database.touchCursor(of: name, device: device, at: moment)
            }
        }
        return found.sequence
    }

    /// Stores how far an identity has read. It only ever goes forward, except where `rewinding` says otherwise: when a
    /// delivery was not confirmed. When it returns, it has survived a crash of the process; a power cut can take it back.
    /// Throws ``MeshError/Code-swift.struct/invalidArgument`` for a number that no message has had.
    public func setCursor(
        _ sequence: Int64, of identity: ClientIdentity, device: String, rewinding: Bool = false
    ) async throws(MeshError) {
        let newest = heads.values.max() ?? 0
        guard (0...newest).contains(sequence) else {
            throw MeshError(
                .invalidArgument, "a cursor at \(sequence), where the newest message is \(newest)",
                context: MeshError.Context(device: device, operation: "store a cursor"))
        }
        let name = identity.description
        let result = try submit(.write(isDurable: false), device: device) { database, moment throws(JournalError) in
            try database.setCursor(sequence, of: name, device: device, rewinding: rewinding, at: moment)
        }
        try await value(of: result, device: device)
    }

    /// Forgets an identity: it is as if it had never been here.
    public func forgetCursor(of identity: ClientIdentity, device: String) async throws(MeshError) {
        let name = identity.description
        let result = try submit(.write(isDurable: false), device: device) { database, _ throws(JournalError) in
            try database.forgetCursor(of: name, device: device)
        }
        try await value(of: result, device: device)
    }

    /// What a client reads after that begins with the last `count` messages; 0 if there are no more than these.
    public func sequence(before count: Int, of device: String) async throws(MeshError) -> Int64 {
        let result = try submit(.read, device: device) { database, _ throws(JournalError) in
            try database.sequence(before: count, of: device)
        }
        return try await value(of: result, device: device)
    }

    /// What the journal holds.
    public func statistics() async throws(MeshError) -> JournalStatistics {
        let result = try submit(.read, device: nil) { database, _ throws(JournalError) in try database.statistics() }
        return try await value(of: result, device: nil)
    }

    // MARK: The queue

    private var now: JournalMoment {
        JournalMoment(wallClock: wallClock().milliseconds, uptime: loop.now)
    }

    /// How many calls wait for their turn.
    var waiting: Int { queue.count }

    /// Queues a call that somebody makes, before anything else happens on the loop.
    func submit<Value: Sendable>(
        _ kind: JournalOperation.Kind, device: String?,
        _ work: @escaping @Sendable (JournalDatabase, JournalMoment) throws(JournalError) -> Value
    ) throws(MeshError) -> LoopResult<Result<Value, JournalError>> {
        if isClosed { throw MeshError(JournalError.closed, path: path).adding(device: device) }
        guard queue.count < Self.maximumWaiting else {
            throw MeshError(
                .queueFull, "\(queue.count) calls wait for the journal \(path)",
                context: MeshError.Context(device: device))
        }
        let moment = now
        return enqueue(kind) { database throws(JournalError) in try work(database, moment) }
    }

    private func enqueue<Value: Sendable>(
        _ kind: JournalOperation.Kind,
        _ work: @escaping @Sendable (JournalDatabase) throws(JournalError) -> Value
    ) -> LoopResult<Result<Value, JournalError>> {
        let result = LoopResult<Result<Value, JournalError>>()
        queue.append(
            JournalOperation(
                kind: kind,
                run: { database throws(JournalError) in
                    let value = try work(database)
                    return { result.set(.success(value)) }
                },
                fail: { result.set(.failure($0)) }))
        if !isWorking {
            isWorking = true
            // Ends with the last call that waits, so nobody has to stop it.
            Task(executorPreference: loop.taskExecutor) { await self.work() }
        }
        return result
    }

    /// Waits for a result.
    private func value<Value: Sendable>(
        of result: LoopResult<Result<Value, JournalError>>, device: String?
    ) async throws(MeshError) -> Value {
        do throws(JournalError) {
            return try await result.get().get()
        } catch {
            throw MeshError(error, path: path).adding(device: device)
        }
    }

    private func work() async {
        while let batch = nextBatch() {
            let outcome = await loop.blocking { [database] in database.perform(batch) }
            heads = outcome.heads
            noteReplacement()
            note(outcome.storage)
            for deliver in outcome.deliveries { deliver() }
        }
        isWorking = false
    }

    // MARK: Health

    /// Between two calls of the database.
    private func noteReplacement() {
        guard let cause = database.replaced else { return }
        database.replaced = nil
        let event = JournalEvent.replaced(keptAs: path + ".corrupt", MeshError(.sqlite(cause), path: path))
        replacement = event
        observer?(event)
    }

    private func note(_ storage: JournalDatabase.Storage?) {
        switch storage {
        case .failed(let error):
            let failure = MeshError(error, path: path)
            self.failure = failure
            if health.failed(now: loop.now) == .tell { observer?(.failing(failure)) }
        case .wrote:
            if health.wrote(now: loop.now) == .haveOthersTry { observer?(.writable) }
        case nil:
            break
        }
        armRetry()
    }

    private func armRetry() {
        guard let deadline = health.nextDeadline, !isClosed else { return retry = nil }
        let timer = retry ?? LoopTimer(loop)
        retry = timer
        timer.schedule(after: deadline - loop.now) { self.retryDue() }
    }

    private func retryDue() {
        switch health.deadlineReached(now: loop.now) {
        case .tryWriting:
            // What is under way shows the same, and a disk that does not answer must not be asked more and more.
            if !isWorking {
                _ = enqueue(.write(isDurable: isDurable)) { database throws(JournalError) in try database.tryWriting() }
            }
        case .tell:
            failure = nil
            observer?(.working)
        case .none:
            break
        }
        armRetry()
    }

    /// What is done next: the calls at the head of the queue that are of one kind.
    private func nextBatch() -> [JournalOperation]? {
        guard let first = queue.first else { return nil }
        let batch = Array(queue.prefix(Self.callsAtOnce).prefix { $0.isWrite == first.isWrite })
        queue.removeFirst(batch.count)
        return batch
    }
}
