// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTestSupport
import Testing

@testable import MeshSharing

/// A radio's contacts as the firmware keeps them (v1.17.1, `BaseChatMesh.cpp`, `MyMesh.cpp`), with its clock.
private struct ModelRadio {
    struct Contact: Equatable {
        var key: UInt8
        var pathByte: UInt8
        var name: String
        var changed: UInt32

        var frame: Data { CacheFrames.contact(key, changed: changed, pathByte: pathByte, name: name) }
    }

    static let capacity = 12

    var contacts: [Contact] = []
    /// What is in its flash: written once nothing has changed for a while.
    var stored: [Contact] = []
    var lastChange: Duration = .zero
    var clockBase: UInt32 = 1_000_000
    var clockSetAt: Duration = .zero

    func clock(_ now: Duration) -> UInt32 { clockBase + UInt32((now - clockSetAt).components.seconds) }

    /// Puts a contact at the end, or in the place of the oldest. The key of that.
    mutating func add(_ contact: Contact) -> UInt8? {
        if contacts.count < Self.capacity {
            contacts.append(contact)
            return nil
        }
        let oldest = contacts.indices.min { contacts[$0].changed < contacts[$1].changed }!
        defer { contacts[oldest] = contact }
        return contacts[oldest].key
    }

    mutating func passTime(_ now: Duration) {
        // 5 s in the firmware; a second more, for the clock counts whole ones.
        if now - lastChange > .seconds(6) { stored = contacts }
    }

    /// Without a clock of its own it begins one second after the newest contact.
    mutating func restart(_ now: Duration) {
        contacts = stored
        clockBase = max(contacts.map(\.changed).max() ?? 0, 1_000) + 1
        clockSetAt = now
        lastChange = now
    }
}

/// A host and a radio with a random life between them.
private struct ContactStory {
    var random: SplitMix
    var radio = ModelRadio()
    var cache = RadioCache()
    var now: Duration = .zero
    var isLinked = true
    /// Names that tell one change from another.
    var nextName = 0

    init(seed: UInt64) {
        random = SplitMix(state: seed)
    }

    mutating func number(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }

    mutating func someContact() -> Int? { radio.contacts.isEmpty ? nil : number(radio.contacts.count) }

    mutating func passTime() {
        now += .milliseconds(number(3_000))
        radio.passTime(now)
    }

    mutating func push(_ code: UInt8, _ key: UInt8) {
        if isLinked { cache.pushReceived(Data([code]) + CacheFrames.key(key), now: now) }
    }

    mutating func name() -> String {
        nextName += 1
        return "\(nextName)"
    }

    /// Something happens on the air or at the radio's other interface, at any time.
    mutating func airEvent() {
        passTime()
        radio.lastChange = now
        switch number(6) {
        case 0:  // an advert of a contact
            guard let index = someContact() else { return }
            radio.contacts[index].name = name()
            radio.contacts[index].changed = radio.clock(now)
            push(0x80, radio.contacts[index].key)
        case 1:  // an advert of a new node
            let key = UInt8(number(40))
            guard !radio.contacts.contains(where: { $0.key == key }) else { return }
            let node = ModelRadio.Contact(key: key, pathByte: 0xFF, name: name(), changed: radio.clock(now))
            if let gone = radio.add(node) { push(0x8F, gone) }
            push(0x80, key)
        case 2:  // a path
            guard let index = someContact() else { return }
            radio.contacts[index].pathByte = UInt8(number(4))
            radio.contacts[index].changed = radio.clock(now)
            push(0x81, radio.contacts[index].key)
        case 3:  // a message: the time changes, and no push tells of it
            guard let index = someContact() else { return }
            radio.contacts[index].changed = radio.clock(now)
        case 4:  // somebody else removes one
            guard let index = someContact() else { return }
            radio.contacts.remove(at: index)
            if isLinked { cache.observed(CacheFrames.ok, now: now) }
        default:  // somebody else reads one
            guard let index = someContact(), isLinked else { return }
            cache.observed(radio.contacts[index].frame, now: now)
        }
    }

    /// A client's command, in the lane: not during a pass.
    mutating func clientEvent() {
        passTime()
        let key = UInt8(number(40))
        let index = radio.contacts.firstIndex { $0.key == key }
        radio.lastChange = now
        switch number(5) {
        case 0:  // RESET_PATH
            if let index { radio.contacts[index].pathByte = 0xFF }
            answer(index != nil, to: Data([0x0D]) + CacheFrames.key(key))
        case 1:  // REMOVE_CONTACT
            if let index { radio.contacts.remove(at: index) }
            answer(index != nil, to: Data([0x0F]) + CacheFrames.key(key))
        case 2:  // ADD_UPDATE_CONTACT, with a time of its own or without
            let hasTime = number(2) == 0
            let times: [UInt32] = [0, 5, radio.clock(now) - 100, radio.clock(now) + 100, radio.clock(now) + 1_000_000]
            let changed = hasTime ? times[number(times.count)] : radio.clock(now)
            let contact = ModelRadio.Contact(key: key, pathByte: 1, name: name(), changed: changed)
            if let index {
                radio.contacts[index] = contact
            } else if let gone = radio.add(contact) {
                push(0x8F, gone)
            }
            answer(true, to: Data([0x09]) + contact.frame.dropFirst().prefix(hasTime ? 147 : 143))
        case 3:  // GET_CONTACT_BY_KEY
            let command = Data([0x1E]) + CacheFrames.key(key)
            let reply = index.map { radio.contacts[$0].frame } ?? CacheFrames.notFound
            _ = cache.replied(reply, to: command, now: now)
        default:  // SEND_ANON_REQ
            if index == nil {
                let node = ModelRadio.Contact(key: key, pathByte: 0, name: "", changed: radio.clock(now))
                if let gone = radio.add(node) { push(0x8F, gone) }
            }
            answer(
                true, to: Data([0x39]) + CacheFrames.key(key) + Data([1]),
                with: CacheFrames.hex("06 00 00000000 88130000"))
        }
    }

