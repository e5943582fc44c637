// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import Glibc
import MeshLoop
import MeshTestSupport
import MeshTransportAPI
import Testing

@testable import MeshJournal

struct JournalHealthStateMachineTests {
    @Test func `a failure is told once, and so is its end`() {
        var health = JournalHealthStateMachine()
        #expect(health.nextDeadline == nil)
        #expect(health.wrote(now: .zero) == .none)
        #expect(health.failed(now: .seconds(10)) == .tell)
        #expect(health.failed(now: .seconds(10)) == .none)
        #expect(health.nextDeadline == .seconds(11))
        #expect(health.wrote(now: .seconds(11)) == .haveOthersTry)
        #expect(health.wrote(now: .seconds(11)) == .none)
        #expect(health.nextDeadline == .seconds(16))
        #expect(health.deadlineReached(now: .seconds(15)) == .none)
        #expect(health.deadlineReached(now: .seconds(16)) == .tell)
        #expect(health.nextDeadline == nil)
        #expect(health.deadlineReached(now: .seconds(17)) == .none)
    }

    @Test func `room for a little is not told of`() {
        var health = JournalHealthStateMachine()
        #expect(health.failed(now: .zero) == .tell)
        #expect(health.deadlineReached(now: .seconds(1)) == .tryWriting)
        #expect(health.wrote(now: .seconds(1)) == .haveOthersTry)
        #expect(health.failed(now: .seconds(2)) == .none)
        // With the delay that it had.
        #expect(health.nextDeadline == .seconds(4))
        #expect(health.deadlineReached(now: .seconds(4)) == .tryWriting)
        #expect(health.nextDeadline == .seconds(8))
    }

    @Test func `it is tried again, more and more rarely`() {
        var health = JournalHealthStateMachine()
        #expect(health.failed(now: .zero) == .tell)
        var tries: [Duration] = []
        while tries.count < 9, let deadline = health.nextDeadline {
            #expect(health.deadlineReached(now: deadline - .nanoseconds(1)) == .none)
            #expect(health.deadlineReached(now: deadline) == .tryWriting)
            #expect(health.failed(now: deadline) == .none)
            tries.append(deadline)
        }
        #expect(tries == [1, 3, 7, 15, 31, 63, 123, 183, 243].map { .seconds($0) })
    }

    @Test func `a failure soon after a success goes on with its delay`() {
        for (pause, delay) in [(1, 4), (119, 4), (120, 1), (100_000, 1)] {
            var health = JournalHealthStateMachine()
            #expect(health.failed(now: .zero) == .tell)
            #expect(health.deadlineReached(now: .seconds(1)) == .tryWriting)
            #expect(health.deadlineReached(now: .seconds(3)) == .tryWriting)
            #expect(health.wrote(now: .seconds(3)) == .haveOthersTry)
            #expect(health.deadlineReached(now: .seconds(8)) == .tell)
            #expect(health.failed(now: .seconds(8 + pause)) == .tell)
            #expect(health.nextDeadline == .seconds(8 + pause + delay))
        }
    }
}

/// A journal that fails, and what is told of it. In virtual time: nobody waits for its backoff.
struct JournalHealthTests {
    private static func run(
        _ body:
            @Sendable (isolated LoopActor, MessageJournal, inout AsyncStream<JournalEvent>.Iterator) async throws ->
            Void
    ) async throws {
        try await Bench.run { bench in
            try await onLoop(time: .virtual) { actor in
                var settings = JournalSettings()
                settings.busyTimeout = .milliseconds(1)
                let journal = try await MessageJournal.open(
                    path: bench.path, settings: settings, loop: actor.loop, log: .none)
                let (events, continuation) = AsyncStream.makeStream(of: JournalEvent.self)
                await journal.observe { continuation.yield($0) }
                var iterator = events.makeAsyncIterator()
                do {
                    try await body(actor, journal, &iterator)
                } catch {
                    Issue.record(error)
                }
                await journal.close()
            }
        }
    }

    private static func message(_ text: String) -> NewMessage {
        NewMessage(device: "roof", receivedAt: 0, key: .init(text.utf8), frame: .init(text.utf8), origin: nil)
    }

    @Test func `what cannot be written is told of once, tried again unasked, and told of when it can be`() async throws
    {
        try await Self.run { actor, journal, events in
            let other = try SQLiteConnection(path: journal.path)
            try other.execute("BEGIN IMMEDIATE", "test")
            for text in ["one", "two"] {
                await #expect(throws: MeshError.self) { _ = try await journal.append(Self.message(text)) }
            }
            guard case .failing(let error)? = await events.next(isolation: actor) else {
                Issue.record("no failure")
                return
            }
            #expect(error.code == .serviceUnavailable)
            try other.execute("ROLLBACK", "test")
            // Nobody asks it for anything.
            guard case .writable? = await events.next(isolation: actor) else {
                Issue.record("nobody is asked to try again")
                return
            }
            guard case .working? = await events.next(isolation: actor) else {
                Issue.record("no end, or a second failure")
                return
            }
            #expect(try await journal.append(Self.message("three")) != nil)
        }
    }

    @Test func `reading that goes well says nothing of writing`() async throws {
        try await Self.run { actor, journal, events in
            let other = try SQLiteConnection(path: journal.path)
            try other.execute("BEGIN IMMEDIATE", "test")
            await #expect(throws: MeshError.self) { _ = try await journal.append(Self.message("one")) }
            _ = await events.next(isolation: actor)
            #expect(try await journal.entries(of: "roof", after: 0, limit: 1).isEmpty)
            // Who comes late is told as well.
            let late = LoopResult<Bool>()
            await journal.observe { if case .failing = $0 { late.set(true) } }
            #expect(await late.get())
            try other.execute("ROLLBACK", "test")
        }
    }

    @Test func `a damaged file is told of, also when it was found at the start`() async throws {
        try await Bench.run { bench in
            try bench.write(Array("this is no database, and it is long enough to be looked at".utf8))
            let journal = try await bench.open()
            let told = LoopResult<String?>()
            await journal.observe {
                if case .replaced(let path, let error) = $0, error.code == .storageFailed {
                    told.set(path)
                } else {
                    told.set(nil)
                }
            }
            #expect(await told.get() == bench.path + ".corrupt")
            await journal.close()
        }
    }
}
