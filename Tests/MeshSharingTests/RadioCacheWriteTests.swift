// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import Testing

@testable import MeshSharing

struct RadioCacheWriteTests {
    typealias Frames = CacheFrames

    /// What becomes of a reply that was known.
    enum Fate: Hashable {
        case sure
        case stale
        case forgotten
    }

    /// The first bytes of the replies that a command makes stale (`RadioCache/wrote`, the table); what is not named stays
    /// sure.
    static let stale: [CommandCode: [UInt8]] = [
        .setName: [0x05], .setLocation: [0x05], .setTransmitPower: [0x05], .setOtherParameters: [0x05],
        .setRadio: [0x05, 0x0D], .setDevicePIN: [0x0D], .setPathHashMode: [0x0D], .setCustomVariable: [0x15, 0x05],
        .setTuning: [0x17], .setAutoAdd: [0x19], .setDefaultScope: [0x1C],
        .reboot: [0x05, 0x0D, 0x12, 0x15, 0x17, 0x19, 0x1C, 0x1A, 0x0C],
        .runCLICommand: [0x05, 0x0D, 0x12, 0x15, 0x17, 0x19, 0x1C, 0x1A, 0x0C],
    ]

    static func fate(_ lookup: RadioCache.Lookup, _ reply: Data) -> Fate? {
        switch lookup {
        case .answer([reply]): .sure
        case .stale([reply]): .stale
        case .unknown: .forgotten
        default: nil
        }
    }

    /// What an accepted command is answered with.
    static func accepted(_ code: CommandCode) -> Data {
        switch code {
        case .sendAnonymousRequest, .sendTextMessage: Frames.hex("06 00 01000000 88130000")
        case .runCLICommand: Data([0x1D]) + Data("OK".utf8)
        default: Frames.ok
        }
    }

    @Test(arguments: CommandCode.allCases)
    func `an accepted command makes stale what it changes and nothing else`(_ code: CommandCode) {
        // Those are reads.
        guard CachedRead(command: Data([code.rawValue, 0])) == nil, code != .getTime else { return }
        var cache = RadioCacheTests.filled()
        // Index 0 for SET_CHANNEL.
        let command = Data([code.rawValue, 0]) + Data(count: 150)
        _ = cache.replied(Self.accepted(code), to: command, now: .zero)
        for (read, reply) in RadioCacheTests.reads {
            let expected: Fate =
                switch code {
                case .importPrivateKey, .factoryReset: .forgotten
                case .setChannel: reply.prefix(2) == Data([0x12, 0]) ? .forgotten : .sure
                default: Self.stale[code, default: []].contains(reply[0]) ? .stale : .sure
                }
            #expect(Self.fate(cache.lookup(read, now: .zero), reply) == expected, "\(code), \(reply[0])")
        }
    }

    @Test(arguments: CommandCode.allCases)
    func `a refused command changes nothing`(_ code: CommandCode) {
        guard CachedRead(command: Data([code.rawValue, 0])) == nil else { return }
        var cache = RadioCacheTests.filled()
        _ = cache.contactsPassBegan(now: .zero)
        for frame in [Frames.number(2, 1), Frames.contact(0, changed: 5), Frames.number(4, 5)] {
            _ = cache.contactsReceived(frame)
        }
        // GET_CONTACT_BY_KEY not found is another matter.
        #expect(cache.replied(Data([0x01, 0x06]), to: Data([code.rawValue]) + Data(count: 150), now: .zero) == [])
        for (read, reply) in RadioCacheTests.reads {
            #expect(cache.lookup(read, now: .zero) == .answer([reply]))
        }
        #expect(cache.contactsState == .valid)
        #expect(cache.contact(Frames.publicKey(0)) == Frames.contact(0, changed: 5))
    }

    @Test func `a command of a newer firmware makes all stale`() {
        var cache = RadioCacheTests.filled()
        _ = cache.replied(Frames.ok, to: Data([0x60, 1]), now: .zero)
        for (read, reply) in RadioCacheTests.reads {
            #expect(cache.lookup(read, now: .zero) == .stale([reply]))
        }
    }

    @Test func `a short frame is no reason to fall over`() {
        for code in 0...255 as ClosedRange<UInt8> {
            var cache = RadioCacheTests.filled()
            for reply in [Frames.ok, Data(), Frames.notFound, Data([0x03]), Data([0x12])] {
                for length in 1...3 {
                    _ = cache.replied(reply, to: Data([code, 1, 2].prefix(length)), now: .zero)
                }
            }
            cache.pushReceived(Data([code]), now: .zero)
            cache.observed(Data([code]), now: .zero)
            _ = cache.lookup(Data([code]), now: .zero)
        }
    }

