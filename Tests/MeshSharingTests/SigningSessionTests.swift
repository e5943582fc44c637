// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import Testing

@testable import MeshSharing

struct SigningSessionTests {
    static let start = Data([0x21])
    static let finish = Data([0x23])
    static let ok = SigningSession.Action.reply(Data([0x00]))
    static let badState = SigningSession.Action.reply(Data([0x01, 0x04]))
    static let tableFull = SigningSession.Action.reply(Data([0x01, 0x03]))

    static func data(_ bytes: Data) -> Data { Data([0x22]) + bytes }

    @Test func `a start is answered as the radio would`() {
        var session = SigningSession()
        // SIGN_START, reserved, 8192 (companion-protocol §1.6).
        #expect(session.received(Self.start, maximumFrame: 176) == .reply(CacheFrames.hex("13 00 00200000")))
    }

    @Test func `the parts go to the radio at once, as long as the link carries`() {
        var session = SigningSession()
        _ = session.received(Self.start, maximumFrame: 5)
        #expect(session.received(Self.data(Data([1, 2, 3])), maximumFrame: 5) == Self.ok)
        #expect(session.received(Self.data(Data([4, 5, 6, 7, 8, 9])), maximumFrame: 5) == Self.ok)
        #expect(
            session.received(Self.finish, maximumFrame: 5)
                == .transaction([
                    Self.start, Self.data(Data([1, 2, 3, 4])), Self.data(Data([5, 6, 7, 8])), Self.data(Data([9])),
                    Self.finish,
                ]))
    }

    @Test(arguments: [1, 174, 175, 176, 8_191, 8_192], [20, 173, 176])
    func `nothing is lost or longer than the link carries`(_ length: Int, _ maximumFrame: Int) throws {
        var session = SigningSession()
        _ = session.received(Self.start, maximumFrame: maximumFrame)
        let text = Data((0..<length).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        for begin in stride(from: 0, to: length, by: 100) {
            let part = Self.data(Data(text.dropFirst(begin).prefix(100)))
            #expect(session.received(part, maximumFrame: maximumFrame) == Self.ok)
        }
        guard case .transaction(let frames) = session.received(Self.finish, maximumFrame: maximumFrame) else {
            Issue.record("no transaction")
            return
        }
        #expect(frames.first == Self.start && frames.last == Self.finish)
        let parts = frames.dropFirst().dropLast()
        #expect(parts.allSatisfy { $0.first == 0x22 && (2...maximumFrame).contains($0.count) })
        #expect(parts.reduce(Data()) { $0 + $1.dropFirst() } == text)
    }

    @Test func `nothing may be signed too`() {
        var session = SigningSession()
        _ = session.received(Self.start, maximumFrame: 176)
        #expect(session.received(Self.finish, maximumFrame: 176) == .transaction([Self.start, Self.finish]))
    }

    @Test func `without a start there is an error`() {
        var session = SigningSession()
        #expect(session.received(Self.data(Data([1])), maximumFrame: 176) == Self.badState)
        #expect(session.received(Self.finish, maximumFrame: 176) == Self.badState)
        _ = session.received(Self.start, maximumFrame: 176)
        _ = session.received(Self.finish, maximumFrame: 176)
        // The signature is made: the next needs a start of its own.
        #expect(session.received(Self.data(Data([1])), maximumFrame: 176) == Self.badState)
        #expect(session.received(Self.finish, maximumFrame: 176) == Self.badState)
    }

    @Test func `what is too much is refused and leaves the rest`() {
        var session = SigningSession()
        _ = session.received(Self.start, maximumFrame: 10_000)
        #expect(session.received(Self.data(Data(repeating: 1, count: 8_190)), maximumFrame: 10_000) == Self.ok)
        #expect(session.received(Self.data(Data([2, 2, 2])), maximumFrame: 10_000) == Self.tableFull)
        #expect(session.received(Self.data(Data([3, 3])), maximumFrame: 10_000) == Self.ok)
        #expect(session.received(Self.data(Data([4])), maximumFrame: 10_000) == Self.tableFull)
        #expect(
            session.received(Self.finish, maximumFrame: 10_000)
                == .transaction([Self.start, Self.data(Data(repeating: 1, count: 8_190) + [3, 3]), Self.finish]))
    }

    @Test func `a new start drops what was there`() {
        var session = SigningSession()
        _ = session.received(Self.start, maximumFrame: 176)
        _ = session.received(Self.data(Data([1])), maximumFrame: 176)
        _ = session.received(Self.start, maximumFrame: 176)
        _ = session.received(Self.data(Data([2])), maximumFrame: 176)
        #expect(
            session.received(Self.finish, maximumFrame: 176)
                == .transaction([Self.start, Self.data(Data([2])), Self.finish]))
    }

    @Test func `two clients do not mix`() {
        var sessions = [SigningSession(), SigningSession()]
        for index in 0...1 { _ = sessions[index].received(Self.start, maximumFrame: 176) }
        for index in 0...1 { _ = sessions[index].received(Self.data(Data([UInt8(index)])), maximumFrame: 176) }
        for index in 0...1 {
            #expect(
                sessions[index].received(Self.finish, maximumFrame: 176)
                    == .transaction([Self.start, Self.data(Data([UInt8(index)])), Self.finish]))
        }
    }

    @Test func `other commands are none of it`() {
        var session = SigningSession()
        for command in [Data(), Data([0x05]), Data([0x20, 1]), Data([0x24])] {
            #expect(session.received(command, maximumFrame: 176) == nil)
        }
    }
}
