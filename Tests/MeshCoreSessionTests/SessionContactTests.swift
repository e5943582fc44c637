// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTransportAPI
import Testing

/// Contact lists and the copy of them.
struct SessionContactTests {
    static let ann = Golden.contact(Golden.keyHex, "Ann", changed: 100)
    static let bob = Golden.contact(Golden.otherKeyHex, "Bob", changed: 200)

    /// A list of rows, under this heading.
    static func list(total: UInt32, _ rows: Data..., change: UInt32) -> [Data] {
        [Data([2]) + Golden.number(total)] + rows + [Data([4]) + Golden.number(change)]
    }

    static let keeping = MeshSessionSettings.quiet { $0.keepsContacts = true }

    @Test func `a list is over when the radio says so, whatever number it announced`() async throws {
        // The total is that of all contacts: with `since` there are fewer rows (companion-protocol §1.6). And more, when
        // one is added meanwhile.
        for total in [0, 1, 350] as [UInt32] {
            let bench = try await SessionBench.ready { frame, _ in
                frame.first == 4 ? Self.list(total: total, Self.ann, Self.bob, change: 200) : nil
            }
            let list = try await bench.session.contacts(since: 77)
            #expect(list.contacts.map(\.name) == ["Ann", "Bob"])
            #expect(list.total == total)
            #expect(list.latestChange == 200)
            #expect(await bench.radio.sent(3)[2] == "044d000000")
            await bench.session.stop()
        }
    }

    @Test func `other frames may come between the rows`() async throws {
        let bench = try await SessionBench.ready { frame, _ in
            guard frame.first == 4 else { return nil }
            let list = Self.list(total: 2, Self.ann, Self.bob, change: 200)
            return [list[0], hex("83"), list[1], hex("8428abff01"), list[2], list[3]]
        }
        #expect(try await bench.session.contacts().contacts.count == 2)
        await bench.session.stop()
    }

    @Test func `each row gives the next one its time`() async throws {
        let bench = try await SessionBench.ready { frame, _ in frame.first == 4 ? [hex("0202000000")] : nil }
        async let list = bench.session.contacts()
        await bench.settled(3)
        bench.clock.advance(by: .seconds(4))
        await bench.radio.say(Self.ann)
        await bench.flush()
        // The first deadline passes; the row has moved it to 9 seconds.
        bench.clock.advance(by: .seconds(4))
        await bench.radio.say(Self.bob, Data([4]) + Golden.number(200))
        #expect(try await list.contacts.count == 2)
        await bench.session.stop()
    }

    @Test func `a list that goes on for ever ends the link`() async throws {
        let bench = try await SessionBench.ready { frame, _ in
            frame.first == 4 ? [hex("0202000000")] + Array(repeating: Self.ann, count: 12_000) : nil
        }
        #expect(await code { try await bench.session.contacts() } == .radioUnreadable)
        #expect(await code { try await bench.session.time() } == .notConnected)
    }

    @Test func `a list without an end fails, and the next call is well`() async throws {
        let bench = try await SessionBench.ready { frame, _ in frame.first == 4 ? [hex("0202000000"), Self.ann] : nil }
        async let list = code { try await bench.session.contacts() }
        await bench.settled(3)
        await bench.clock.step(to: .seconds(5))
        #expect(await list == .operationTimeout)
        async let time = bench.session.time()
        // Two fences, of different kinds: rows may still come between them.
        await bench.clock.step(to: .milliseconds(5_100))
        await bench.settled(4)
        await bench.clock.step(to: .milliseconds(5_200))
        #expect(try await time == Golden.date)
        await bench.session.stop()
    }