    // MARK: Contacts

    /// A cache with the contacts 1, 2 and 3, valid.
    static func withContacts() -> RadioCache {
        var cache = RadioCache()
        _ = cache.replied(Frames.number(9, 1_000), to: Data([0x05]), now: .zero)
        _ = cache.contactsPassBegan(now: .zero)
        _ = cache.contactsReceived(Frames.number(2, 3))
        for key in 1...3 as ClosedRange<UInt8> {
            _ = cache.contactsReceived(Frames.contact(key, changed: 900 + UInt32(key)))
        }
        #expect(cache.contactsReceived(Frames.number(4, 903)) == .ended)
        #expect(cache.contactsState == .valid)
        return cache
    }

    static func find(_ key: UInt8) -> Data { Data([0x1E]) + Frames.key(key) }

    @Test func `a valid list answers for every key`() {
        let cache = Self.withContacts()
        #expect(cache.lookup(Self.find(2), now: .zero) == .answer([Frames.contact(2, changed: 902)]))
        #expect(cache.lookup(Self.find(9), now: .zero) == .answer([Frames.notFound]))
    }

    @Test func `without a valid list a known row is stale and another key unknown`() {
        var cache = Self.withContacts()
        cache.linkLost()
        #expect(cache.lookup(Self.find(2), now: .zero) == .stale([Frames.contact(2, changed: 902)]))
        #expect(cache.lookup(Self.find(9), now: .zero) == .unknown)
        #expect(RadioCache().lookup(Self.find(2), now: .zero) == .unknown)
    }

    @Test(arguments: [0x80, 0x81] as [UInt8], [1, 9] as [UInt8])
    func `an advert or a path makes the contacts stale`(_ code: UInt8, _ key: UInt8) {
        var cache = Self.withContacts()
        cache.pushReceived(Data([code]) + Frames.key(key), now: .zero)
        // 1,000 at the last pass, a second for the clock's rounding, five for the filter.
        #expect(cache.contactsState == .stale(since: 994))
    }

    @Test func `no other push makes them stale`() {
        var cache = Self.withContacts()
        for code in 0x82...0xFF as ClosedRange<UInt8> where code != 0x8F {
            let push =
                code == 0x8A ? Data([code]) + Frames.contact(9, changed: 950).dropFirst() : Data([code]) + Frames.key(1)
            cache.pushReceived(push, now: .zero)
        }
        #expect(cache.contactsState == .valid)
        #expect(cache.contact(Frames.publicKey(9)) == nil)
    }

    @Test func `a contact that the radio deletes is gone at once`() {
        var cache = Self.withContacts()
        cache.pushReceived(Data([0x8F]) + Frames.key(2), now: .zero)
        #expect(cache.contactsState == .valid)
        #expect(cache.lookup(Self.find(2), now: .zero) == .answer([Frames.notFound]))
        #expect(cache.lookup(Self.find(3), now: .zero) == .answer([Frames.contact(3, changed: 903)]))
        #expect(cache.contactList(since: 0).start == Frames.number(2, 2))
    }

    @Test func `one that was not known makes the list stale`() {
        var cache = Self.withContacts()
        cache.pushReceived(Data([0x8F]) + Frames.key(9), now: .zero)
        #expect(cache.contactsState == .stale(since: 994))
    }

    @Test func `RESET_PATH changes the path byte alone, and the others learn of it`() {
        var cache = Self.withContacts()
        let pushes = cache.replied(Frames.ok, to: Data([0x0D]) + Frames.key(2), now: .zero)
        #expect(pushes == [Data([0x81]) + Frames.key(2)])
        #expect(cache.contactsState == .valid)
        #expect(cache.contact(Frames.publicKey(2)) == Frames.contact(2, changed: 902, pathByte: 0xFF))
    }

    @Test func `REMOVE_CONTACT takes the row out, and the others learn of it`() {
        var cache = Self.withContacts()
        let pushes = cache.replied(Frames.ok, to: Data([0x0F]) + Frames.key(1), now: .zero)
        #expect(pushes == [Data([0x8F]) + Frames.key(1)])
        #expect(cache.contactsState == .valid)
        #expect(cache.lookup(Self.find(1), now: .zero) == .answer([Frames.notFound]))
    }

