// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshJournal
import MeshLoop
import Testing

@testable import MeshSharing

/// Where programs go on reading when others of their name come and go meanwhile.
struct PlaceTests {
    private static let next = MessageSharingTests.next

    private static func message(_ number: UInt8) -> Data { MessageSharingTests.message(number) }

    /// A client that has said its version, and nothing else.
    private static func stranger(_ bench: isolated SharingBench) async throws -> ShareTestClient {
        let client = try await bench.client()
        #expect(try await client.ask(Data([0x16, 3]))?.first == 0x0D)
        return client
    }

    /// The messages of a client that has sent its name.
    private static func messages(of client: ShareTestClient) async throws -> [Data] {
        #expect(await MessageSharingTests.frame(client)?.first == 0x05)
        return try await MessageSharingTests.drain(client)
    }

    @Test func `who comes back before its dead connection is noticed gets what was not read there`() async throws {
        try await SharingBench.run { bench in
            let dead = try await MessageSharingTests.client(bench, "app")
            try await MessageSharingTests.arrive(1...1, bench)
            await dead.stopReading()
            try await dead.send(Self.next)
            while await bench.session.counters.messagesDelivered == 0 { await Task.yield() }
            let heir = try await Self.stranger(bench)
            let journal = try await HeldJournal(bench.journal)
            try await heir.send(MessageSharingTests.appStart("app"))
            // It has a slot, and asks for its place.
            await journal.call()
            _ = try await bench.event("client.leave") { await dead.close() }
            journal.end()
            #expect(try await Self.messages(of: heir) == [Self.message(1)])
        }
    }

    @Test func `what a client was being given when it left is for whoever comes after it`() async throws {
        try await SharingBench.run { bench in
            let before = try await MessageSharingTests.client(bench, "app")
            _ = try await bench.event("client.leave") { await before.close() }
            try await MessageSharingTests.arrive(1...1, bench)
            let client = try await Self.stranger(bench)
            await client.stopReading()
            var journal = try await HeldJournal(bench.journal)
            // Together: the second command is begun by the task of the first.
            try await client.sendRaw(PipeliningTests.framed([MessageSharingTests.appStart("app"), Self.next]))
            // Its place, and its messages.
            try await journal.step()
            try await journal.step()
            // That it has the first.
            await journal.call()
            _ = try await bench.event("client.leave") { await client.close() }
            let heir = try await Self.stranger(bench)
            try await heir.send(MessageSharingTests.appStart("app"))
            while await !bench.session.isAtJournal { await Task.yield() }
            // It would be with the journal by then, if it did not wait.
            for _ in 0..<100 { await Task.yield() }
            journal.end()
            #expect(try await Self.messages(of: heir) == [Self.message(1)])
        }
    }

    @Test func `programs of one name each find their own place when their share was closed`() async throws {
        try await SharingBench.run { bench in
            var clients: [ShareTestClient] = []
            // Each begins where the one before has read to, and reads what has come since. None says anything after that.
            for number in 1...4 {
                let client = try await MessageSharingTests.client(bench, "app")
                clients.append(client)
                let new = number == 1 ? [] : [Self.message(UInt8(number - 1))]
                #expect(try await MessageSharingTests.drain(client) == new)
                try await MessageSharingTests.arrive(UInt8(number)...UInt8(number), bench)
            }
            await bench.session.closeShare(0)
            _ = try await bench.session.openShare(
                ShareSettings(
                    name: "test", type: "companion-unix", addresses: [SocketAddress(unixPath: bench.path)])
            )
            for number in 1...4 {
                let client = try await MessageSharingTests.client(bench, "app")
                #expect(try await MessageSharingTests.drain(client) == (UInt8(number)...4).map(Self.message))
            }
        }
    }

    @Test func `a client whose place cannot be read is not told that there are no messages`() async throws {
        try await SharingBench.run { bench in
            let client = try await Self.stranger(bench)
            await bench.journal.close()
            #expect(try await client.ask(Self.next) == CompanionFrame.error(.fileError))
        }
    }
}

extension RadioSession {
    /// Whether a client's command waits for the journal.
    fileprivate var isAtJournal: Bool {
        clients.values.contains { if case .journal = $0.work { true } else { false } }
    }
}