    private mutating func answer(_ isAccepted: Bool, to command: Data, with reply: Data = CacheFrames.ok) {
        _ = cache.replied(isAccepted ? reply : CacheFrames.notFound, to: command, now: now)
    }

    mutating func tellTime() {
        _ = cache.replied(CacheFrames.number(9, radio.clock(now)), to: Data([0x05]), now: now)
    }

    /// The link goes, things happen, perhaps a restart, and it comes back.
    mutating func outage() {
        cache.linkLost()
        isLinked = false
        for _ in 0..<number(4) { airEvent() }
        now += .seconds(number(100))
        if number(2) == 0 {
            radio.restart(now)
            for _ in 0..<number(4) { airEvent() }
        }
        isLinked = true
        passTime()
        tellTime()
    }

    /// A pass, row by row as `checkSerialInterface` sends them, with things happening between the rows.
    mutating func pass(eventsPerRow: Int) -> RadioCache.ContactsPass {
        let command = cache.contactsPassBegan(now: now)
        let since = command.count == 5 ? command.dropFirst().reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) } : 0
        if eventsPerRow > 0, number(3) == 0 { airEvent() }
        _ = cache.contactsReceived(CacheFrames.number(2, UInt32(radio.contacts.count)))
        var next = 0
        var newest: UInt32 = 0
        while next < radio.contacts.count {
            let contact = radio.contacts[next]
            next += 1
            if contact.changed > since {
                _ = cache.contactsReceived(contact.frame)
                newest = max(newest, contact.changed)
            }
            if eventsPerRow > 0, number(3) == 0 { airEvent() }
        }
        return cache.contactsReceived(CacheFrames.number(4, newest))
    }

    /// What the cache says of the radio that is not so; contacts of the time 0 may be unknown.
    func differences(ignoringTimes: Bool) -> [String] {
        var found: [String] = []
        let list = cache.contactList(since: 0)
        let total = CacheFrames.number(2, UInt32(radio.contacts.count))
        if list.start != total { found.append("total") }
        let listed = (0..<list.count).map { list.row(at: $0) }
        for contact in radio.contacts {
            let row = cache.contact(CacheFrames.publicKey(contact.key))
            if row == nil {
                if contact.changed > 0 { found.append("\(contact.key) is missing") }
                continue
            }
            let known = ignoringTimes ? row?.prefix(144) : row
            if known != (ignoringTimes ? contact.frame.prefix(144) : contact.frame) {
                found.append("\(contact.key) differs")
            }
        }
        for row in listed where !radio.contacts.contains(where: { $0.key == row[1] }) {
            found.append("\(row[1]) is gone")
        }
        return found
    }
}

struct ContactCacheModelTests {
    @Test(arguments: 1...60)
    func `after a quiet pass the cache is the radio's list, whatever happened before`(_ seed: Int) {
        var story = ContactStory(seed: UInt64(seed))
        story.tellTime()
        for round in 0..<40 {
            for _ in 0..<story.number(6) {
                switch story.number(8) {
                case 0...2: story.airEvent()
                case 3...5: story.clientEvent()
                case 6: story.tellTime()
                default: story.outage()
                }
            }
            // Passes with changes between their rows, as in a busy mesh; some do not come to their end.
            for _ in 0..<story.number(3) {
                if story.number(4) == 0 {
                    _ = story.cache.contactsPassBegan(now: story.now)
                    _ = story.cache.contactsReceived(CacheFrames.number(2, UInt32(story.radio.contacts.count)))
                    if let index = story.someContact() {
                        _ = story.cache.contactsReceived(story.radio.contacts[index].frame)
                    }
                    story.airEvent()
                    story.cache.contactsPassFailed()
                } else {
                    _ = story.pass(eventsPerRow: 1)
                }
                if story.cache.contactsState == .valid {
                    #expect(story.differences(ignoringTimes: true) == [], "seed \(seed), round \(round)")
                }
            }
            // Then nothing happens: at most a pass, a full one for a wrong total, and a second look.
            var passes = 0
            repeat {
                passes += 1
            } while story.pass(eventsPerRow: 0) == .needsFullPass && passes < 10
            #expect(passes <= 3, "seed \(seed), round \(round)")
            #expect(story.cache.contactsState == .valid, "seed \(seed), round \(round)")
            #expect(story.differences(ignoringTimes: false) == [], "seed \(seed), round \(round)")
        }
    }
}
