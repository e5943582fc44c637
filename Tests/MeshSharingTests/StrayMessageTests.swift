// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshJournal
import Synchronization
import Testing

@testable import MeshSharing

/// Messages that do not come as the answer to the host's question: the radio has forgotten them all the same.
@Suite(.timeLimit(.minutes(20)))
struct StrayMessageTests {
    private static let getTime = Data([0x05])
    private static let time = Data([0x09, 1, 2, 3, 4])

    private static func message(_ number: UInt8) -> Data { MessageSharingTests.message(number) }

    /// Waits for the first message that is stored, and gives what a client gets then.
    private static func messages(
        _ bench: isolated SharingBench, after action: () async throws -> Void
    ) async throws -> [Data] {
        let client = try await MessageSharingTests.client(bench, "app")
        _ = try await bench.event("message.direct", after: action)
        return try await MessageSharingTests.drain(client)
    }

    @Test func `one that comes after its question has timed out is stored, and those behind it`() async throws {
        try await SharingBench.run { bench in
            let radio = bench.radio
            let isHeldBack = Mutex(false)
            let messages = try await Self.messages(bench) {
                await radio.answer { command in
                    switch command {
                    case MessageSharingTests.next where isHeldBack.withLock { !$0 }:
                        isHeldBack.withLock { $0 = true }
                        return []
                    // The fence.
                    case Self.getTime where isHeldBack.withLock { $0 }: return [Self.message(1), Self.time]
                    default: return AnsweringRadio.usual(command)
                    }
                }
                await radio.push(MessageSharingTests.waiting)
            }
            #expect(messages.first == Self.message(1))
            #expect(await bench.session.counters.lateReplies == 1)
        }
    }

    @Test func `another interface's answer does not cost the one that was asked for`() async throws {
        try await SharingBench.run { bench in
            let radio = bench.radio
            let isAnswered = Mutex(false)
            let messages = try await Self.messages(bench) {
                await radio.answer { command in
                    let isFirst = command == MessageSharingTests.next && isAnswered.withLock { !$0 }
                    guard isFirst else { return AnsweringRadio.usual(command) }
                    isAnswered.withLock { $0 = true }
                    return [MessageSharingTests.noMore, Self.message(1)]
                }
                await radio.push(MessageSharingTests.waiting)
            }
            #expect(messages == [Self.message(1)])
        }
    }

    @Test func `one that another interface asked for is stored, and more are looked for`() async throws {
        try await SharingBench.run { bench in
            let radio = bench.radio
            let messages = try await Self.messages(bench) {
                await radio.queue([Self.message(2)])
                await radio.push(Self.message(1))
            }
            #expect(messages.first == Self.message(1))
            while await bench.session.counters.messagesStored < 2 { await Task.yield() }
        }
    }

    @Test func `one that is there already is not stored again, and nothing is asked for its sake`() async throws {
        try await SharingBench.run { bench in
            let radio = bench.radio
            _ = try await Self.messages(bench) { await radio.push(Self.message(1)) }
            let client = try await MessageSharingTests.client(bench, "other")
            let questions = await radio.received.count { $0 == MessageSharingTests.next }
            await radio.push(MessageSharingTests.oldMessage(1))
            while await bench.session.counters.messagesRepeated == 0 { await Task.yield() }
            #expect(try await client.ask(RadioSessionTests.getCore) != nil)
            #expect(await radio.received.count { $0 == MessageSharingTests.next } == questions)
        }
    }

    @Test func `so many wait for the journal, and the newest gives way`() {
        var unstored = UnstoredMessages()
        let messages = (0...UnstoredMessages.limit).map { number in
            NewMessage(device: "roof", receivedAt: Int64(number), key: Data([UInt8(number)]), frame: Data())
        }
        #expect(messages.map { unstored.keep($0) } == messages.indices.map { $0 < UnstoredMessages.limit })
        var kept: [NewMessage] = []
        while let first = unstored.first {
            kept.append(first.message)
            unstored.stored(first.number)
            unstored.stored(first.number)
        }
        #expect(kept == Array(messages.dropLast()))
    }
}
