// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshRuntime
import MeshTransportAPI
import Testing

@testable import MeshSharing

/// Messages: read from the radio once, given to every client.
struct MessageSharingTests {
    static let next = Data([0x0A])
    static let noMore = Data([0x0A])
    static let waiting = Data([0x83])
    static let getCore = RadioSessionTests.getCore

    static func appStart(_ name: String) -> Data { Data([0x01]) + Data(count: 7) + Data(name.utf8) }

    /// The `number`-th message, in the layout of version 3 (reference §3.3 R8, with another time).
    static func message(_ number: UInt8) -> Data {
        Data([0x10, 0xF8, 0, 0, 1, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xFF, 0, number, 0, 0x92, 0x65]) + Data("Hello".utf8)
    }

    /// The same as version 1 has it.
    static func oldMessage(_ number: UInt8) -> Data { Data([0x07]) + message(number).dropFirst(4) }

    /// A client that has said its name and version.
    static func client(
        _ bench: isolated SharingBench, _ name: String, version: UInt8 = 3
    ) async throws -> ShareTestClient {
        let client = try await bench.client()
        #expect(try await client.ask(Data([0x16, version]))?.first == 0x0D)
        #expect(try await client.ask(appStart(name))?.first == 0x05)
        return client
    }

    /// Lets messages arrive at the radio and waits until all are in the journal.
    static func arrive(_ numbers: ClosedRange<UInt8>, _ bench: isolated SharingBench) async throws {
        let radio = bench.radio
        let before = await bench.session.counters.messagesStored
        await radio.queue(numbers.map(message))
        await radio.push(waiting)
        while await bench.session.counters.messagesStored < before + UInt64(numbers.count) { await Task.yield() }
    }

    /// The next frame that is not the push that a message waits: there is one for each.
    static func frame(_ client: ShareTestClient) async -> Data? {
        var frame = await client.next()
        while frame == waiting { frame = await client.next() }
        return frame
    }

    /// Asks until there are no more; pushes that one is waiting are passed over.
    static func drain(_ client: ShareTestClient) async throws -> [Data] {
        var frames: [Data] = []
        while true {
            try await client.send(next)
            guard let frame = await frame(client), frame != noMore else { return frames }
            frames.append(frame)
        }
    }

    @Test func `each client gets every message, in order, in its own version`() async throws {
        try await SharingBench.run { bench in
            let new = try await Self.client(bench, "new")
            let old = try await Self.client(bench, "old", version: 1)
            try await Self.arrive(1...3, bench)
            #expect(await new.next() == Self.waiting)
            #expect(try await Self.drain(new) == (1...3).map(Self.message))
            #expect(try await Self.drain(old) == (1...3).map(Self.oldMessage))
            #expect(try await Self.drain(new) == [])
            #expect(await bench.session.counters.messagesDelivered == 6)
        }
    }

    @Test func `a client finds its place again, and is told that messages wait`() async throws {
        try await SharingBench.run { bench in
            let first = try await Self.client(bench, "app")
            try await Self.arrive(1...3, bench)
            #expect(await first.next() == Self.waiting)
            #expect(try await Self.drain(first) == (1...3).map(Self.message))
            _ = try await bench.event("client.leave") { await first.close() }
            try await Self.arrive(4...5, bench)
            let second = try await Self.client(bench, "app")
            #expect(await second.next() == Self.waiting)
            #expect(try await Self.drain(second) == (4...5).map(Self.message))
        }
    }

