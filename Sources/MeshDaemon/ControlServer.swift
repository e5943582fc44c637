// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshLoop
internal import MeshRuntime
internal import MeshTransportAPI

/// What the control socket gives access to.
protocol ControlHandler: Sendable {
    /// Answers one request.
    func answer(_ method: String, _ params: JSONValue) async throws(MeshError) -> JSONValue
    /// Subscribes to the bus.
    func subscribe(_ params: JSONValue) async throws(MeshError) -> EventSubscription
    /// Looks for devices; the events of a scan, until it ends.
    func scan(_ params: JSONValue) async throws(MeshError) -> AsyncStream<JSONValue>
}

/// The daemon's side of the control socket. Requests of one connection are answered in order; connections do not wait for
/// each other.
actor ControlServer {
    /// One connection. Confined to the server.
    private final class Connection {
        /// No other one ever had it: a task that begins after the end of its connection must not find a later one.
        let number: UInt64
        let stream: LoopStream
        let lines: AsyncStream<Data>.Continuation
        var splitter = LineSplitter()
        var task: Task<Void, Never>?
        /// When it last asked something, on the loop's clock.
        var lastUsed: Duration
        /// A request is being answered, or events are being sent.
        var isBusy = false
        /// Events are being sent: it is busy for as long as the peer likes.
        var isFollowing = false
        /// What is answered is up to modules, and may take its time.
        var asksModules = false

        init(_ number: UInt64, _ stream: LoopStream, _ lines: AsyncStream<Data>.Continuation, now: Duration) {
            lastUsed = now
            self.number = number
            self.stream = stream
            self.lines = lines
        }
    }

    /// Connections at a time. One more takes the place of the one that has been idle for the longest time: forgotten
    /// connections do not lock the operator out.
    private static let connectionLimit = 64
    /// How many of them may listen for events, or to a scan. These are never idle, so forgotten ones keep their places; the
    /// rest is for commands.
    private static let followerLimit = 48

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let handler: any ControlHandler
    private let log: LogSink
    private let onFileChange: @Sendable (String, LoopError?) -> Void
    private var listener: LoopListener?
    private var connections: [UInt64: Connection] = [:]
    private var accepted: UInt64 = 0

    /// `onFileChange` is told on the loop that the socket's file has gone, by its path, and without an error that it is back.
    init(
        loop: EventLoop, handler: any ControlHandler, log: LogSink,
        onFileChange: @escaping @Sendable (String, LoopError?) -> Void
    ) {
        self.loop = loop
        self.onFileChange = onFileChange
        self.handler = handler
        self.log = log
    }

    /// Listens on a Unix socket for this user and its group. Who asks what is wrong is served even when nothing else can be.
    func start(path: String) throws(LoopError) {
        listener = try LoopListener(
            loop, on: SocketAddress(unixPath: path), mode: 0o660, usesReserve: true,
            onFileChange: { [onFileChange] in onFileChange(path, $0) }
        ) { stream in
            self.assumeIsolated { $0.accept(stream) }
        }
    }

    /// Closes the socket and all connections; returns when their tasks have ended.
    func stop() async {
        listener = nil
        let tasks = connections.values.compactMap(\.task)
        for connection in connections.values { end(connection) }
        for task in tasks { await task.value }
    }

    /// Ends what waits for modules, so that it does not hold up the end of the daemon.
    func endModuleRequests() {
        for connection in connections.values where connection.asksModules { end(connection) }
    }

    private func accept(_ stream: LoopStream) {
        if connections.count >= Self.connectionLimit {
            let idle = connections.values.filter { !$0.isBusy }.min { $0.lastUsed < $1.lastUsed }
            log(.warning, "too many connections on the control socket", [("closed", idle == nil ? "newest" : "idle")])
            guard let idle else { return stream.close() }
            end(idle)
        }
        let (lines, continuation) = AsyncStream.makeStream(of: Data.self, bufferingPolicy: .bufferingOldest(64))
        accepted += 1
        let number = accepted
        let connection = Connection(number, stream, continuation, now: loop.now)
        connections[number] = connection
        stream.startReading { [unowned connection] bytes in
            self.received(bytes, connection)
        } onEnd: { [unowned connection] _ in
            self.end(connection)
        }
        connection.task = Task(executorPreference: loop.taskExecutor) { await self.serve(number, lines) }
    }

    private func received(_ bytes: UnsafeRawBufferPointer, _ connection: Connection) {
        guard let lines = connection.splitter.lines(adding: bytes) else {
            log(.warning, "a line on the control socket is too long")
            return end(connection)
        }
        connection.lastUsed = loop.now
        for line in lines {
            // A client that asks faster than it reads answers is cut; its bytes wait nowhere else.
            if case .dropped = connection.lines.yield(line) { return end(connection) }
        }
    }

    private func end(_ connection: Connection) {
        connections[connection.number] = nil
        connection.lines.finish()
        connection.task?.cancel()
        connection.stream.close()
    }

    private func serve(_ number: UInt64, _ lines: AsyncStream<Data>) async {
        guard let connection = connections[number] else { return }
        for await line in lines where !line.isEmpty {
            var id = JSONValue.null
            connection.isBusy = true
            defer {
                connection.isBusy = false
                connection.isFollowing = false
                connection.asksModules = false
                connection.lastUsed = loop.now
            }
            do {
                let request = try ControlProtocol.Request(line)
                id = request.id
                connection.asksModules = ["scan", "pair", "unpair", "examine", "describe"].contains(request.method)
                switch request.method {
                case "listen":
                    try follow(connection)
                    try await stream(to: connection, id, request.params)
                case "scan":
                    try follow(connection)
                    for await event in try await handler.scan(request.params) {
                        try await connection.stream.write(ControlProtocol.event(event, for: id))
                    }
                default:
                    let result = try await handler.answer(request.method, request.params)
                    try await connection.stream.write(ControlProtocol.result(result, for: id))
                }
            } catch let error as MeshError {
                try? await connection.stream.write(ControlProtocol.failure(error, for: id))
            } catch {
                break
            }
        }
        connections[number] = nil
        connection.stream.close()
    }

    /// The connection is about to be sent events.
    private func follow(_ connection: Connection) throws(MeshError) {
        guard connections.values.count(where: \.isFollowing) < Self.followerLimit else {
            throw MeshError(
                .resourceExhausted,
                "\(Self.followerLimit) connections listen for events or scan already; end one of them",
                context: MeshError.Context(operation: "follow events"))
        }
        connection.isFollowing = true
    }

    /// Sends events until the connection ends. The first line says that nothing is missed from here on.
    private func stream(to connection: Connection, _ id: JSONValue, _ params: JSONValue) async throws {
        let subscription = try await handler.subscribe(params)
        defer { subscription.cancel() }
        try await connection.stream.write(ControlProtocol.event(["type": "listen.ready"], for: id))
        for await event in subscription {
            try await connection.stream.write(ControlProtocol.event(event.json, for: id))
        }
    }
}
