// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import Testing

@testable import MeshSharing

struct ContactCacheTests {
    typealias Frames = CacheFrames

    static let getTime = Data([0x05])

    /// A cache whose radio told 1,000 at 0 s.
    static func cache() -> RadioCache {
        var cache = RadioCache()
        _ = cache.replied(Frames.number(9, 1_000), to: getTime, now: .zero)
        return cache
    }

    /// One pass: the command that it sent and what its last frame meant.
    @discardableResult
    static func pass(
        _ cache: inout RadioCache, total: UInt32, _ rows: [Data], now: Duration = .zero, end: Data? = nil,
        meanwhile: (inout RadioCache) -> Void = { _ in }
    ) -> (command: Data, result: RadioCache.ContactsPass) {
        let command = cache.contactsPassBegan(now: now)
        #expect(cache.contactsReceived(Frames.number(2, total)) == .more)
        for (index, row) in rows.enumerated() {
            if index == rows.count / 2 { meanwhile(&cache) }
            #expect(cache.contactsReceived(row) == .more)
        }
        if rows.isEmpty { meanwhile(&cache) }
        return (command, cache.contactsReceived(end ?? Frames.number(4, 0)))
    }

    static func frames(_ list: ContactList) -> [Data] {
        [list.start] + (0..<list.count).map { list.row(at: $0) } + [list.end]
    }

    // MARK: A client's list

