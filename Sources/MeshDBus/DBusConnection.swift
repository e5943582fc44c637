// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshLoop
internal import Synchronization

/// A connection to a D-Bus message bus, on the loop.
///
/// Nothing here waits: libdbus's socket is a poll of the loop, and an idle connection makes no wake-ups. Handlers run in
/// the loop's turn, one message after the other in the order of arrival. An actor that is pinned to the loop enters itself
/// from a handler with `assumeIsolated`.
///
/// Replies keep that order for callers that are actors pinned to this loop: what follows an `await` of
/// ``call(_:timeout:)``, ``addMatch(_:_:)`` or ``open(address:loop:timeout:)``, up to the next `await` that waits, runs
/// after the handlers of all that arrived before the reply and before those of all that arrived after it (unless the loop
/// has thousands of jobs queued, so that its turn ends before they have run). It does not matter what executor the task
/// prefers, but without `loop.taskExecutor` each reply goes by way of another thread, and what comes after it waits. To
/// callers that are not on this loop, and to child tasks such as those of `async let`, no order is promised.
///
/// ```swift
/// let bus = try await DBusConnection.open(address: DBusConnection.systemBusAddress(environment: [:]), loop: loop)
/// let token = try await bus.addMatch(DBusMatch(sender: "org.bluez", member: "InterfacesAdded")) { signal in … }
/// let objects = try await bus.call(
///     DBusCall("org.bluez", path: "/", interface: "org.freedesktop.DBus.ObjectManager", member: "GetManagedObjects"))
/// ```
///
/// ``close()`` ends it; dropping it does too. Tokens do not keep it alive.
public actor DBusConnection {
    nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    /// The name that the bus gave to this connection, such as `:1.42`.
    public nonisolated let uniqueName: String
    /// Whether tokens and method calls, which any thread may drop, have nothing to end any more.
    nonisolated let isOver = Atomic(false)

    let transport: DBusTransport
    private var disconnectionHandler: (@Sendable () -> Void)?
    private var isClosed = false
    private var lastID: UInt64 = 0
    var subscriptions: [UInt64: DBusSubscription] = [:]
    /// The order in which handlers run.
    var subscriptionOrder: [UInt64] = []
    nonisolated let bytesTakers: DBusBytesTakers
    var followedNames: [String: DBusFollowedName] = [:]
    /// By path and interface.
    var exports: [String: [String: DBusExport]] = [:]

    private init(_ transport: DBusTransport, uniqueName: String) {
        loop = transport.loop
        self.transport = transport
        bytesTakers = transport.bytesTakers
        self.uniqueName = uniqueName
    }

    isolated deinit {
        isOver.store(true, ordering: .relaxed)
        transport.close()
    }

    // MARK: Opening

    /// The address of the system bus: `DBUS_SYSTEM_BUS_ADDRESS`, or what the specification gives ("Well-known Message
    /// Bus Instances").
    public static func systemBusAddress(environment: [String: String]) -> String {
        let address = environment["DBUS_SYSTEM_BUS_ADDRESS"] ?? ""
        return address.isEmpty ? "unix:path=/var/run/dbus/system_bus_socket" : address
    }

    /// Connects to a bus and says hello to it. From the loop's thread or any other.
    ///
    /// The address must be that of a Unix socket; other kinds are refused with ``DBusError/badAddress``, as libdbus would
    /// hold up the loop for them.
    public static func open(
        address: String, loop: EventLoop, timeout: Duration = .seconds(5)
    ) async throws(DBusError) -> DBusConnection {
        try await LoopActor(loop).run { _ throws(DBusError) in
            let transport = try DBusTransport(loop, address: address)
            do throws(DBusError) {
                let reply = try await transport.reply(to: DBusMessage(.bus("Hello")), within: timeout)
                guard case .string(let name)? = try reply.arguments().values.first else {
                    throw DBusError(DBusError.failed, "the bus gave no name")
                }
                try transport.setUniqueName(name)
                let connection = DBusConnection(transport, uniqueName: name)
                await connection.begin()
                return connection
            } catch {
                transport.close()
                throw error
            }
        }
    }

    private func begin() {
        transport.onMessage = { [weak self] message in
            self?.assumeIsolated { $0.receive(message) }
        }
        transport.onEnd = { [weak self] in
            self?.assumeIsolated { $0.ended() }
        }
    }

    // MARK: Calling

    /// Calls a method and returns what it returns. Descriptors in there are the caller's to close, if it takes them
    /// (``DBusCall/takesDescriptors``).
    ///
    /// Throws what the called program or the bus answered; ``DBusError/noReply`` when the deadline passes;
    /// ``DBusError/cancelled`` at once when the task is cancelled; ``DBusError/disconnected`` when the connection ends or
    /// has ended; ``DBusError/invalidArguments`` when the call cannot be expressed. A reply that comes too late is
    /// dropped, with the descriptors in it.
    public func call(
        _ call: DBusCall, timeout: Duration = .seconds(25)
    ) async throws(DBusError) -> [DBusValue] {
        let reply = try await transport.reply(to: DBusMessage(call), within: timeout)
        return try reply.arguments(takingDescriptors: call.takesDescriptors).values
    }

    /// Sends a signal, to all who want it or to one destination.
    public func emit(
        path: String, interface: String, member: String, _ arguments: [DBusValue] = [], to destination: String? = nil
    ) throws(DBusError) {
        try transport.send(
            DBusMessage(signal: member, path: path, interface: interface, destination: destination, arguments))
    }

    // MARK: Ending

    /// Sets what is called once when the bus has ended the connection: at once if it has already. ``close()`` does not
    /// call it.
    public func setDisconnectionHandler(_ handler: @escaping @Sendable () -> Void) {
        if isClosed { return }
        if transport.isOpen { disconnectionHandler = handler } else { handler() }
    }

    /// Ends the connection. Calls that wait end with ``DBusError/disconnected``, handlers run no more, tokens have no
    /// effect, and no handle of the loop is left open. What the kernel has not taken yet is not sent. Again: no effect.
    public func close() async {
        isClosed = true
        transport.close()
        forgetAll()
    }

    private func ended() {
        let handler = disconnectionHandler
        forgetAll()
        handler?()
    }

    private func forgetAll() {
        isOver.store(true, ordering: .relaxed)
        disconnectionHandler = nil
        for subscription in subscriptions.values { subscription.isEnded = true }
        subscriptions = [:]
        subscriptionOrder = []
        followedNames = [:]
        bytesTakers.forgetAll()
        exports = [:]
    }

    // MARK: Receiving

    private func receive(_ message: DBusReceived) {
        switch message.kind {
        case .signal: route(message)
        case .methodCall: answer(message)
        case .methodReturn, .error, .other: break
        }
    }

    func nextID() -> UInt64 {
        lastID += 1
        return lastID
    }
}

extension DBusConnection {
    /// Runs `body` here for an object that any thread may drop: now on the loop, later from elsewhere, not at all once
    /// the connection has ended.
    nonisolated func performIfOpen(_ body: @escaping @Sendable (isolated DBusConnection) -> Void) {
        guard !isOver.load(ordering: .relaxed) else { return }
        if loop.isOnLoop {
            assumeIsolated { body($0) }
        } else {
            loop.perform { self.assumeIsolated { body($0) } }
        }
    }
}