    @Test func `ADD_UPDATE_CONTACT with its time is the row, cut as the radio cuts it`() {
        var cache = Self.withContacts()
        // A time of the past, which no pass would show.
        let command = Data([0x09]) + Frames.contact(2, changed: 17, name: String(repeating: "n", count: 32)).dropFirst()
        #expect(cache.replied(Frames.ok, to: command, now: .zero) == [Data([0x81]) + Frames.key(2)])
        #expect(
            cache.contact(Frames.publicKey(2))
                == Frames.contact(2, changed: 17, name: String(repeating: "n", count: 31)))
        #expect(cache.contactsState == .stale(since: 994))
        let garbage = Data([0x09]) + Frames.contact(3, changed: 18, name: "A\0BCD").dropFirst()
        _ = cache.replied(Frames.ok, to: garbage, now: .zero)
        #expect(cache.contact(Frames.publicKey(3)) == Frames.contact(3, changed: 18, name: "A"))
    }

    @Test(arguments: [136, 144])
    func `ADD_UPDATE_CONTACT without its time leaves the row for the next pass`(_ length: Int) {
        var cache = Self.withContacts()
        let command = Data([0x09]) + Frames.contact(2, changed: 0).dropFirst().prefix(length - 1)
        #expect(cache.replied(Frames.ok, to: command, now: .zero) == [Data([0x81]) + Frames.key(2)])
        #expect(cache.contact(Frames.publicKey(2)) == Frames.contact(2, changed: 902))
        #expect(cache.contactsState == .stale(since: 994))
    }

    @Test func `a contact that is added is told to the others like an advert`() {
        var cache = Self.withContacts()
        let command = Data([0x09]) + Frames.contact(9, changed: 950).dropFirst()
        #expect(cache.replied(Frames.ok, to: command, now: .zero) == [Data([0x80]) + Frames.key(9)])
        #expect(cache.contact(Frames.publicKey(9)) == Frames.contact(9, changed: 950))
    }

    @Test func `IMPORT_CONTACT makes them stale, and the radio's own push tells of it`() {
        var cache = Self.withContacts()
        #expect(
            cache.replied(Frames.ok, to: Data([0x12, 0x11, 0x00]) + Frames.key(9) + Data(count: 80), now: .zero) == [])
        #expect(cache.contactsState == .stale(since: 994))
    }

    @Test func `SEND_ANON_REQ to a stranger makes them stale, to a contact not`() {
        var cache = Self.withContacts()
        let sent = Frames.hex("06 01 01000000 88130000")
        #expect(cache.replied(sent, to: Data([0x39]) + Frames.key(2) + Data([1]), now: .zero) == [])
        #expect(cache.contactsState == .valid)
        #expect(cache.replied(sent, to: Data([0x39]) + Frames.key(9) + Data([1]), now: .zero) == [])
        #expect(cache.contactsState == .stale(since: 994))
    }

    @Test func `SHARE_CONTACT and EXPORT_CONTACT change nothing`() {
        var cache = Self.withContacts()
        #expect(cache.replied(Frames.ok, to: Data([0x10]) + Frames.key(2), now: .zero) == [])
        #expect(cache.replied(Data([0x0B, 1]), to: Data([0x11]) + Frames.key(2), now: .zero) == [])
        #expect(cache.contactsState == .valid)
    }

    @Test func `IMPORT_PRIVATE_KEY and FACTORY_RESET leave no contact`() {
        for command in [Data([0x18]) + Data(count: 64), Frames.hex("33 7265736574")] {
            var cache = Self.withContacts()
            #expect(cache.replied(Frames.ok, to: command, now: .zero) == [])
            #expect(cache.contactsState == .unknown && cache.contact(Frames.publicKey(1)) == nil)
        }
    }

    @Test func `a known contact that the radio does not find was removed by somebody else`() {
        var cache = Self.withContacts()
        cache.linkLost()
        let pushes = cache.replied(Frames.notFound, to: Self.find(3), now: .zero)
        #expect(pushes == [Data([0x8F]) + Frames.key(3)])
        #expect(cache.contact(Frames.publicKey(3)) == nil)
        #expect(cache.replied(Frames.notFound, to: Self.find(3), now: .zero) == [])
    }

    @Test func `a row that the radio gives for a key is kept`() {
        var cache = Self.withContacts()
        cache.pushReceived(Data([0x80]) + Frames.key(9), now: .zero)
        _ = cache.replied(Frames.contact(9, changed: 1_001), to: Self.find(9), now: .zero)
        #expect(cache.lookup(Self.find(9), now: .zero) == .stale([Frames.contact(9, changed: 1_001)]))
        #expect(cache.contactsState == .stale(since: 994))
    }
}
