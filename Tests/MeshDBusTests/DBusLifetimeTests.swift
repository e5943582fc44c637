// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshDBus
import MeshDBusTestSupport
import MeshLoop
import MeshTestSupport
import Synchronization
import Testing

private let name = "org.example.Named"
private let rule = "type='signal',interface='org.example.Test'"

extension DBusConnection {
    /// Whether the bus has a rule of this connection's, which is gone then.
    fileprivate func hasRule(_ rule: String) async throws -> Bool {
        do throws(DBusError) {
            _ = try await call(
                DBusCall(
                    "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus",
                    member: "RemoveMatch", [.string(rule)]))
            return true
        } catch {
            guard error.name == "org.freedesktop.DBus.Error.MatchRuleNotFound" else { throw error }
            return false
        }
    }
}

/// What keeps a token and may be emptied on any thread.
private final class Keeper<Token: Sendable>: Sendable {
    private let token = Mutex<Token?>(nil)

    func keep(_ token: Token) {
        self.token.withLock { $0 = token }
    }

    @concurrent func dropElsewhere(than loop: EventLoop) async {
        #expect(!loop.isOnLoop)
        token.withLock { $0 = nil }
    }
}

@Suite(.timeLimit(.minutes(10)))
struct DBusLifetimeTests {
    @Test func `an idle connection makes no wake-ups`() async throws {
        try await onBus { _, bus in
            // A loop that has no child: the death of any child of this process, also of other tests, wakes those that have.
            let turns = try await onLoop { actor in
                let client = try await DBusConnection.open(address: bus.address, loop: actor.loop)
                let token = try await client.addMatch(DBusMatch(sender: name)) { _ in }
                try await client.settle()
                let counter = TurnCounter(actor.loop)
                // That nothing happens is only seen over time. The timer itself takes a few turns.
                try await actor.loop.sleep(for: .milliseconds(300))
                await client.close()
                withExtendedLifetime(token) {}
                return counter.turns
            }
            #expect(turns < 8)
        }
    }

    @Test func `a match that is cancelled leaves nothing`() async throws {
        try await onConnections { actor, client, server in
            let log = Arrival<String>(actor.loop)
            let adding = Task {
                _ = actor
                _ = try await client.addMatch(DBusMatch(sender: name, interface: testInterface)) {
                    log.arrive($0.member)
                }
            }
            // The call is sent by now, and its reply cannot be read before the loop's next turn.
            await Task {
                _ = actor
                adding.cancel()
            }.value
            let error = await #expect(throws: DBusError.self) { try await adding.value }
            #expect(error?.name == DBusError.cancelled)
            _ = try await server.bus("RequestName", [.string(name), .uint32(0)])
            try await server.emit(
                path: "/test", interface: testInterface, member: "Direct", to: client.uniqueName)
            try await server.settle()
            try await client.settle()
            #expect(await log.all().isEmpty)
            #expect(try await !client.hasRule("\(rule),sender='\(name)'"))
            #expect(
                try await !client.hasRule(
                    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                        + "member='NameOwnerChanged',path='/org/freedesktop/DBus',arg0='\(name)'"))
        }
    }

    @Test func `a match that was cancelled before leaves its equal alone`() async throws {
        try await onConnections { _, client, _ in
            let token = try await client.addMatch(DBusMatch(interface: testInterface)) { _ in }
            let late = Task {
                while !Task.isCancelled { await Task.yield() }
                _ = try await client.addMatch(DBusMatch(interface: testInterface)) { _ in }
            }
            late.cancel()
            let error = await #expect(throws: DBusError.self) { try await late.value }
            #expect(error?.name == DBusError.cancelled)
            #expect(try await client.hasRule(rule))
            withExtendedLifetime(token) {}
        }
    }

    @Test func `a connection whose opening is cancelled leaves nothing`() async throws {
        try await onBus { actor, bus in
            let other = try await bus.connect()
            let opening = Task {
                _ = actor
                _ = try await bus.connect()
            }
            await Task {
                _ = actor
                opening.cancel()
            }.value
            let error = await #expect(throws: DBusError.self) { try await opening.value }
            #expect(error?.name == DBusError.cancelled)
            await other.close()
        }
    }

    @Test func `a match ends when its token is dropped on another thread`() async throws {
        try await onConnections { actor, client, server in
            let log = Arrival<String>(actor.loop)
            let keeper = Keeper<DBusMatchToken>()
            keeper.keep(
                try await client.addMatch(DBusMatch(interface: testInterface)) { log.arrive($0.member) })
            try await server.signal("Kept")
            #expect(await log.get() == "Kept")
            await keeper.dropElsewhere(than: actor.loop)
            try await server.signal("Dropped")
            try await server.settle()
            try await client.settle()
            #expect(await log.all().isEmpty)
            #expect(try await !client.hasRule(rule))
        }
    }

    @Test func `an export ends when its token is dropped on another thread`() async throws {
        try await onConnections { actor, client, server in
            let keeper = Keeper<DBusExportToken>()
            keeper.keep(try await server.export(path: "/test", interface: testInterface) { $0.reply() })
            let call = DBusCall(server.uniqueName, path: "/test", interface: testInterface, member: "Test")
            #expect(await client.failure(of: call) == nil)
            await keeper.dropElsewhere(than: actor.loop)
            #expect(await client.failure(of: call) == DBusError.unknownObject)
        }
    }

    @Test func `tokens that outlive their connection may be dropped anywhere`() async throws {
        try await onBus { actor, bus in
            let keeper = Keeper<DBusMatchToken>()
            let connection = try await bus.connect()
            keeper.keep(try await connection.addMatch(DBusMatch(interface: testInterface)) { _ in })
            await connection.close()
            await keeper.dropElsewhere(than: actor.loop)
        }
    }
}
