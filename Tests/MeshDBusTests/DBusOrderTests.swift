// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshDBus
import MeshDBusTestSupport
import MeshLoop
import Testing

/// Who calls: tasks come back to the loop in different ways.
enum CallerKind: CaseIterable {
    /// A task without a preference is resumed on a thread of the global pool.
    case anyTask
    /// One that prefers the loop takes another job of the loop for each actor that it comes back to.
    case taskOfLoop
}

/// An actor between the caller and the connection.
private actor Relay {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let connection: DBusConnection

    init(_ connection: DBusConnection, _ loop: EventLoop) {
        self.connection = connection
        self.loop = loop
    }

    func call(_ call: DBusCall) async throws {
        _ = try await connection.call(call)
    }
}

/// Runs `body` on the actor, in a task of this kind.
private func run<Result: Sendable>(
    as kind: CallerKind, on actor: isolated LoopActor,
    _ body: @escaping @Sendable (isolated LoopActor) async throws -> Result
) async throws -> Result {
    switch kind {
    case .anyTask: try await Task { try await body(actor) }.value
    case .taskOfLoop: try await Task(executorPreference: actor.loop.taskExecutor) { try await body(actor) }.value
    }
}

@Suite(.timeLimit(.minutes(10)))
struct DBusOrderTests {
    @Test(arguments: CallerKind.allCases)
    func `replies and signals are seen in the order in which they arrive`(_ kind: CallerKind) async throws {
        try await onConnections { actor, client, server in
            let log = Arrival<String>(actor.loop)
            let token = try await client.addMatch(DBusMatch(interface: testInterface)) { log.arrive($0.member) }
            let export = try await server.export(path: "/test", interface: testInterface) { [weak server] call in
                server?.assumeIsolated { server in
                    try? server.signal("Before")
                    if call.member == "Test" { call.reply() } else { call.fail(DBusError(DBusError.failed)) }
                    try? server.signal("After")
                }
            }
            let relay = Relay(client, actor.loop)
            let call = DBusCall(server.uniqueName, path: "/test", interface: testInterface, member: "Test")
            var wrong = call
            wrong.member = "Wrong"
            try await run(as: kind, on: actor) { [wrong] _ in
                for _ in 0..<50 {
                    try await relay.call(call)
                    log.arrive("reply")
                    try? await relay.call(wrong)
                    log.arrive("error")
                }
            }
            try await client.settle()
            let one = ["Before", "reply", "After", "Before", "error", "After"]
            #expect(await log.all() == Array(repeating: one, count: 50).flatMap { $0 })
            withExtendedLifetime((token, export)) {}
        }
    }

    /// It is long enough for reading in pauses to begin (`ReadModerationPolicy`).
    @Test func `a long stream is complete, and calls in the middle of it are seen in its order`() async throws {
        try await onConnections { actor, client, server in
            let log = Arrival<String>(actor.loop)
            let token = try await client.addMatch(DBusMatch(interface: testInterface)) { log.arrive($0.member) }
            let export = try await server.export(path: "/test", interface: testInterface) { $0.reply() }
            let call = DBusCall(server.uniqueName, path: "/test", interface: testInterface, member: "Test")
            var expected: [String] = []
            for round in 0..<4 {
                for number in 0..<500 {
                    expected.append("Signal\(round)x\(number)")
                    try await server.signal("Signal\(round)x\(number)")
                    // The bus has taken them one by one, and so does the client.
                    if number % 4 == 0 { try await server.settle() }
                }
                _ = try await client.call(call)
                log.arrive("reply")
                expected.append("reply")
            }
            #expect(await log.all() == expected)
            withExtendedLifetime((token, export)) {}
        }
    }

    @Test(arguments: CallerKind.allCases)
    func `a signal that follows the answer to a new match reaches its handler`(_ kind: CallerKind) async throws {
        try await onConnections { actor, client, _ in
            let log = Arrival<String>(actor.loop)
            for _ in 0..<20 {
                let token = try await run(as: kind, on: actor) { actor in
                    // Sent right after the call, so it comes back right after the answer.
                    actor.loop.atEndOfTurn {
                        client.assumeIsolated { try? $0.signal("Own") }
                    }
                    let token = try await client.addMatch(DBusMatch(interface: testInterface)) {
                        log.arrive($0.member)
                    }
                    log.arrive("added")
                    return token
                }
                try await client.settle()
                #expect(await log.all() == ["added", "Own"])
                await log.clear()
                withExtendedLifetime(token) {}
            }
        }
    }
}
