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
}

/// The daemon's side of the control socket. Requests of one connection are answered in order; connections do not wait for
/// each other.
actor ControlServer {
    /// One connection. Confined to the server.
    private final class Connection {
        let stream: LoopStream
        let lines: AsyncStream<Data>.Continuation
        var splitter = LineSplitter()
        var task: Task<Void, Never>?

        init(_ stream: LoopStream, _ lines: AsyncStream<Data>.Continuation) {
            self.stream = stream
            self.lines = lines
        }
    }

    /// Connections at a time; the rest is closed at once.
    private static let connectionLimit = 64

    nonisolated let loop: MeshLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let handler: any ControlHandler
    private let log: LogSink
    private var listener: LoopListener?
    private var connections: [ObjectIdentifier: Connection] = [:]

    init(loop: MeshLoop, handler: any ControlHandler, log: LogSink) {
        self.loop = loop
        self.handler = handler
        self.log = log
    }

    /// Listens on a Unix socket for this user and its group.
    func start(path: String) throws(LoopError) {
        listener = try LoopListener(loop, on: SocketAddress(unixPath: path), mode: 0o660) { stream in
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

    private func accept(_ stream: LoopStream) {
        guard connections.count < Self.connectionLimit else {
            log(.warning, "too many connections on the control socket")
            stream.close()
            return
        }
        let (lines, continuation) = AsyncStream.makeStream(of: Data.self, bufferingPolicy: .bufferingOldest(64))
        let connection = Connection(stream, continuation)
        connections[ObjectIdentifier(connection)] = connection
        stream.startReading { [unowned connection] bytes in
            self.received(bytes, connection)
        } onEnd: { [unowned connection] _ in
            self.end(connection)
        }
        connection.task = Task { await serve(connection, lines) }
    }

    private func received(_ bytes: UnsafeRawBufferPointer, _ connection: Connection) {
        guard let lines = connection.splitter.lines(adding: bytes) else {
            log(.warning, "a line on the control socket is too long")
            return end(connection)
        }
        for line in lines {
            // A client that asks faster than it reads answers is cut; its bytes wait nowhere else.
            if case .dropped = connection.lines.yield(line) { return end(connection) }
        }
    }

    private func end(_ connection: Connection) {
        connections[ObjectIdentifier(connection)] = nil
        connection.lines.finish()
        connection.task?.cancel()
        connection.stream.close()
    }

    private func serve(_ connection: Connection, _ lines: AsyncStream<Data>) async {
        for await line in lines where !line.isEmpty {
            var id = JSONValue.null
            do {
                let request = try ControlProtocol.Request(line)
                id = request.id
                if request.method == "listen" {
                    try await stream(to: connection, id, request.params)
                } else {
                    let result = try await handler.answer(request.method, request.params)
                    try await connection.stream.write(ControlProtocol.result(result, for: id))
                }
            } catch let error as MeshError {
                try? await connection.stream.write(ControlProtocol.failure(error, for: id))
            } catch {
                break
            }
        }
        connections[ObjectIdentifier(connection)] = nil
        connection.stream.close()
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
