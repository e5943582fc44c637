// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CDBus
internal import MeshLoop

/// One libdbus connection on the loop: its socket, the order of its messages, and the replies that are awaited.
///
/// - libdbus makes the connection, authenticates and writes. From then on messages are read here (``DBusInput``), since
///   libdbus would take several times longer.
/// - Reading and writing happen when polls say so (``DBusWatches``), and writing also at once as far as the kernel has
///   room. In a steady stream that nobody waits for, messages are read in pauses instead (``ReadModerationPolicy``).
/// - What has been read is dispatched in a job of its own, at most ``messagesPerTurn`` before others get their turn. Whoever
///   gets a message may do anything, also close the connection.
/// - After a reply that a task awaits the next message waits until that task has run on the loop. The runtime resumes
///   every continuation on the executor that its task prefers, and without one on a thread of the global pool, which only
///   then comes back to the loop: the order of jobs on the loop says nothing. So whoever is resumed reports back
///   (``reply(_:isolation:)``), and messages go on at the end of that turn. By then the task has
///   also come back to an actor on this loop that called, however many jobs that took, and has run to its next `await`
///   that waits. (A turn ends after some thousand jobs, even if there are more; then, and then only, may a message overtake.)
/// - Replies are matched to calls here, by their serial. libdbus's pending calls would end with "no reply" at the end of
///   the connection, and cannot be told apart from a deadline then. Since libdbus has no timeouts but those of pending
///   calls, there are none to take over: a deadline is a ``LoopTimer``.
///
/// Sendable because of one invariant: everything but `loop` is touched on the loop's thread only.
final class DBusTransport: @unchecked Sendable {
    typealias Completion = (Result<DBusReceived, DBusError>) -> Void

    private struct Waiting {
        let deadline: LoopTimer
        let completion: Completion
    }

    /// The reply to a call that has been sent.
    struct AwaitedReply {
        fileprivate let serial: UInt32
        fileprivate let result: LoopResult<Result<DBusReceived, DBusError>>
    }

    private static let messagesPerTurn = 64
    /// What is read in one go after a pause: more waits for the next turn.
    private static let readsPerTurn = 4

    let loop: EventLoop
    /// Gets every message that is no awaited reply.
    var onMessage: ((DBusReceived) -> Void)?
    /// Called once when the connection has ended, unless ``close()`` ended it.
    var onEnd: (() -> Void)?
    var isOpen: Bool { connection != nil }
    private var connection: OpaquePointer?
    private let watches: DBusWatches
    private var moderation = ReadModerationPolicy()
    /// While reading is paused, or has been.
    private var pause: LoopTimer?
    /// Since the end of the last pause.
    private var messagesDelivered = 0
    private var waiting: [UInt32: Waiting] = [:]
    /// Who gets values without a message being made of them.
    let bytesTakers = DBusBytesTakers()
    private let input = DBusInput()
    /// What is read here; nil while libdbus authenticates and reads.
    private var socket: Int32?
    /// Whether the socket is left alone until ``pause`` ends.
    private var isPaused = false
    /// Nothing more can be read or written. What has been read is still handed on.
    private var hasEnded = false
    /// ``dispatch()`` is queued or at work.
    private var isDispatching = false
    /// How many tasks have been resumed and have not run yet: no message is dispatched while there is one.
    private var resumedTasks = 0

    /// Opens the socket. Authentication goes on by itself; what is sent meanwhile waits for it.
    init(_ loop: EventLoop, address: String) throws(DBusError) {
        assert(loop.isOnLoop)
        self.loop = loop
        watches = DBusWatches(loop)
        let connection = try Self.connect(address)
        self.connection = connection
        dbus_connection_set_exit_on_disconnect(connection, 0)
        let me = Unmanaged.passUnretained(self).toOpaque()
        dbus_connection_set_dispatch_status_function(
            connection,
            { _, status, data in
                if status != DBUS_DISPATCH_COMPLETE, let data { DBusTransport.of(data).dispatchLater() }
            }, me, nil)
        dbus_connection_set_wakeup_main_function(
            connection, { data in if let data { DBusTransport.of(data).dispatchLater() } }, me, nil)
        let isFiltered = dbus_connection_add_filter(
            connection,
            { _, message, data in
                // libdbus has read none, so that this is its own word that it has closed the socket.
                if message != nil, let data { DBusTransport.of(data).hasEnded = true }
                return DBUS_HANDLER_RESULT_HANDLED
            }, me, nil)
        watches.reader = { [unowned self] in read($0) }
        // A throw from here runs `deinit`, which closes what is open.
        guard isFiltered != 0, watches.attach(to: connection) else { throw DBusError(DBusError.noMemory) }
    }

    deinit {
        close()
    }

    private static func of(_ data: UnsafeMutableRawPointer) -> DBusTransport {
        Unmanaged<DBusTransport>.fromOpaque(data).takeUnretainedValue()
    }