    @Test func `the copy is fetched at the start, by changes after that`() async throws {
        let bench = SessionBench(settings: Self.keeping) { frame, _ in
            guard frame.first == 4 else { return nil }
            return frame.count == 1
                ? Self.list(total: 2, Self.ann, Self.bob, change: 200) : Self.list(total: 2, change: 0)
        }
        let events = await bench.session.events
        try await bench.session.start()
        try await bench.session.ready()
        #expect(await events.first { $0 == .contactsFetched(count: 2) } != nil)
        let book = await bench.session.contactBook
        #expect(book.contact(named: "Bob")?.publicKey == Golden.otherKey)
        #expect(book.contact(Golden.key.prefix)?.name == "Ann")
        _ = try await bench.session.refreshContacts()
        await bench.radio.vanish()
        _ = await events.first { $0 == .state(.disconnected, reason: MeshError(.linkClosed, "")) }
        try await bench.session.start()
        try await bench.session.ready()
        #expect(await bench.radio.sent(7).filter { $0.hasPrefix("04") } == ["04", "04c8000000", "04c8000000"])
        await bench.session.stop()
    }

    @Test func `when the numbers differ, the whole list is fetched`() async throws {
        let bench = try await SessionBench.ready(settings: Self.keeping) { frame, number in
            guard frame.first == 4 else { return nil }
            if frame.count > 1 { return Self.list(total: 1, change: 0) }
            return number == 1
                ? Self.list(total: 2, Self.ann, Self.bob, change: 200) : Self.list(total: 1, Self.bob, change: 200)
        }
        let events = await bench.session.events
        #expect(try await bench.session.refreshContacts().contacts.map(\.name) == ["Bob"])
        #expect(await events.first { $0 == .contactRemoved(Golden.key) } != nil)
        await bench.session.stop()
    }

    @Test func `what the radio tells keeps the copy true`() async throws {
        let bench = try await SessionBench.ready(settings: Self.keeping) { frame, number in
            switch frame.first {
            case 4: Self.list(total: 1, Self.ann, change: 100)
            case 30 where frame.dropFirst() == Golden.otherKey.data: [Self.bob]
            case 30: [Golden.contact(Golden.keyHex, "Anna", changed: 300)]
            default: nil
            }
        }
        let events = await bench.session.events
        // An advert of a contact that the radio has just added by itself (companion-protocol §1.7), and one of a new name.
        await bench.radio.say(hex("80" + Golden.otherKeyHex), hex("81" + Golden.keyHex))
        var changes: Set<String> = []
        for await case .contactChanged(let contact) in events {
            changes.insert(contact.name)
            if changes.count == 2 { break }
        }
        #expect(changes == ["Anna", "Bob"])
        #expect(await bench.session.contactBook.contacts.map(\.name) == ["Anna", "Bob"])
        await bench.radio.say(hex("8f" + Golden.keyHex))
        await bench.flush()
        #expect(await bench.session.contactBook.contacts.map(\.name) == ["Bob"])
        await bench.session.stop()
    }

    @Test func `an advert of a contact that the radio does not have takes it out`() async throws {
        let bench = try await SessionBench.ready(settings: Self.keeping) { frame, _ in
            switch frame.first {
            case 4: Self.list(total: 1, Self.ann, change: 100)
            case 30: [Golden.notFound]
            default: nil
            }
        }
        let events = await bench.session.events
        await bench.radio.say(hex("80" + Golden.keyHex))
        #expect(await events.first { $0 == .contactRemoved(Golden.key) } != nil)
        await bench.session.stop()
    }

    @Test func `a node that the radio does not keep is told, and not put into the copy`() async throws {
        let bench = try await SessionBench.ready(settings: Self.keeping)
        let events = await bench.session.events
        await bench.radio.say(Data([0x8A]) + Self.ann.dropFirst())
        let discovered = await events.first { if case .discovered = $0 { true } else { false } }
        guard case .discovered(let contact) = discovered else { throw MeshError(.internalError, "none") }
        #expect(contact.name == "Ann")
        #expect(await bench.session.contactBook.count == 0)
        await bench.session.stop()
    }

