// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc
public import MeshDBus
public import MeshLoop
internal import MeshTestSupport

/// The interface of what the tests export and send.
public let testInterface = "org.example.Test"

/// A bus of the test's own: `dbus-daemon` with a socket in a scratch folder.
public actor DBusTestBus {
    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    public nonisolated let address: String
    private let folder: String
    private var daemon: LoopProcess?
    private let exited: Arrival<Void>

    public init(_ loop: EventLoop) throws {
        self.loop = loop
        var template = Array("/tmp/meshhost-dbus-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw TestFailure("mkdtemp") }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        address = "unix:path=\(folder)/bus"
        exited = Arrival(loop)
    }

    /// Returns when the daemon listens.
    public func start() async throws {
        let config = """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
             "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
              <type>custom</type>
              <listen>\(address)</listen>
              <auth>EXTERNAL</auth>
              <policy context="default">
                <allow user="*"/>
                <allow own="*"/>
                <allow send_destination="*"/>
                <allow receive_type="method_call"/>
                <allow receive_type="method_return"/>
                <allow receive_type="error"/>
                <allow receive_type="signal"/>
                <deny send_interface="org.example.Forbidden"/>
              </policy>
            </busconfig>
            """
        guard let file = fopen("\(folder)/bus.conf", "w") else { throw TestFailure("bus.conf") }
        fputs(config, file)
        fclose(file)
        let (reading, writing) = try makePipe()
        defer { close(reading) }
        daemon = try LoopProcess(
            loop,
            arguments: ["dbus-daemon", "--nofork", "--print-address", "--config-file=\(folder)/bus.conf"],
            environment: ["PATH": "/usr/bin:/bin"], descriptors: [nil, writing, nil]
        ) { [exited] _ in exited.arrive(()) }
        close(writing)
        try await untilReadable(reading, loop)
        var byte: UInt8 = 0
        guard read(reading, &byte, 1) == 1 else { throw TestFailure("dbus-daemon did not start") }
    }

    /// Ends the daemon at once.
    public func kill() {
        daemon?.signal(SIGKILL)
    }

    public func stop() async {
        if let daemon {
            daemon.signal(SIGKILL)
            await exited.get()
        }
        daemon = nil
        unlink("\(folder)/bus")
        unlink("\(folder)/bus.conf")
        rmdir(folder)
    }

    public nonisolated func connect() async throws -> DBusConnection {
        try await DBusConnection.open(address: address, loop: loop)
    }
}

public struct TestFailure: Error {
    public var what: String

    public init(_ what: String) {
        self.what = what
    }
}

/// Runs `body` on a new loop with a new bus, and throws when it leaves a handle open.
public func onBus(_ body: @Sendable (isolated LoopActor, DBusTestBus) async throws -> Void) async throws {
    try await onLoop { actor in
        let bus = try DBusTestBus(actor.loop)
        do {
            try await bus.start()
            try await body(actor, bus)
        } catch {
            await bus.stop()
            throw error
        }
        await bus.stop()
    }
}

/// Runs `body` with two connections to a new bus, which it need not close.
public func onConnections(
    _ body: @Sendable (isolated LoopActor, _ client: DBusConnection, _ server: DBusConnection) async throws -> Void
) async throws {
    try await onBus { actor, bus in
        let client = try await bus.connect()
        let server = try await bus.connect()
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(actor, client, server))
        } catch {
            result = .failure(error)
        }
        await client.close()
        await server.close()
        try result.get()
    }
}

public func makePipe() throws -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw TestFailure("pipe") }
    // Children of other tests do not inherit them: libuv closes everything in its children.
    return (ends[0], ends[1])
}

/// Returns when there is something to read, or every writing end is closed.
public func untilReadable(
    _ descriptor: Int32, _ loop: EventLoop, isolation: isolated (any Actor)? = #isolation
) async throws {
    let arrival = Arrival<Void>(loop)
    let poll = try LoopPoll(loop, descriptor: descriptor) { _, _ in arrival.arrive(()) }
    poll.wait(for: .readable)
    await arrival.get()
    withExtendedLifetime(poll) {}
}

/// Values that arrive on the loop; the first is waited for.
public actor Arrival<Value: Sendable> {
    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private var values: [Value] = []
    private var waiter: CheckedContinuation<Value, Never>?

    public init(_ loop: EventLoop) {
        self.loop = loop
    }

    /// On the loop only.
    public nonisolated func arrive(_ value: Value) {
        assumeIsolated { me in
            if let waiter = me.waiter {
                me.waiter = nil
                waiter.resume(returning: value)
            } else {
                me.values.append(value)
            }
        }
    }

    /// The next one.
    public func get() async -> Value {
        if !values.isEmpty { return values.removeFirst() }
        return await withCheckedContinuation { waiter = $0 }
    }

    /// All that have come and were not taken.
    public func all() -> [Value] { values }

    /// Forgets them.
    public func clear() { values = [] }
}

extension DBusConnection {
    /// The name of the error that a call ends with; nil when it succeeds.
    public func failure(of call: DBusCall, timeout: Duration = .seconds(25)) async -> String? {
        do throws(DBusError) {
            _ = try await self.call(call, timeout: timeout)
            return nil
        } catch {
            return error.name
        }
    }

    /// Returns when the bus has handled all that was sent before.
    public func settle() async throws {
        _ = try await bus("GetId")
    }

    /// Calls the bus itself.
    public func bus(_ member: String, _ arguments: [DBusValue] = []) async throws -> [DBusValue] {
        try await call(
            DBusCall(
                "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus",
                member: member,
                arguments))
    }

    /// Sends a signal of the tests' interface.
    public func signal(_ member: String, path: String = "/test", _ arguments: [DBusValue] = []) throws {
        try emit(path: path, interface: testInterface, member: member, arguments)
    }
}
