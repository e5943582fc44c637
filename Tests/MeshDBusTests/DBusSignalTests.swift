// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshDBus
import MeshDBusTestSupport
import MeshLoop
import Testing

private let test = "org.example.Test"

@Suite(.timeLimit(.minutes(10)))
struct DBusSignalTests {
    @Test func `a signal has its sender and its arguments`() async throws {
        try await onConnections { actor, client, server in
            let signals = Arrival<DBusSignal>(actor.loop)
            let token = try await client.addMatch(DBusMatch(interface: test)) { signals.arrive($0) }
            try await server.signal("Changed", [.string("a")])
            #expect(
                await signals.get()
                    == DBusSignal(
                        sender: server.uniqueName, path: "/test", interface: test, member: "Changed",
                        arguments: [.string("a")]))
            withExtendedLifetime(token) {}
        }
    }

    @Test func `each handler gets what its match describes`() async throws {
        try await onConnections { actor, client, server in
            let odd = #"it's a \, no?"#
            let matches = [
                DBusMatch(path: "/test/a"), DBusMatch(pathNamespace: "/test"), DBusMatch(pathNamespace: "/"),
                DBusMatch(member: "Two"), DBusMatch(argument0: odd),
                DBusMatch(sender: server.uniqueName, member: "One"),
                DBusMatch(sender: client.uniqueName), DBusMatch(sender: "org.example.Nobody"),
            ].map {
                var match = $0
                match.interface = test
                return match
            }
            let log = Arrival<String>(actor.loop)
            var tokens: [DBusMatchToken] = []
            for (index, match) in matches.enumerated() {
                tokens.append(
                    try await client.addMatch(match) { log.arrive("\($0.member)\($0.path):\(index)") })
            }
            try await server.signal("One", path: "/test/a")
            try await server.signal("Two", path: "/test")
            try await server.signal("Three", path: "/testing", [.string(odd)])
            try await server.settle()
            try await client.settle()
            #expect(
                await log.all() == [
                    "One/test/a:0", "One/test/a:1", "One/test/a:2", "One/test/a:5", "Two/test:1", "Two/test:2",
                    "Two/test:3", "Three/testing:2", "Three/testing:4",
                ])
            withExtendedLifetime(tokens) {}
        }
    }

    @Test func `values of bytes come straight from the message, and the rest as signals`() async throws {
        try await onConnections { actor, client, server in
            _ = try await server.bus("RequestName", [.string("org.example.Radio"), .uint32(0)])
            let log = Arrival<String>(actor.loop)
            let token = try await client.addMatch(
                DBusMatch(sender: "org.example.Radio", member: "PropertiesChanged")
            ) { _ in log.arrive("signal") }
            let value = DBusBytesProperty(
                sender: "org.example.Radio", path: "/radio", interface: test, name: "Value")
            await client.setBytesHandler(of: value) { log.arrive("\(Array($0))") }

            func change(_ properties: [DBusValue: DBusValue], path: String = "/radio") async throws {
                try await server.emit(
                    path: path, interface: "org.freedesktop.DBus.Properties", member: "PropertiesChanged",
                    [
                        .string(test), .dictionary(key: "s", value: "v", properties),
                        .array(element: "s", []),
                    ])
            }

            try await change([.string("Value"): .variant(.bytes([1, 2]))])
            try await change([.string("Value"): .variant(.bytes([]))])
            try await change([.string("Value"): .variant(.string("text"))])
            try await change([.string("Other"): .variant(.bytes([3]))])
            try await change([.string("Value"): .variant(.bytes([4])), .string("Other"): .variant(.bool(true))])
            try await change([:])
            try await change([.string("Value"): .variant(.bytes([5]))], path: "/other")
            try await server.settle()
            try await client.settle()
            #expect(await log.all() == ["[1, 2]", "[]"] + Array(repeating: "signal", count: 5))
            await log.clear()
            await client.setBytesHandler(of: value, nil)
            try await change([.string("Value"): .variant(.bytes([6]))])
            try await server.settle()
            try await client.settle()
            #expect(await log.all() == ["signal"])
            withExtendedLifetime(token) {}
        }
    }

    @Test func `a name stands for the connection that owns it`() async throws {
        try await onBus { actor, bus in
            let (client, first, second) = (try await bus.connect(), try await bus.connect(), try await bus.connect())
            let log = Arrival<String>(actor.loop)
            let name = DBusValue.string("org.example.Named")
            // The bus delivers what either match describes.
            let named = try await client.addMatch(DBusMatch(sender: "org.example.Named", interface: test)) {
                log.arrive($0.member)
            }
            let any = try await client.addMatch(DBusMatch(interface: test)) { _ in }

            func signalFromBoth(_ state: String) async throws {
                try await first.signal("First\(state)")
                try await second.signal("Second\(state)")
                // To the client alone, which no match is asked about.
                try await second.emit(
                    path: "/test", interface: test, member: "Direct\(state)", to: client.uniqueName)
                try await first.settle()
                try await second.settle()
                try await client.settle()
            }

            try await signalFromBoth("Unowned")
            _ = try await first.bus("RequestName", [name, .uint32(0)])
            try await signalFromBoth("OwnedByFirst")
            _ = try await first.bus("ReleaseName", [name])
            try await signalFromBoth("Released")
            _ = try await second.bus("RequestName", [name, .uint32(0)])
            try await signalFromBoth("OwnedBySecond")
            // Who comes later asks for the owner.
            let late = try await first.addMatch(DBusMatch(sender: "org.example.Named", interface: test)) {
                log.arrive("late \($0.member)")
            }
            try await second.signal("Last")
            try await second.settle()
            try await client.settle()
            try await first.settle()
            #expect(
                await log.all().sorted() == [
                    "DirectOwnedBySecond", "FirstOwnedByFirst", "Last", "SecondOwnedBySecond", "late Last",
                ])
            for connection in [client, first, second] { await connection.close() }
            withExtendedLifetime((named, any, late)) {}
        }
    }

    @Test func `ten thousand signals arrive in order`() async throws {
        try await onConnections { actor, client, server in
            let count: UInt32 = 10_000
            let last = Arrival<UInt32>(actor.loop)
            let counter = Counter(actor.loop)
            let token = try await client.addMatch(DBusMatch(interface: test)) { signal in
                counter.assumeIsolated { $0.count(signal.arguments) }
                if signal.arguments == [.uint32(count - 1)] { last.arrive(count) }
            }
            for number in 0..<count { try await server.signal("Tick", [.uint32(number)]) }
            _ = await last.get()
            #expect(await counter.next == count)
            withExtendedLifetime(token) {}
        }
    }

    @Test func `a dropped token ends its handler alone`() async throws {
        try await onConnections { actor, client, server in
            let log = Arrival<String>(actor.loop)
            let match = DBusMatch(interface: test)
            var first: DBusMatchToken? = try await client.addMatch(match) { _ in log.arrive("first") }
            let second = try await client.addMatch(match) { _ in log.arrive("second") }
            withExtendedLifetime(first) {}
            first = nil
            try await server.signal("Changed")
            try await server.settle()
            try await client.settle()
            #expect(await log.all() == ["second"])
            withExtendedLifetime(second) {}
        }
    }

    @Test func `a handler may drop the token of the next one`() async throws {
        try await onConnections { actor, client, server in
            let log = Arrival<String>(actor.loop)
            let box = TokenBox(actor.loop)
            let match = DBusMatch(interface: test)
            let first = try await client.addMatch(match) { _ in
                log.arrive("first")
                box.assumeIsolated { $0.token = nil }
            }
            await box.set(try await client.addMatch(match) { _ in log.arrive("second") })
            try await server.signal("Changed")
            try await server.settle()
            try await client.settle()
            #expect(await log.all() == ["first"])
            withExtendedLifetime(first) {}
        }
    }

    @Test func `a rule that the bus refuses is an error`() async throws {
        try await onConnections { _, client, _ in
            await #expect(throws: DBusError.self) {
                try await client.addMatch(DBusMatch(interface: "nothing")) { _ in }
            }
            await #expect(throws: DBusError.self) {
                try await client.addMatch(DBusMatch(sender: "no name")) { _ in }
            }
        }
    }
}

private actor Counter {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    /// What must come next.
    private(set) var next: UInt32 = 0

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    func count(_ arguments: [DBusValue]) {
        if arguments == [.uint32(next)] { next += 1 }
    }
}

private actor TokenBox {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    var token: DBusMatchToken?

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    func set(_ token: DBusMatchToken) {
        self.token = token
    }
}