    @Test func `a message that a client did not read before it broke off comes again, one that it read does not`()
        async throws
    {
        try await SharingBench.run { bench in
            for isRead in [false, true] {
                let numbers: ClosedRange<UInt8> = isRead ? 10...11 : 1...2
                let client = try await Self.client(bench, "app")
                try await Self.arrive(numbers, bench)
                try await client.send(Self.next)
                #expect(await Self.frame(client) == Self.message(numbers.lowerBound))
                let delivered = await bench.session.counters.messagesDelivered
                if !isRead { await client.stopReading() }
                try await client.send(Self.next)
                while await bench.session.counters.messagesDelivered == delivered { await Task.yield() }
                if isRead { #expect(await Self.frame(client) == Self.message(numbers.upperBound)) }
                _ = try await bench.event("client.leave") { await client.close() }
                let again = try await Self.client(bench, "app")
                let expected = isRead ? [] : [Self.message(numbers.upperBound)]
                #expect(try await Self.drain(again) == expected)
                _ = try await bench.event("client.leave") { await again.close() }
            }
            #expect(await bench.session.counters.messagesRedelivered == 1)
        }
    }

    @Test func `clients that leave while others of their name come do not keep the next one waiting`() async throws {
        try await SharingBench.run(share: { $0.maximumClients = 1_000 }) { bench in
            for _ in 0..<30 {
                var clients: [ShareTestClient] = []
                for _ in 0..<6 {
                    let client = try await bench.client()
                    try await client.send(Self.appStart("app"))
                    clients.append(client)
                }
                for client in clients { await client.close() }
            }
            let client = try await Self.client(bench, "app")
            #expect(try await Self.drain(client) == [])
        }
    }

    @Test func `what a client did not read under a name that it gives up is for whoever comes under that name`()
        async throws
    {
        try await SharingBench.run(share: { $0.maximumClients = 1_000 }) { bench in
            for round in 0..<40 {
                let number = UInt8(round + 1)
                let client = try await Self.client(bench, "old \(round)")
                _ = try await Self.drain(client)
                let heir = try await bench.client()
                _ = try await heir.ask(Data([0x16, 3]))
                try await Self.arrive(number...number, bench)
                // Together, so that it has not shown to have the message when it takes the other name.
                try await client.sendRaw(PipeliningTests.framed([Self.next, Self.appStart("new \(round)")]))
                // At another moment each time: before the name is given up, meanwhile, and after.
                for _ in 0..<round * 4 { await Task.yield() }
                try await heir.send(Self.appStart("old \(round)"))
                var frame = await heir.next()
                while frame?.first != 0x05 { frame = await heir.next() }
                // One that comes before the name is free is a newcomer, and may get older messages, too.
                #expect(try await Self.drain(heir).last == Self.message(number), "round \(round)")
                await client.close()
                await heir.close()
            }
        }
    }

    @Test func `messages that were asked for together and not read come again`() async throws {
        try await SharingBench.run { bench in
            let client = try await Self.client(bench, "app")
            try await Self.arrive(1...20, bench)
            await client.stopReading()
            try await client.sendRaw(PipeliningTests.framed(Array(repeating: Self.next, count: 20)))
            while await bench.session.counters.messagesDelivered < 20 { await Task.yield() }
            _ = try await bench.event("client.leave") { await client.close() }
            let again = try await Self.client(bench, "app")
            #expect(try await Self.drain(again) == (1...20).map(Self.message))
        }
    }

    @Test func `two programs of one name have a place each`() async throws {
        try await SharingBench.run { bench in
            let first = try await Self.client(bench, "mccli")
            let second = try await Self.client(bench, "mccli")
            try await Self.arrive(1...2, bench)
            for client in [first, second] {
                #expect(await client.next() == Self.waiting)
                #expect(try await Self.drain(client) == (1...2).map(Self.message))
            }
        }
    }

    @Test func `a newcomer gets the newest messages and no more`() async throws {
        try await SharingBench.run(session: { $0.backlog = 2 }) { bench in
            try await Self.arrive(1...5, bench)
            let client = try await Self.client(bench, "late")
            #expect(await client.next() == Self.waiting)
            #expect(try await Self.drain(client) == (4...5).map(Self.message))
        }
    }

    @Test func `a message that the radio gives out again is not given to clients again`() async throws {
        try await SharingBench.run { bench in
            let client = try await Self.client(bench, "app")
            let radio = bench.radio
            // As version 1 has it, which is the same message (reference §1.4: the queue may hold a mix).
            await radio.queue([Self.message(1), Self.oldMessage(1), Self.message(2)])
            await radio.push(Self.waiting)
            while await bench.session.counters.messagesStored < 2 { await Task.yield() }
            #expect(await client.next() == Self.waiting)
            #expect(try await Self.drain(client) == (1...2).map(Self.message))
            #expect(await bench.session.counters.messagesRepeated == 1)
        }
    }

    @Test func `a client that asks in time gets what the radio did not tell of`() async throws {
        try await SharingBench.run { bench in
            let client = try await Self.client(bench, "app")
            let radio = bench.radio
            #expect(try await Self.drain(client) == [])
            await radio.queue([Self.message(1)])
            // The push was lost; the look that is made now and then finds it.
            await bench.session.fetchMessages()
            #expect(await client.next() == Self.waiting)
            #expect(try await Self.drain(client) == [Self.message(1)])
        }
    }

    @Test func `clients see what others send to channels, if their share wants it`() async throws {
        try await SharingBench.run(share: { $0.echoes = true }, answers: VirtualCompanionTests.meshRadio) { bench in
            let sender = try await Self.client(bench, "sender")
            let other = try await Self.client(bench, "other")
            #expect(try await sender.ask(VirtualCompanionTests.channelText("Hi")) == Data([0x00]))
            #expect(await other.next() == Self.waiting)
            let frame = try #require(try await Self.drain(other).first)
            // The layout of reference §3.3 R11, from the radio's own name.
            #expect(frame == Data([0x11, 0, 0, 0, 0, 0xFF, 0, 1, 0, 0x92, 0x65]) + Data("Test: Hi".utf8))
            #expect(try await Self.drain(sender) == [])
        }
    }
}