    @Test func `a client gets the total, the rows changed after its time, and the latest of them`() {
        var cache = Self.cache()
        let rows = [Frames.contact(1, changed: 700), Frames.contact(2, changed: 900), Frames.contact(3, changed: 800)]
        #expect(Self.pass(&cache, total: 3, rows) == (Data([0x04]), .ended))
        #expect(cache.contactsState == .valid)
        #expect(Self.frames(cache.contactList(since: 0)) == [Frames.number(2, 3)] + rows + [Frames.number(4, 900)])
        // Strict (companion-protocol §4, 8).
        #expect(
            Self.frames(cache.contactList(since: 700)) == [Frames.number(2, 3)] + rows[1...] + [Frames.number(4, 900)])
        #expect(Self.frames(cache.contactList(since: 800)) == [Frames.number(2, 3), rows[1], Frames.number(4, 900)])
        #expect(Self.frames(cache.contactList(since: 900)) == [Frames.number(2, 3), Frames.number(4, 0)])
    }

    @Test func `no more contacts are kept than any radio has`() throws {
        var table = ContactTable()
        let rows = try (0...ContactTable.capacity).map { try #require(ContactRow(ContactSharingTests.row($0))) }
        for row in rows.dropLast() { #expect(table.put(row) == .added) }
        #expect(table.put(rows[ContactTable.capacity]) == .noRoom)
        #expect(table.put(rows[0]) == .replaced)
        #expect(table.count == ContactTable.capacity)
    }

    @Test func `a contact for which there is no room leaves doubts`() {
        var cache = Self.cache()
        let rows = (0..<ContactTable.capacity).map(ContactSharingTests.row)
        Self.pass(&cache, total: UInt32(rows.count), rows)
        #expect(cache.contactsState == .valid)
        cache.observed(ContactSharingTests.row(rows.count), now: .zero)
        #expect(cache.contactsState != .valid)
    }

    @Test func `a list that a client is being given does not change`() {
        var cache = Self.cache()
        Self.pass(&cache, total: 2, [Frames.contact(1, changed: 700), Frames.contact(2, changed: 900)])
        let list = cache.contactList(since: 0)
        let before = Self.frames(list)
        _ = cache.replied(Frames.ok, to: Data([0x0F]) + Frames.key(1), now: .zero)
        _ = cache.replied(Frames.ok, to: Data([0x0D]) + Frames.key(2), now: .zero)
        #expect(Self.frames(list) == before)
        #expect(cache.contactList(since: 0).count == 1)
    }

    @Test func `before the first pass there is nothing, and it is not taken for an empty list`() {
        let cache = Self.cache()
        #expect(cache.contactsState == .unknown)
        #expect(Self.frames(cache.contactList(since: 0)) == [Frames.number(2, 0), Frames.number(4, 0)])
    }

    @Test func `a radio without contacts has a valid list`() {
        var cache = Self.cache()
        #expect(Self.pass(&cache, total: 0, []).result == .ended)
        #expect(cache.contactsState == .valid)
    }

    // MARK: What a pass asks for

    @Test func `the second pass asks for what changed since the first began`() {
        var cache = Self.cache()
        let first = Frames.contact(1, changed: 700)
        #expect(Self.pass(&cache, total: 1, [first], now: .seconds(20)).command == Data([0x04]))
        cache.pushReceived(Data([0x80]) + Frames.key(1), now: .seconds(100))
        // 1,020 then; a second for the clock's rounding, five for the filter.
        #expect(cache.contactsState == .stale(since: 1_014))
        let changed = Frames.contact(1, changed: 1_100)
        #expect(Self.pass(&cache, total: 1, [changed], now: .seconds(100)).command == Frames.number(4, 1_014))
        #expect(cache.contactsState == .valid)
        #expect(cache.contact(Frames.publicKey(1)) == changed)
    }

    @Test func `a row with a time of the future does not hide what changes before it`() {
        var cache = Self.cache()
        Self.pass(&cache, total: 1, [Frames.contact(1, changed: 2_000_000_000)])
        #expect(
            Self.pass(&cache, total: 1, [Frames.contact(1, changed: 2_000_000_000)]).command == Frames.number(4, 994))
    }

    @Test func `without the radio's time a pass is full, and so is the next`() {
        var cache = RadioCache()
        let row = Frames.contact(1, changed: 700)
        #expect(Self.pass(&cache, total: 1, [row]) == (Data([0x04]), .ended))
        #expect(cache.contactsState == .valid)
        _ = cache.replied(Frames.number(9, 1_000), to: Self.getTime, now: .zero)
        #expect(Self.pass(&cache, total: 1, [row]).command == Data([0x04]))
        #expect(Self.pass(&cache, total: 1, [row]).command == Frames.number(4, 994))
        cache.linkLost()
        #expect(Self.pass(&cache, total: 1, [row]).command == Data([0x04]))
    }

    @Test func `a new link asks for what changed meanwhile, if the clock went on`() {
        var cache = Self.cache()
        Self.pass(&cache, total: 1, [Frames.contact(1, changed: 700)])
        cache.linkLost()
        #expect(cache.contactsState == .stale(since: 994))
        _ = cache.replied(Frames.number(9, 1_060), to: Self.getTime, now: .seconds(60))
        #expect(Self.pass(&cache, total: 1, [], now: .seconds(60)).command == Frames.number(4, 994))
        #expect(cache.contactsState == .valid)
    }

    @Test(arguments: [(1_056, false), (1_064, false), (1_055, true), (1_065, true), (701, true)] as [(UInt32, Bool)])
    func `if the clock jumped the next pass is full`(_ time: UInt32, _ isFull: Bool) {
        var cache = Self.cache()
        Self.pass(&cache, total: 1, [Frames.contact(1, changed: 700)])
        // It should show 1,060.
        _ = cache.replied(Frames.number(9, time), to: Self.getTime, now: .seconds(60))
        #expect(cache.contactsState == (isFull ? .stale(since: 0) : .valid))
        let command = cache.contactsPassBegan(now: .seconds(60))
        #expect(command == (isFull ? Data([0x04]) : Frames.number(4, 994)))
    }

    @Test(arguments: [(2_000, false), (1_050, true)] as [(UInt32, Bool)])
    func `a clock that is set may go forward`(_ time: UInt32, _ isFull: Bool) {
        var cache = Self.cache()
        Self.pass(&cache, total: 1, [Frames.contact(1, changed: 700)])
        _ = cache.replied(Frames.ok, to: Frames.number(6, time), now: .seconds(60))
        #expect(cache.contactsState == (isFull ? .stale(since: 0) : .valid))
        _ = cache.replied(Frames.number(9, time + 10), to: Self.getTime, now: .seconds(70))
        #expect(cache.contactsState == (isFull ? .stale(since: 0) : .valid))
    }

    @Test func `a clock that jumps during a pass makes the one after it full`() {
        var cache = Self.cache()
        Self.pass(&cache, total: 1, [Frames.contact(1, changed: 700)]) { cache in
            cache.observed(Frames.number(9, 500), now: .seconds(1))
        }
        #expect(cache.contactsState == .stale(since: 0))
    }

    // MARK: Totals

    @Test func `a contact that is gone shows in the total, and a full pass finds which`() {
        var cache = Self.cache()
        let rows = (1...3).map { Frames.contact($0, changed: 700) }
        Self.pass(&cache, total: 3, rows)
        #expect(Self.pass(&cache, total: 2, []).result == .needsFullPass)
        #expect(cache.contactsState == .stale(since: 0))
        // What is known serves meanwhile.
        #expect(cache.contactList(since: 0).count == 3)
        #expect(Self.pass(&cache, total: 2, [rows[0], rows[2]]) == (Data([0x04]), .ended))
        #expect(cache.contactsState == .valid)
        #expect(cache.contact(Frames.publicKey(2)) == nil)
    }

    @Test func `one that took the place of another shows too`() {
        var cache = Self.cache()
        Self.pass(&cache, total: 2, (1...2).map { Frames.contact($0, changed: 700) })
        #expect(Self.pass(&cache, total: 2, [Frames.contact(3, changed: 1_001)]).result == .needsFullPass)
    }

    @Test func `a row that got lost is found by a second full pass`() {
        var cache = Self.cache()
        let rows = (1...3).map { Frames.contact($0, changed: 700) }
        #expect(Self.pass(&cache, total: 3, Array(rows.dropLast())).result == .needsFullPass)
        #expect(cache.contactsState == .stale(since: 0))
        #expect(Self.pass(&cache, total: 3, rows) == (Data([0x04]), .ended))
        #expect(cache.contactsState == .valid)
        #expect(Self.pass(&cache, total: 3, []).result == .ended)
    }

    @Test func `a contact that is never listed does not make passes go on for ever`() {
        var cache = Self.cache()
        let rows = (1...3).map { Frames.contact($0, changed: 700) }
        #expect(Self.pass(&cache, total: 4, rows).result == .needsFullPass)
        #expect(Self.pass(&cache, total: 4, rows).result == .ended)
        #expect(cache.contactsState == .valid)
        #expect(cache.contactList(since: 0).start == Frames.number(2, 4))
        // It may be this one, so the radio must be asked.
        let find = Data([0x1E]) + Frames.key(9)
        #expect(cache.lookup(find, now: .zero) == .unknown)
        #expect(Self.pass(&cache, total: 4, []).result == .ended)
        // It is: counted once, and never in a list.
        _ = cache.replied(Frames.contact(9, changed: 0), to: find, now: .zero)
        #expect(cache.lookup(find, now: .zero) == .answer([Frames.contact(9, changed: 0)]))
        #expect(cache.contactList(since: 0).start == Frames.number(2, 4))
        #expect(cache.contactList(since: 0).count == 3)
        #expect(Self.pass(&cache, total: 4, []).result == .ended)
    }

    @Test func `the one that is never listed is removed`() {
        var cache = Self.cache()
        let rows = [Frames.contact(1, changed: 700)]
        Self.pass(&cache, total: 2, rows)
        Self.pass(&cache, total: 2, rows)
        _ = cache.replied(Frames.ok, to: Data([0x0F]) + Frames.key(9), now: .zero)
        #expect(cache.contactsState == .valid)
        #expect(Self.pass(&cache, total: 1, []).result == .ended)
    }

    // MARK: Changes during a pass

    @Test(arguments: [false, true])
    func `a change during a pass leaves the list stale, from when the pass began`(_ isFull: Bool) {
        var cache = Self.cache()
        let rows = (1...4).map { Frames.contact($0, changed: 700) }
        if !isFull { Self.pass(&cache, total: 4, rows) }
        let result = Self.pass(&cache, total: 4, rows, now: .seconds(10)) { cache in
            cache.pushReceived(Data([0x80]) + Frames.key(1), now: .seconds(15))
        }.result
        #expect(result == .ended)
        #expect(cache.contactsState == .stale(since: 1_004))
    }

    @Test(arguments: [false, true])
    func `a contact that comes during a pass is no reason for a full one`(_ isFull: Bool) {
        var cache = Self.cache()
        let rows = (1...4).map { Frames.contact($0, changed: 700) }
        if !isFull { Self.pass(&cache, total: 4, rows) }
        let result = Self.pass(&cache, total: 4, rows + [Frames.contact(9, changed: 1_010)], now: .seconds(10)) {
            cache in
            cache.pushReceived(Data([0x80]) + Frames.key(9), now: .seconds(11))
        }.result
        #expect(result == .ended)
        #expect(cache.contactsState == .stale(since: 1_004))
        #expect(Self.pass(&cache, total: 5, [Frames.contact(9, changed: 1_010)]).result == .ended)
        #expect(cache.contactsState == .valid)
    }

    @Test func `a contact that goes during a full pass is gone, though its row had come`() {
        var cache = Self.cache()
        let rows = (1...4).map { Frames.contact($0, changed: 700) }
        let result = Self.pass(&cache, total: 4, rows) { cache in
            cache.pushReceived(Data([0x8F]) + Frames.key(1), now: .zero)
        }.result
        #expect(result == .ended)
        #expect(cache.contact(Frames.publicKey(1)) == nil)
        #expect(Self.pass(&cache, total: 3, []).result == .ended)
        #expect(cache.contactsState == .valid)
    }

    @Test func `a path that is reset during a full pass stays reset`() {
        var cache = Self.cache()
        let rows = (1...2).map { Frames.contact($0, changed: 700) }
        Self.pass(&cache, total: 2, rows)
        cache.linkLost()
        Self.pass(&cache, total: 2, rows) { cache in
            _ = cache.replied(Frames.ok, to: Data([0x0D]) + Frames.key(1), now: .zero)
        }
        #expect(cache.contact(Frames.publicKey(1)) == Frames.contact(1, changed: 700, pathByte: 0xFF))
    }

    // MARK: Passes that fail

    @Test func `a pass that ends early changes nothing about what to ask next`() {
        var cache = Self.cache()
        let rows = (1...3).map { Frames.contact($0, changed: 700) }
        Self.pass(&cache, total: 3, rows)
        cache.pushReceived(Data([0x80]) + Frames.key(1), now: .seconds(50))
        _ = cache.contactsPassBegan(now: .seconds(60))
        _ = cache.contactsReceived(Frames.number(2, 3))
        _ = cache.contactsReceived(Frames.contact(3, changed: 1_055))
        cache.contactsPassFailed()
        #expect(cache.contactsState == .stale(since: 994))
        // It was true all the same.
        #expect(cache.contact(Frames.publicKey(3)) == Frames.contact(3, changed: 1_055))
    }

    @Test func `a first pass that ends early has told nothing`() {
        var cache = Self.cache()
        _ = cache.contactsPassBegan(now: .zero)
        _ = cache.contactsReceived(Frames.number(2, 3))
        _ = cache.contactsReceived(Frames.contact(3, changed: 900))
        cache.linkLost()
        #expect(cache.contactsState == .unknown)
        // Frames that come after that belong to no pass.
        #expect(cache.contactsReceived(Frames.contact(3, changed: 900)) == .more)
        #expect(cache.contactsReceived(Frames.number(4, 900)) == .ended)
        #expect(cache.contactsState == .unknown && cache.contact(Frames.publicKey(3)) == nil)
    }

    @Test func `a pass without its first frame cannot be judged`() {
        var cache = Self.cache()
        _ = cache.contactsPassBegan(now: .zero)
        _ = cache.contactsReceived(Frames.contact(3, changed: 900))
        _ = cache.contactsReceived(Frames.number(4, 900))
        #expect(cache.contactsState == .unknown)
    }

    @Test func `a radio that does not know the command is asked no more until the link changes`() {
        var cache = Self.cache()
        Self.pass(&cache, total: 1, [Frames.contact(1, changed: 700)])
        _ = cache.contactsPassBegan(now: .zero)
        #expect(cache.contactsReceived(Frames.unsupported) == .failed)
        #expect(cache.contactsState == .unsupported)
        #expect(cache.lookup(Data([0x1E]) + Frames.key(1), now: .zero) == .stale([Frames.contact(1, changed: 700)]))
        cache.linkLost()
        #expect(cache.contactsState != .unsupported)
    }

    @Test func `a radio that is busy with another's list is asked again`() {
        var cache = Self.cache()
        _ = cache.contactsPassBegan(now: .zero)
        #expect(cache.contactsReceived(Data([0x01, 0x04])) == .failed)
        #expect(cache.contactsState == .unknown)
    }

    @Test func `a row that is cut short is not taken`() {
        var cache = Self.cache()
        let row = Frames.contact(1, changed: 700)
        #expect(Self.pass(&cache, total: 1, [row.prefix(147)]).result == .needsFullPass)
        #expect(cache.contact(Frames.publicKey(1)) == nil)
    }
}
