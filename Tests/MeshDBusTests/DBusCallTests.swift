// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshDBus
import MeshDBusTestSupport
import MeshLoop
import MeshTestSupport
import Testing

private let test = "org.example.Test"

private func testCall(_ server: DBusConnection, _ member: String = "Test", path: String = "/test") -> DBusCall {
    DBusCall(server.uniqueName, path: path, interface: test, member: member)
}

@Suite(.timeLimit(.minutes(10)))
struct DBusCallTests {
    @Test func `the deadline of a call ends it and its late reply is dropped`() async throws {
        try await onConnections { actor, client, server in
            let calls = Arrival<DBusMethodCall>(actor.loop)
            let token = try await server.export(path: "/test", interface: test) { calls.arrive($0) }
            let call = testCall(server)
            #expect(
                await client.failure(of: call, timeout: .milliseconds(20))
                    == DBusError.noReply)
            await calls.get().reply([.byte(1)])
            async let second = client.call(call)
            await calls.get().reply([.byte(2)])
            let result = try await second
            #expect(result == [.byte(2)])
            withExtendedLifetime(token) {}
        }
    }

    @Test func `cancelling the task ends its call at once`() async throws {
        try await onConnections { actor, client, server in
            let calls = Arrival<DBusMethodCall>(actor.loop)
            let token = try await server.export(path: "/test", interface: test) { calls.arrive($0) }
            let task = Task {
                await client.failure(of: testCall(server))
            }
            let call = await calls.get()
            task.cancel()
            #expect(await task.value == DBusError.cancelled)
            call.reply()
            // A task that is cancelled already does not call.
            let late = Task {
                while !Task.isCancelled { await Task.yield() }
                return await client.failure(of: testCall(server))
            }
            late.cancel()
            #expect(await late.value == DBusError.cancelled)
            #expect(await calls.all().isEmpty)
            withExtendedLifetime(token) {}
        }
    }

    @Test func `the end of the bus ends calls and is told once`() async throws {
        try await onBus { actor, bus in
            let client = try await bus.connect()
            let server = try await bus.connect()
            let calls = Arrival<DBusMethodCall>(actor.loop)
            let ends = Arrival<Int>(actor.loop)
            let token = try await server.export(path: "/test", interface: test) { calls.arrive($0) }
            await client.setDisconnectionHandler { ends.arrive(1) }
            let task = Task {
                await client.failure(of: testCall(server))
            }
            let call = await calls.get()
            await bus.kill()
            #expect(await task.value == DBusError.disconnected)
            #expect(await ends.get() == 1)
            #expect(
                await client.failure(of: testCall(server))
                    == DBusError.disconnected)
            await #expect(throws: DBusError.self) { try await client.addMatch(DBusMatch()) { _ in } }
            await client.setDisconnectionHandler { ends.arrive(2) }
            #expect(await ends.get() == 2)
            await client.close()
            await client.setDisconnectionHandler { ends.arrive(3) }
            #expect(await ends.all().isEmpty)
            call.reply()
            await server.close()
            withExtendedLifetime(token) {}
        }
    }

    @Test func `close ends calls and nothing is called after it`() async throws {
        try await onConnections { actor, client, server in
            let calls = Arrival<DBusMethodCall>(actor.loop)
            let others = Arrival<Void>(actor.loop)
            let token = try await server.export(path: "/test", interface: test) { calls.arrive($0) }
            let match = try await client.addMatch(DBusMatch(interface: test)) { _ in others.arrive(()) }
            await client.setDisconnectionHandler { others.arrive(()) }
            let task = Task {
                await client.failure(of: testCall(server))
            }
            let call = await calls.get()
            try await server.emit(path: "/test", interface: test, member: "Signal")
            await client.close()
            await client.close()
            #expect(await task.value == DBusError.disconnected)
            call.reply()
            #expect(await others.all().isEmpty)
            withExtendedLifetime((token, match)) {}
        }
    }

    @Test func `a connection that is dropped leaves nothing`() async throws {
        try await onBus { _, bus in
            do {
                let connection = try await bus.connect()
                #expect(connection.uniqueName.hasPrefix(":"))
            }
        }
    }

    @Test func `a name that nobody owns is an error`() async throws {
        try await onConnections { _, client, _ in
            var call = DBusCall("org.example.Nobody", path: "/", interface: test, member: "Test")
            #expect(
                await client.failure(of: call) == DBusError.nameHasNoOwner
            )
            call.startsService = true
            #expect(
                await client.failure(of: call) == DBusError.serviceUnknown
            )
        }
    }

    @Test func `the bus's policy refuses`() async throws {
        try await onConnections { _, client, server in
            let call = DBusCall(server.uniqueName, path: "/", interface: "org.example.Forbidden", member: "Test")
            #expect(await client.failure(of: call) == DBusError.accessDenied)
        }
    }

    @Test(arguments: [
        DBusCall("no name", path: "/", interface: test, member: "Test"),
        DBusCall("org.example", path: "", interface: test, member: "Test"),
        DBusCall("org.example", path: "/", interface: "nothing", member: "Test"),
        DBusCall("org.example", path: "/", interface: test, member: "a.b"),
        DBusCall("org.example\0", path: "/", interface: test, member: "Test"),
    ])
    func `names that are none are refused`(_ call: DBusCall) async throws {
        try await onConnections { _, client, _ in
            #expect(await client.failure(of: call) == DBusError.invalidArguments)
        }
    }

    @Test(arguments: [
        "", "nonsense", "unix:path=/no/such/bus", "tcp:host=127.0.0.1,port=1", "autolaunch:", "unix:path=/a\0",
    ])
    func `an address that cannot be used is an error`(_ address: String) async throws {
        let _: Void = try await onLoop { actor in
            await #expect(throws: DBusError.self) {
                try await DBusConnection.open(address: address, loop: actor.loop)
            }
        }
    }
}
