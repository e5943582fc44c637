// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Glibc
import MeshDBus
import MeshDBusTestSupport
import MeshLoop
import Testing

private let echo = "org.example.Echo"

private func echoCall(_ server: DBusConnection, _ arguments: [DBusValue]) -> DBusCall {
    DBusCall(server.uniqueName, path: "/echo", interface: echo, member: "Echo", arguments)
}

/// Runs `body` with a client, and a server that returns what it is called with.
private func withEcho(
    _ body: @Sendable (isolated LoopActor, _ client: DBusConnection, _ server: DBusConnection) async throws -> Void
) async throws {
    try await onConnections { actor, client, server in
        let token = try await server.export(path: "/echo", interface: echo) { $0.reply($0.arguments) }
        try await body(actor, client, server)
        withExtendedLifetime(token) {}
    }
}

@Suite(.timeLimit(.minutes(10)))
struct DBusValueTests {
    static let samples: [[DBusValue]] = [
        [],
        [.byte(255), .bool(true), .bool(false)],
        [.int16(.min), .uint16(.max), .int32(.min), .uint32(.max), .int64(.min), .uint64(.max), .double(-0.5)],
        [
            .string(""), .string("grüße 🛰"), .objectPath("/"), .objectPath("/org/bluez"), .signature(""),
            .signature("a{sv}"),
        ],
        [.bytes([]), .bytes([0]), .bytes(Array(repeating: 0xA5, count: 100_000))],
        [.array(element: "s", []), .array(element: "s", [.string("a"), .string("b")])],
        [
            .array(element: "(ii)", [.structure([.int32(1), .int32(2)])]),
            .array(element: "as", [.array(element: "s", [])]),
        ],
        [.array(element: "ay", [.bytes([1, 2]), .bytes([])])],
        [.structure([.string("a"), .structure([.byte(1)])]), .variant(.variant(.bytes([1])))],
        [
            .dictionary(key: "s", value: "v", [:]),
            .dictionary(key: "q", value: "ay", [.uint16(0xFFFF): .bytes([1, 2, 3])]),
        ],
        [
            .dictionary(
                key: "o", value: "a{sa{sv}}",
                [
                    .objectPath("/org/bluez/hci0"): .dictionary(
                        key: "s", value: "a{sv}",
                        [
                            .string("org.bluez.Adapter1"): .dictionary(
                                key: "s", value: "v",
                                [
                                    .string("Powered"): .variant(.bool(true)),
                                    .string("UUIDs"): .variant(.array(element: "s", [.string("1801")])),
                                    .string("Class"): .variant(.uint32(7)),
                                ]),
                            .string("org.example.Empty"): .dictionary(key: "s", value: "v", [:]),
                        ])
                ])
        ],
    ]

    @Test func `every type comes back as it was sent`() async throws {
        try await withEcho { _, client, server in
            for sample in Self.samples {
                let result = try await client.call(echoCall(server, sample))
                #expect(result == sample)
            }
        }
    }

