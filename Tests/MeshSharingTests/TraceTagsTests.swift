// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import MeshTestSupport
import Testing

@testable import MeshSharing

struct TraceTagsTests {
    static func hex(_ text: String) -> Data { CacheFrames.hex(text) }

    /// meshcore_py 2.3.17, `send_trace(auth_code=0, tag=0x12345678, path="23,5f,3a")`.
    static let command = hex("24 78563412 00000000 00 235f3a")

    @Test func `the radio gets the host's tag, the client its own`() {
        var tags = TraceTags()
        let sent = tags.translate(Self.command, from: 7, tag: 0xAABBCCDD, now: .zero)
        #expect(sent == Self.hex("24 ddccbbaa 00000000 00 235f3a"))
        #expect(tags.receipt(Self.hex("06 00 ddccbbaa 88130000")) == Self.hex("06 00 78563412 88130000"))
        // reserved, path length, flags, tag, auth, hashes, ratios
        let push = Self.hex("89 00 03 00 ddccbbaa 00000000 235f3a 10 20 30 40")
        #expect(
            tags.pushReceived(push, now: .seconds(3))
                == .client(7, Self.hex("89 00 03 00 78563412 00000000 235f3a 10 20 30 40")))
        #expect(tags.pushReceived(push, now: .seconds(3)) == .unknown)
    }

    @Test func `two clients with the same tag get their own answers`() {
        var tags = TraceTags()
        // The random number is the same, too.
        let first = tags.translate(Self.command, from: 1, tag: 5, now: .zero)
        let second = tags.translate(Self.command, from: 2, tag: 5, now: .zero)
        #expect(first == Self.hex("24 05000000 00000000 00 235f3a"))
        #expect(second == Self.hex("24 06000000 00000000 00 235f3a"))
        let answer = Self.hex("89 00 00 00 78563412 00000000 40")
        #expect(tags.pushReceived(Self.hex("89 00 00 00 06000000 00000000 40"), now: .zero) == .client(2, answer))
        #expect(tags.pushReceived(Self.hex("89 00 00 00 05000000 00000000 40"), now: .zero) == .client(1, answer))
    }

    @Test func `after the last number comes the first`() {
        var tags = TraceTags()
        _ = tags.translate(Self.command, from: 1, tag: .max, now: .zero)
        #expect(
            tags.translate(Self.command, from: 2, tag: .max, now: .zero) == Self.hex("24 00000000 00000000 00 235f3a"))
    }

    @Test func `what is not a trace's is as it is`() {
        var tags = TraceTags()
        _ = tags.translate(Self.command, from: 1, tag: 5, now: .zero)
        for reply in [Data([0x01, 0x06]), Self.hex("06 00 06000000 88130000"), Data([0x06]), Data()] {
            #expect(tags.receipt(reply) == reply)
        }
        for push in [
            Self.hex("89 00 00 00 06000000 00000000 40"), Data([0x89, 0]), Self.hex("82 00000005000000"), Data(),
        ] {
            #expect(tags.pushReceived(push, now: .zero) == .unknown)
        }
        #expect(tags.translate(Data([0x24, 1]), from: 1, tag: 9, now: .zero) == Data([0x24, 1]))
        #expect(tags.count == 1)
    }

    @Test func `the answer for a client that has gone is for nobody`() {
        var tags = TraceTags()
        _ = tags.translate(Self.command, from: 1, tag: 5, now: .zero)
        _ = tags.translate(Self.command, from: 2, tag: 6, now: .zero)
        tags.clientLeft(1)
        #expect(tags.pushReceived(Self.hex("89 00 00 00 05000000 00000000 40"), now: .zero) == .gone)
        let answer = Self.hex("89 00 00 00 78563412 00000000 40")
        #expect(tags.pushReceived(Self.hex("89 00 00 00 06000000 00000000 40"), now: .zero) == .client(2, answer))
    }

    @Test func `a trace is awaited for ten minutes`() {
        for (now, isKnown) in [(Duration.seconds(600) - .nanoseconds(1), true), (.seconds(600), false)] {
            var tags = TraceTags()
            _ = tags.translate(Self.command, from: 1, tag: 5, now: .zero)
            let owner = tags.pushReceived(Self.hex("89 00 00 00 05000000 00000000 40"), now: now)
            #expect((owner != .unknown) == isKnown)
        }
    }

    @Test func `a client that sends traces without end takes no more than its room, and none of others`() {
        var tags = TraceTags()
        _ = tags.translate(Self.command, from: 2, tag: 5_000, now: .zero)
        for number in 0..<1_000 as Range<UInt32> {
            _ = tags.translate(Self.command, from: 1, tag: number, now: .zero)
        }
        #expect(tags.count == TraceTags.capacity)
        func owner(_ tag: UInt32) -> TraceTags.Owner {
            tags.pushReceived(Self.hex("89 00 00 00") + CacheFrames.bytes(tag) + Self.hex("00000000 40"), now: .zero)
        }
        #expect(owner(872) == .unknown && owner(873) != .unknown && owner(999) != .unknown)
        #expect(owner(5_000) != .unknown)
    }

    @Test func `one that has none under way gets the room of the oldest`() {
        var tags = TraceTags()
        for number in 0..<UInt32(TraceTags.capacity) {
            _ = tags.translate(Self.command, from: 1, tag: number, now: .zero)
        }
        _ = tags.translate(Self.command, from: 2, tag: 1_000, now: .zero)
        #expect(tags.pushReceived(Self.hex("89 00 00 00 00000000 00000000 40"), now: .zero) == .unknown)
        #expect(tags.pushReceived(Self.hex("89 00 00 00 e8030000 00000000 40"), now: .zero) != .unknown)
    }

    @Test(arguments: 1...20)
    func `whatever is under way, each gets its own tag back`(_ seed: Int) {
        var random = SplitMix(state: UInt64(seed))
        var tags = TraceTags()
        // The radio's side: the tag that it was given, who gave it, with which tag.
        var sent: [(tag: Data, client: UInt64, chosen: Data)] = []
        for _ in 0..<300 {
            if sent.count < 50, random.next() % 2 == 0 {
                let client = random.next() % 4
                let chosen = Data(CacheFrames.bytes(UInt32(random.next() % 3)))
                let command = Data([0x24]) + chosen + Self.hex("00000000 00 23")
                let tag = tags.translate(command, from: client, tag: UInt32(random.next() % 8), now: .zero)[1..<5]
                #expect(!sent.contains { $0.tag == Data(tag) }, "seed \(seed)")
                sent.append((Data(tag), client, chosen))
            } else if !sent.isEmpty {
                let trace = sent.remove(at: Int(random.next() % UInt64(sent.count)))
                let owner = tags.pushReceived(
                    Self.hex("89 00 01 00") + trace.tag + Self.hex("00000000 23 10 20"), now: .zero)
                let expected = Self.hex("89 00 01 00") + trace.chosen + Self.hex("00000000 23 10 20")
                #expect(owner == .client(trace.client, expected), "seed \(seed)")
            }
        }
    }
}