    /// A connection over a Unix socket. libdbus waits while it connects, which is no time at all for a socket of this
    /// machine; for the other kinds of address it would look up names, or start programs.
    private static func connect(_ address: String) throws(DBusError) -> OpaquePointer {
        guard !address.utf8.contains(0) else {
            throw DBusError(DBusError.badAddress, "'\(address)' is no address of a bus")
        }
        var failure = CDBus.DBusError()
        dbus_error_init(&failure)
        defer { dbus_error_free(&failure) }
        var entries: UnsafeMutablePointer<OpaquePointer?>?
        var count: Int32 = 0
        guard dbus_parse_address(address, &entries, &count, &failure) != 0 else { throw Self.error(failure) }
        defer { dbus_address_entries_free(entries) }
        for index in 0..<Int(count) {
            let method = dbus_address_entry_get_method(entries?[index]).map { String(cString: $0) } ?? ""
            if method != "unix" {
                throw DBusError(
                    DBusError.badAddress, "'\(address)' is not the address of a Unix socket ('unix:path=...')")
            }
        }
        // SIGPIPE is the program's: libdbus writes to sockets without it.
        dbus_connection_set_change_sigpipe(0)
        guard let connection = dbus_connection_open_private(address, &failure) else { throw Self.error(failure) }
        return connection
    }

    private static func error(_ failure: CDBus.DBusError) -> DBusError {
        DBusError(
            failure.name.map { String(cString: $0) } ?? DBusError.failed,
            failure.message.map { String(cString: $0) } ?? "")
    }

    /// Ends the connection without a word to ``onEnd``; who awaits a reply gets ``DBusError/disconnected``.
    func close() {
        guard let connection else { return }
        self.connection = nil
        onMessage = nil
        onEnd = nil
        pause = nil
        socket = nil
        dbus_connection_set_dispatch_status_function(connection, nil, nil, nil)
        dbus_connection_set_wakeup_main_function(connection, nil, nil, nil)
        // Removes the watches, then closes the socket.
        dbus_connection_close(connection)
        dbus_connection_unref(connection)
        let waiting = waiting
        self.waiting = [:]
        for serial in waiting.keys.sorted() {
            waiting[serial]?.completion(.failure(Self.disconnected))
        }
    }

    static let cancelled = DBusError(DBusError.cancelled, "the call was cancelled")
    static let disconnected = DBusError(DBusError.disconnected, "the connection to the bus has ended")

    // MARK: Sending

    /// Sends, and returns the message's serial.
    @discardableResult
    func send(_ message: DBusMessage) throws(DBusError) -> UInt32 {
        guard let connection else { throw Self.disconnected }
        if message.hasDescriptors, dbus_connection_can_send_type(connection, Int32(UInt8(ascii: "h"))) == 0 {
            throw DBusError(DBusError.notSupported, "this connection carries no descriptors")
        }
        var serial: dbus_uint32_t = 0
        try DBusMessage.memory(dbus_connection_send(connection, message.pointer, &serial))
        return serial
    }

    /// Tells libdbus the name that the bus gave.
    func setUniqueName(_ name: String) throws(DBusError) {
        guard let connection else { throw Self.disconnected }
        try DBusMessage.memory(dbus_bus_set_unique_name(connection, name))
    }

    // MARK: Replies

    /// Calls `completion` once, with the reply to what was sent with this serial, or why there is none.
    func await(_ serial: UInt32, within timeout: Duration, _ completion: @escaping Completion) {
        guard isOpen else { return completion(.failure(Self.disconnected)) }
        let deadline = LoopTimer(loop)
        deadline.schedule(after: timeout) { [weak self] in
            self?.end(serial, DBusError(DBusError.noReply, "no reply within \(timeout)"))
        }
        waiting[serial] = Waiting(deadline: deadline, completion: completion)
        moderation.callWasSent()
        follow(.whenReadable)
    }

    private func end(_ serial: UInt32, _ error: DBusError) {
        waiting.removeValue(forKey: serial)?.completion(.failure(error))
    }

    /// Sends a call and waits for its reply; an error reply is thrown. Cancelling the task ends the wait, and a reply
    /// that comes later is dropped, with all that is in it. What is cancelled already is not sent. The caller is an actor
    /// on the loop.
    func reply(
        to message: DBusMessage, within timeout: Duration, isolation: isolated (any Actor)? = #isolation
    ) async throws(DBusError) -> DBusReceived {
        if Task.isCancelled { throw Self.cancelled }
        return try await reply(send(message, awaitingReplyWithin: timeout))
    }

