// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshDBus
import MeshDBusTestSupport
import MeshLoop
import Testing

private let test = "org.example.Test"

private func call(
    _ server: DBusConnection, _ member: String = "Test", path: String = "/a/b", interface: String = test
) -> DBusCall {
    DBusCall(server.uniqueName, path: path, interface: interface, member: member)
}

@Suite(.timeLimit(.minutes(10)))
struct DBusExportTests {
    @Test func `a call has its caller and is answered once`() async throws {
        try await onConnections { actor, client, server in
            let calls = Arrival<String>(actor.loop)
            let token = try await server.export(path: "/a/b", interface: test) { call in
                calls.arrive("\(call.sender) \(call.path) \(call.interface) \(call.member)")
                call.reply([.byte(1)])
                call.reply([.byte(2)])
                call.fail(DBusError("org.example.Error.Late"))
            }
            let result = try await client.call(call(server))
            #expect(result == [.byte(1)])
            #expect(await calls.get() == "\(client.uniqueName) /a/b org.example.Test Test")
            withExtendedLifetime(token) {}
        }
    }

    @Test func `an error arrives with its name and text`() async throws {
        try await onConnections { _, client, server in
            let token = try await server.export(path: "/a/b", interface: test) { call in
                call.fail(
                    call.member == "Test" ? DBusError("org.example.Error.No", "not now") : DBusError("no name", "x"))
            }
            await #expect(throws: DBusError("org.example.Error.No", "not now")) { try await client.call(call(server)) }
            await #expect(throws: DBusError(DBusError.failed, "no name: x")) {
                try await client.call(call(server, "Other"))
            }
            withExtendedLifetime(token) {}
        }
    }

    @Test func `a call that is dropped is answered with an error`() async throws {
        try await onConnections { _, client, server in
            let token = try await server.export(path: "/a/b", interface: test) { _ in }
            #expect(await client.failure(of: call(server)) == DBusError.failed)
            withExtendedLifetime(token) {}
        }
    }

    @Test func `a call may be answered from another thread`() async throws {
        try await onConnections { _, client, server in
            let token = try await server.export(path: "/a/b", interface: test) { call in
                Task.detached { call.reply([.string("elsewhere")]) }
            }
            let result = try await client.call(call(server))
            #expect(result == [.string("elsewhere")])
            withExtendedLifetime(token) {}
        }
    }

    @Test func `what is not exported is an error`() async throws {
        try await onConnections { _, client, server in
            var token: DBusExportToken? = try await server.export(path: "/a/b", interface: test) { $0.reply() }
            #expect(
                await client.failure(of: call(server, path: "/a"))
                    == DBusError.unknownObject)
            #expect(
                await client.failure(of: call(server, interface: "org.example.No"))
                    == DBusError.unknownInterface)
            let result = try await client.call(call(server))
            #expect(result == [])
            withExtendedLifetime(token) {}
            token = nil
            #expect(
                await client.failure(of: call(server)) == DBusError.unknownObject
            )
        }
    }

    @Test func `an interface is exported once at a path`() async throws {
        try await onConnections { _, _, server in
            let token = try await server.export(path: "/a/b", interface: test) { $0.reply() }
            for (path, interface) in [("/a/b", test), ("a", test), ("/a", "nothing")] {
                await #expect(throws: DBusError.self) {
                    try await server.export(path: path, interface: interface) { $0.reply() }
                }
            }
            withExtendedLifetime(token) {}
        }
    }

    @Test func `a path is introspected and answers a ping`() async throws {
        try await onConnections { _, client, server in
            let token = try await server.export(path: "/a/b", interface: test) { $0.reply() }
            let introspectable = "org.freedesktop.DBus.Introspectable"
            for (path, line) in [
                ("/", "<node name=\"a\"/>"), ("/a", "<node name=\"b\"/>"), ("/a/b", "<interface name=\"\(test)\"/>"),
            ] {
                let reply = try await client.call(call(server, "Introspect", path: path, interface: introspectable))
                guard case .string(let text)? = reply.first else { throw TestFailure("\(reply)") }
                #expect(text.contains(line))
            }
            let result = try await client.call(call(server, "Ping", interface: "org.freedesktop.DBus.Peer"))
            #expect(result == [])
            withExtendedLifetime(token) {}
        }
    }
}