    @Test func `own changes change the copy`() async throws {
        let direct = Golden.contact(Golden.keyHex, "Ann", changed: 100, path: 0)
        let bench = try await SessionBench.ready(settings: Self.keeping) { frame, _ in
            switch frame.first {
            case 4: Self.list(total: 1, direct, change: 100)
            case 9, 13, 15: [Golden.ok]
            case 30: [Self.bob]
            default: nil
            }
        }
        let events = await bench.session.events
        try await bench.session.resetPath(of: Golden.key)
        #expect(await bench.session.contactBook[Golden.key]?.pathByte == PathByte.none)
        try await bench.session.removeContact(Golden.key)
        #expect(await bench.session.contactBook.count == 0)
        try await bench.session.addOrUpdate(
            ContactUpdate(publicKey: Golden.otherKey, type: .chat, name: "Bob", lastAdvert: 1))
        _ = await events.first { if case .contactChanged(let contact) = $0 { contact.name == "Bob" } else { false } }
        #expect(await bench.session.contactBook.count == 1)
        await bench.session.stop()
    }

    @Test func `another radio has other contacts`() async throws {
        let bench = SessionBench(settings: Self.keeping) { frame, number in
            switch frame.first {
            case 1 where number > 1: [Golden.selfInfo.prefix(4) + Golden.key.data + Golden.selfInfo.dropFirst(36)]
            case 4 where number == 1: Self.list(total: 1, Self.ann, change: 100)
            default: nil
            }
        }
        try await bench.session.start()
        try await bench.session.ready()
        #expect(await bench.session.contactBook.count == 1)
        await bench.session.stop()
        try await bench.session.start()
        try await bench.session.ready()
        #expect(await bench.session.contactBook.count == 0)
        await bench.session.stop()
    }
}

/// The copy as a value.
struct ContactBookTests {
    static func contact(_ byte: UInt8, _ name: String, changed: UInt32 = 1) -> Contact {
        Contact(
            publicKey: PublicKey(Data(repeating: byte, count: 32))!, type: .chat, name: name, lastAdvert: 1,
            lastModified: changed)
    }

    @Test func `a list says what has changed and what is gone`() {
        var book = ContactBook()
        let (ann, bob) = (Self.contact(1, "Ann"), Self.contact(2, "Bob"))
        let first = book.replace(with: ContactListing(total: 2, contacts: [ann, bob], latestChange: 9))
        #expect(first.changed == [ann, bob])
        #expect(book.isComplete)
        #expect(book.latestChange == 9)
        let second = book.replace(with: ContactListing(total: 1, contacts: [bob], latestChange: 9))
        #expect(second.changed.isEmpty)
        #expect(second.removed == [ann.publicKey])
        #expect(book.contacts == [bob])
    }

    @Test func `changes leave the rest alone, and an empty list does not turn the time back`() {
        var book = ContactBook()
        _ = book.replace(with: ContactListing(total: 1, contacts: [Self.contact(1, "Ann")], latestChange: 9))
        let changes = book.update(with: ContactListing(total: 1, contacts: [], latestChange: 0))
        #expect(changes == ContactBook.Changes())
        #expect(book.count == 1)
        #expect(book.latestChange == 9)
    }

    @Test func `two of one name are found by their keys alone`() {
        var book = ContactBook()
        _ = book.put(Self.contact(1, "Ann"))
        _ = book.put(Self.contact(2, "Ann"))
        #expect(book.contact(named: "Ann") == nil)
        #expect(book.contact(Self.contact(2, "").publicKey.prefix)?.publicKey == Self.contact(2, "").publicKey)
    }

    @Test func `what is the same is no change`() {
        var book = ContactBook()
        let puts = ["Ann", "Ann", "Anna"].map { book.put(Self.contact(1, $0)) }
        #expect(puts == [true, false, true])
        let reset = book.resetPath(of: Self.contact(1, "").publicKey)
        #expect(reset == nil, "there was none")
        let removals = [1, 1].map { book.remove(Self.contact($0, "").publicKey) }
        #expect(removals == [true, false])
    }
}
