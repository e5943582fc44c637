// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import Testing

@testable import MeshSharing

struct RadioCacheTests {
    typealias Frames = CacheFrames

    /// Every read whose reply is kept, as a client may ask it, and a reply.
    static let reads: [(command: Data, reply: Data)] = [
        (Frames.hex("01 03 202020202020 6d63636c69"), Frames.selfInfo),
        (Frames.hex("16 03"), Frames.deviceInfo),
        (Frames.hex("1f 00"), Frames.channel(0)),
        (Frames.hex("1f 27"), Frames.channel(0x27, secret: 9)),
        (Frames.hex("28"), Data([0x15]) + Data("gps:1,gps_interval:30".utf8)),
        (Frames.hex("2b"), Frames.hex("17 88130000 e8030000")),
        (Frames.hex("3b"), Frames.hex("19 1f 03")),
        (Frames.hex("40"), Frames.hex("1c")),
        (Frames.hex("3c"), Frames.hex("1a e89b0600 e89b0600")),
        (Frames.hex("14"), Frames.hex("0c fc10 16000000 64000000")),
    ]

    /// A cache that knows the answer to every read, asked for at 0 s.
    static func filled() -> RadioCache {
        var cache = RadioCache()
        for (command, reply) in reads { #expect(cache.replied(reply, to: command, now: .zero) == []) }
        return cache
    }

    @Test func `a read is asked once, then answered as the radio did`() {
        var cache = RadioCache()
        for (command, reply) in Self.reads {
            #expect(cache.lookup(command, now: .zero) == .unknown)
            #expect(cache.replied(reply, to: command, now: .zero) == [])
            #expect(cache.lookup(command, now: .seconds(1)) == .answer([reply]))
        }
    }

    @Test func `a reply in a slice of a larger buffer is kept as itself`() {
        var cache = RadioCache()
        let buffer = Data([0xFF, 0xFF]) + Frames.hex("19 1f 03") + Data([0xFF])
        _ = cache.replied(buffer[2..<5], to: (Data([0xFF]) + Frames.hex("3b"))[1...], now: .zero)
        #expect(cache.lookup(Frames.hex("3b"), now: .zero) == .answer([Frames.hex("19 1f 03")]))
    }

    @Test func `another version or app name asks for the same`() {
        let cache = Self.filled()
        #expect(cache.lookup(Frames.hex("16 01"), now: .zero) == .answer([Frames.deviceInfo]))
        #expect(cache.lookup(Frames.hex("01 00000000000000"), now: .zero) == .answer([Frames.selfInfo]))
    }

    @Test func `a reply that is too short or of another read is not kept`() {
        var cache = RadioCache()
        for (command, reply) in Self.reads where reply.count > 2 {
            _ = cache.replied(reply.prefix(1), to: command, now: .zero)
            // No variables, no frequencies: whole replies.
            let isWhole = [0x15, 0x1A].contains(reply[0])
            #expect(cache.lookup(command, now: .zero) == (isWhole ? .answer([reply.prefix(1)]) : .unknown))
        }
        _ = cache.replied(Frames.channel(5), to: Frames.hex("1f 04"), now: .zero)
        #expect(cache.lookup(Frames.hex("1f 04"), now: .zero) == .unknown)
        #expect(cache.lookup(Frames.hex("1f 05"), now: .zero) == .unknown)
    }

    @Test(arguments: CommandCode.allCases)
    func `what is not a read of the table is never answered from memory`(_ code: CommandCode) {
        let table: Set<CommandCode> = [
            .appStart, .deviceQuery, .getChannel, .getCustomVariables, .getTuning, .getAutoAdd, .getDefaultScope,
            .getAllowedRepeatFrequencies, .getBatteryAndStorage, .getTime, .getContactByKey,
        ]
        let command = Data([code.rawValue]) + Data(count: 40)
        #expect((Self.filled().lookup(command, now: .zero) == .uncached) == !table.contains(code))
    }

    @Test func `a frame that no radio knows is not answered from memory`() {
        let cache = Self.filled()
        for command in [Data(), Data([0x1F]), Data([0x1E, 1, 2]), Data([0xF0])] {
            #expect(cache.lookup(command, now: .zero) == .uncached)
        }
    }

    // MARK: Age

    @Test
    func `the battery is good for a minute, the radio's place for ten, the rest for as long as nothing changes it`() {
        let cache = Self.filled()
        for (command, reply) in Self.reads {
            let goodFor: Int64 =
                switch reply[0] {
                case 0x0C: 60
                case 0x05: 600
                default: 1_000_000
                }
            #expect(cache.lookup(command, now: .seconds(goodFor) - .nanoseconds(1)) == .answer([reply]))
            if goodFor < 1_000_000 { #expect(cache.lookup(command, now: .seconds(goodFor)) == .stale([reply])) }
        }
        var patient = RadioCache(batteryAge: .seconds(5))
        _ = patient.replied(Frames.hex("0c 8000"), to: Frames.hex("14"), now: .zero)
        #expect(patient.lookup(Frames.hex("14"), now: .seconds(5)) == .stale([Frames.hex("0c 8000")]))
    }

    @Test func `the time is computed for ten minutes`() {
        var cache = RadioCache()
        let getTime = Data([0x05])
        #expect(cache.lookup(getTime, now: .zero) == .unknown)
        #expect(cache.currentTime(now: .zero) == nil)
        // 2024-01-01 (companion-protocol §3.3, R4).
        _ = cache.replied(Frames.hex("09 80009265"), to: getTime, now: .milliseconds(500))
        #expect(cache.lookup(getTime, now: .milliseconds(1_499)) == .answer([Frames.hex("09 80009265")]))
        #expect(cache.lookup(getTime, now: .milliseconds(1_500)) == .answer([Frames.hex("09 81009265")]))
        #expect(cache.currentTime(now: .seconds(600)) == 1_704_067_799)
        #expect(cache.currentTime(now: .milliseconds(600_500)) == nil)
        #expect(cache.lookup(getTime, now: .milliseconds(600_500)) == .stale([Frames.number(9, 1_704_067_800)]))
    }

    @Test func `a clock that is set is known`() {
        var cache = RadioCache()
        #expect(cache.replied(Frames.ok, to: Frames.hex("06 80009265"), now: .zero) == [])
        #expect(cache.currentTime(now: .seconds(2)) == 1_704_067_202)
        // Refused: earlier than the clock.
        _ = cache.replied(Frames.hex("01 06"), to: Frames.hex("06 00000001"), now: .seconds(2))
        #expect(cache.currentTime(now: .seconds(2)) == 1_704_067_202)
    }

    // MARK: Errors

    @Test func `an error that will come again is kept until the link changes`() {
        var cache = RadioCache()
        for (command, _) in Self.reads {
            _ = cache.replied(Frames.unsupported, to: command, now: .zero)
            #expect(cache.lookup(command, now: .zero) == .answer([Frames.unsupported]))
        }
        _ = cache.replied(Frames.notFound, to: Frames.hex("1f 30"), now: .zero)
        #expect(cache.lookup(Frames.hex("1f 30"), now: .zero) == .answer([Frames.notFound]))
        cache.linkLost()
        for command in Self.reads.map(\.command) + [Frames.hex("1f 30")] {
            #expect(cache.lookup(command, now: .zero) == .unknown)
        }
    }

    @Test func `an error that may pass changes nothing`() {
        var cache = Self.filled()
        for (command, reply) in Self.reads {
            for code: UInt8 in [3, 4, 5, 6] { _ = cache.replied(Data([0x01, code]), to: command, now: .zero) }
            _ = cache.replied(Data([0x01]), to: command, now: .zero)
            if reply[0] != 0x12 { _ = cache.replied(Frames.notFound, to: command, now: .zero) }
            #expect(cache.lookup(command, now: .zero) == .answer([reply]))
        }
    }

    // MARK: Link and identity

    @Test func `a new link makes all stale until it is asked for again`() {
        var cache = Self.filled()
        _ = cache.replied(Frames.hex("09 80009265"), to: Data([0x05]), now: .zero)
        cache.linkLost()
        for (command, reply) in Self.reads {
            #expect(cache.lookup(command, now: .zero) == .stale([reply]))
        }
        #expect(cache.lookup(Data([0x05]), now: .seconds(3)) == .stale([Frames.hex("09 83009265")]))
        #expect(cache.currentTime(now: .zero) == nil)
        for (command, reply) in Self.reads {
            _ = cache.replied(reply, to: command, now: .seconds(9))
            #expect(cache.lookup(command, now: .seconds(9)) == .answer([reply]))
        }
    }

    @Test func `a radio with another key is another radio`() {
        var cache = Self.filled()
        _ = cache.replied(Frames.hex("09 80009265"), to: Data([0x05]), now: .zero)
        _ = cache.contactsPassBegan(now: .zero)
        for frame in [Frames.number(2, 1), Frames.contact(1, changed: 5), Frames.number(4, 5)] {
            _ = cache.contactsReceived(frame)
        }
        #expect(cache.contactsState == .valid)
        var other = Frames.selfInfo
        other[4] ^= 1
        #expect(cache.replied(other, to: Self.reads[0].command, now: .zero) == [])
        #expect(cache.lookup(Self.reads[0].command, now: .zero) == .answer([other]))
        for (command, _) in Self.reads.dropFirst() { #expect(cache.lookup(command, now: .zero) == .unknown) }
        #expect(cache.lookup(Data([0x05]), now: .zero) == .unknown)
        #expect(cache.contactsState == .unknown && cache.contact(Frames.publicKey(1)) == nil)
    }

    @Test func `another name is not another radio`() {
        var cache = Self.filled()
        let renamed = Frames.selfInfo.prefix(58) + Data("Other".utf8)
        _ = cache.replied(renamed, to: Self.reads[0].command, now: .zero)
        #expect(cache.lookup(Frames.hex("16 03"), now: .zero) == .answer([Frames.deviceInfo]))
    }

    // MARK: Observations

    @Test func `a reply to somebody else's read is as good as one's own`() {
        var cache = RadioCache()
        for (command, reply) in Self.reads {
            cache.observed(reply, now: .seconds(1))
            #expect(cache.lookup(command, now: .seconds(1)) == .answer([reply]))
        }
        cache.observed(Frames.hex("09 80009265"), now: .seconds(1))
        #expect(cache.currentTime(now: .seconds(2)) == 1_704_067_201)
        cache.observed(Frames.contact(1, changed: 5), now: .seconds(1))
        #expect(cache.contact(Frames.publicKey(1)) == Frames.contact(1, changed: 5))
    }

    @Test func `an OK to somebody else makes all stale, an error nothing`() {
        var cache = Self.filled()
        _ = cache.replied(Frames.hex("09 80009265"), to: Data([0x05]), now: .zero)
        for other in [Frames.notFound, Data([0x0A]), Frames.hex("06 00 00000000 88130000"), Data(), Data([0x7F])] {
            cache.observed(other, now: .zero)
        }
        for (command, reply) in Self.reads { #expect(cache.lookup(command, now: .zero) == .answer([reply])) }
        cache.observed(Frames.ok, now: .zero)
        for (command, reply) in Self.reads { #expect(cache.lookup(command, now: .zero) == .stale([reply])) }
        #expect(cache.lookup(Data([0x05]), now: .zero) == .stale([Frames.hex("09 80009265")]))
    }
}