    @Test func `sixty-four levels are carried and one more is refused`() async throws {
        try await withEcho { _, client, server in
            let deep = (0..<64).reduce(DBusValue.byte(1)) { value, _ in .variant(value) }
            let deeper = DBusValue.variant(deep)
            let result = try await client.call(echoCall(server, [deep]))
            #expect(result == [deep])
            #expect(
                await client.failure(of: echoCall(server, [deeper]))
                    == DBusError.invalidArguments)
        }
    }

    @Test(
        arguments: [
            .string("a\0b"), .objectPath("no/path"), .objectPath("/trailing/"), .signature("a"), .structure([]),
            .array(element: "s", [.string("a"), .byte(1)]), .array(element: "", []), .array(element: "ss", []),
            .structure([.array(element: "ss", [])]),
            .array(element: "s\0", []), .dictionary(key: "v", value: "s", [:]),
            .dictionary(key: "s", value: "s", [.string("a"): .byte(1)]), .variant(.structure([])), .descriptor(-1),
            .variant(.array(element: "nonsense", [])), .array(element: String(repeating: "a", count: 300) + "s", []),
        ] as [DBusValue])
    func `what cannot be expressed is refused before it is sent`(_ value: DBusValue) async throws {
        try await onConnections { _, client, server in
            #expect(
                await client.failure(of: echoCall(server, [value]))
                    == DBusError.invalidArguments)
            // The connection is as good as before.
            _ = try await client.call(
                DBusCall("org.freedesktop.DBus", path: "/", interface: "org.freedesktop.DBus", member: "ListNames"))
        }
    }

    @Test func `an answer that cannot be expressed is an error to the caller`() async throws {
        try await onConnections { _, client, server in
            let token = try await server.export(path: "/echo", interface: echo) { $0.reply([.structure([])]) }
            #expect(
                await client.failure(of: echoCall(server, []))
                    == DBusError.invalidArguments)
            withExtendedLifetime(token) {}
        }
    }

    // MARK: Descriptors

    @Test func `a descriptor in a reply works and is the caller's`() async throws {
        try await withEcho { actor, client, server in
            let (reading, writing) = try makePipe()
            defer { close(reading) }
            var call = echoCall(server, [.variant(.descriptor(writing))])
            call.takesDescriptors = true
            let reply = try await client.call(call)
            close(writing)
            guard case .variant(.descriptor(let received))? = reply.first else { throw TestFailure("\(reply)") }
            #expect(received != writing)
            #expect(write(received, "x", 1) == 1)
            var byte: UInt8 = 0
            #expect(read(reading, &byte, 1) == 1 && byte == UInt8(ascii: "x"))
            reply.closeDescriptors()
            try await untilReadable(reading, actor.loop)
            #expect(read(reading, &byte, 1) == 0)
        }
    }

    @Test func `descriptors in a reply are closed where the caller takes none`() async throws {
        try await withEcho { actor, client, server in
            let (reading, writing) = try makePipe()
            defer { close(reading) }
            let reply = try await client.call(echoCall(server, [.byte(1), .variant(.descriptor(writing))]))
            close(writing)
            #expect(reply == [.byte(1), .variant(.descriptor(-1))])
            try await untilReadable(reading, actor.loop)
            var byte: UInt8 = 0
            #expect(read(reading, &byte, 1) == 0)
        }
    }

    @Test func `descriptors of a signal are closed whether or not somebody takes it`() async throws {
        try await onConnections { actor, client, server in
            let arrival = Arrival<DBusValue>(actor.loop)
            let match = DBusMatch(interface: echo, member: "Taken")
            let first = try await client.addMatch(match) { arrival.arrive($0.arguments[0]) }
            let second = try await client.addMatch(match) { arrival.arrive($0.arguments[0]) }
            for member in ["Taken", "Untaken"] {
                let (reading, writing) = try makePipe()
                defer { close(reading) }
                try await server.emit(
                    path: "/", interface: echo, member: member, [.descriptor(writing)], to: client.uniqueName)
                close(writing)
                try await untilReadable(reading, actor.loop)
                var byte: UInt8 = 0
                #expect(read(reading, &byte, 1) == 0)
            }
            #expect(await arrival.get() == arrival.get())
            withExtendedLifetime((first, second)) {}
        }
    }

    @Test func `descriptors of a call and of a late reply are closed`() async throws {
        try await onConnections { actor, client, server in
            let calls = Arrival<DBusMethodCall>(actor.loop)
            let token = try await server.export(path: "/echo", interface: echo) { calls.arrive($0) }
            let (reading, writing) = try makePipe()
            defer { close(reading) }
            let task = Task { try await client.call(echoCall(server, [.descriptor(writing)])) }
            do {
                let call = await calls.get()
                task.cancel()
                await #expect(throws: DBusError.self) { try await task.value }
                call.reply(call.arguments)
            }
            close(writing)
            try await untilReadable(reading, actor.loop)
            var byte: UInt8 = 0
            #expect(read(reading, &byte, 1) == 0)
            withExtendedLifetime(token) {}
        }
    }
}