    /// Sends a call whose reply ``reply(_:isolation:)`` must be asked for.
    ///
    /// `arrived` is called when a reply that is no error is dispatched, before the next message is: what must be in place
    /// for that is put there.
    func send(
        _ message: DBusMessage, awaitingReplyWithin timeout: Duration, arrived: @escaping () -> Void = {}
    ) throws(DBusError) -> AwaitedReply {
        let reply = AwaitedReply(serial: try send(message), result: LoopResult())
        // Before anything is awaited: a reply or a cancellation may come at any time from now on.
        self.await(reply.serial, within: timeout) { result in
            if case .success = result { arrived() }
            self.resumedTasks += 1
            reply.result.set(result)
        }
        return reply
    }

    /// Waits for the reply to what has just been sent.
    func reply(
        _ reply: AwaitedReply, isolation: isolated (any Actor)? = #isolation
    ) async throws(DBusError) -> DBusReceived {
        let result = await withTaskCancellationHandler {
            await reply.result.get(isolation: isolation)
        } onCancel: {
            loop.perform { self.end(reply.serial, Self.cancelled) }
        }
        assert(loop.isOnLoop)
        loop.atEndOfTurn {
            self.resumedTasks -= 1
            self.dispatchRest()
        }
        return try result.get()
    }

    // MARK: Receiving

    /// The socket has something. False while that is for libdbus, which authenticates: the bus says nothing between that and
    /// the answer to the first call, so nothing of a message is lost.
    private func read(_ descriptor: Int32) -> Bool {
        guard let connection, socket != nil || dbus_connection_get_is_authenticated(connection) != 0 else {
            return false
        }
        socket = descriptor
        note(input.read(descriptor))
        follow(moderation.wasRead(isReplyAwaited: !waiting.isEmpty, now: loop.now))
        return true
    }

    private func note(_ outcome: DBusInput.Outcome) {
        if case .ended = outcome { hasEnded = true }
        if hasEnded || input.hasMessage { dispatchLater() }
    }

    /// The poll waits for something to read where that would be read.
    private func updateReading() {
        watches.pauseReading(isPaused || hasEnded || input.isFull)
    }

    private func follow(_ step: ReadModerationPolicy.Step) {
        guard isOpen else { return }
        switch step {
        case .whenReadable:
            pause?.cancel()
            isPaused = false
        case .after(let time):
            isPaused = true
            let timer = pause ?? LoopTimer(loop)
            pause = timer
            timer.schedule(after: time) { [unowned self] in pauseEnded() }
        }
        updateReading()
    }

    private func pauseEnded() {
        messagesDelivered = 0
        readAll()
        // What was read is dispatched by then.
        loop.atEndOfTurn { [weak self] in
            guard let self else { return }
            follow(moderation.pauseEnded(messages: messagesDelivered, isReplyAwaited: !waiting.isEmpty))
        }
    }

    private func readAll() {
        // libdbus closes it when it cannot write.
        guard let socket, let connection, dbus_connection_get_is_connected(connection) != 0 else { return }
        for _ in 0..<Self.readsPerTurn where !hasEnded && !input.isFull {
            let outcome = input.read(socket)
            note(outcome)
            guard case .some = outcome else { return }
        }
    }

    private func dispatchLater() {
        guard !isDispatching else { return }
        isDispatching = true
        loop.performLater { self.dispatch() }
    }

    /// Goes on with what may not be dispatched in a turn.
    private func dispatchRest() {
        if isOpen, resumedTasks == 0, input.hasMessage || hasEnded { dispatchLater() }
    }

    private func dispatch() {
        listenToLibrary()
        var left = Self.messagesPerTurn
        do throws(DBusError) {
            while left > 0, resumedTasks == 0, isOpen, let message = try input.next() {
                try deliver(message.header, message.bytes)
                left -= 1
            }
        } catch {
            // Where the next message begins is not known.
            return disconnected()
        }
        guard isOpen else { return }
        if hasEnded, resumedTasks == 0, !input.hasMessage { return disconnected() }
        isDispatching = false
        updateReading()
        dispatchRest()
    }

    /// libdbus has something to say: that the connection has ended.
    private func listenToLibrary() {
        guard let connection else { return }
        while true {
            switch dbus_connection_dispatch(connection) {
            case DBUS_DISPATCH_DATA_REMAINS: continue
            case DBUS_DISPATCH_NEED_MEMORY: hasEnded = true
            default: break
            }
            return
        }
    }

    private func deliver(_ header: DBusHeader, _ bytes: UnsafeRawBufferPointer) throws(DBusError) {
        messagesDelivered += 1
        if bytesTakers.take(header, bytes) { return }
        let message = try DBusReceived(header, bytes, descriptors: try input.takeDescriptors(header))
        switch message.kind {
        case .methodReturn, .error:
            waiting.removeValue(forKey: message.replySerial)?
                .completion(message.kind == .error ? .failure(message.error) : .success(message))
        case .signal, .methodCall:
            onMessage?(message)
        case .other:
            break
        }
    }

    private func disconnected() {
        let onEnd = onEnd
        close()
        onEnd?()
    }
}
