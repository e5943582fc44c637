// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import FoundationEssentials
import MeshCompanion
import Testing

@testable import MeshSharing

struct MessageKeyTests {
    static func hex(_ text: String) -> Data { CacheFrames.hex(text) }

    // Frames of companion-protocol §3.3: R8, R9, R10, R11.
    static let direct = hex("10 f80000 0123456789ab ff 00 80009265 48656c6c6f")
    static let signed = hex("10 140000 0123456789ab 42 02 80009265 deadbeef 4869")
    static let old = hex("08 00 03 00 80009265 426f623a204869")
    static let channel = hex("11 140000 01 ff 00 80009265 426f623a204869")
    static let data = hex("1b 140000 02 03 3412 03 aabbcc")

    @Test(arguments: [
        ("07 0123456789ab ff 00 80009265 48656c6c6f", direct),  // without signal
        ("07 0123456789ab 02 00 80009265 48656c6c6f", direct),  // another way
        ("10 140000 0123456789ab 02 00 80009265 48656c6c6f", direct),  // another signal
        ("07 0123456789ab ff 02 80009265 deadbeef 4869", signed),
        ("11 f40000 00 ff 00 80009265 426f623a204869", old),
        ("08 01 ff 00 80009265 426f623a204869", channel),
        ("1b f80000 02 ff 3412 03 aabbcc", data),
        ("1b 140000 02 03 3412 03 aabbccdd", data),  // bytes after the data
    ])
    func `the same message has the same key however it came`(_ text: String, _ other: Data) {
        #expect(MessageKey(Self.hex(text)) == MessageKey(other))
    }

    @Test func `messages that differ in anything else have different keys`() {
        let frames: [Data] = [
            Self.direct, Self.signed, Self.old, Self.channel, Self.data,
            Self.hex("10 f80000 0123456789ac ff 00 80009265 48656c6c6f"),  // sender
            Self.hex("10 f80000 0123456789ab ff 01 80009265 48656c6c6f"),  // kind of text
            Self.hex("10 f80000 0123456789ab ff 00 81009265 48656c6c6f"),  // time
            Self.hex("10 f80000 0123456789ab ff 00 80009265 48656c6c70"),  // text
            Self.hex("10 f80000 0123456789ab ff 00 80009265 48656c6c"),
            Self.hex("10 140000 0123456789ab 42 02 80009265 deadbeee 4869"),  // author
            Self.hex("11 140000 02 ff 00 80009265 426f623a204869"),  // channel
            Self.hex("1b 140000 03 03 3412 03 aabbcc"),  // channel
            Self.hex("1b 140000 02 03 3413 03 aabbcc"),  // type
            Self.hex("1b 140000 02 03 3412 03 aabbcd"),  // data
            Self.hex("1b 140000 02 03 3412 02 aabbcc"),  // length
        ]
        #expect(Set(frames.map(MessageKey.init)).count == frames.count)
    }

    @Test func `texts that are no UTF-8 are told apart`() {
        let first = Self.hex("07 0123456789ab ff 00 80009265 ff")
        let second = Self.hex("07 0123456789ab ff 00 80009265 fe")
        #expect(MessageKey(first) != MessageKey(second))
    }

    @Test(arguments: [172, 176])
    func `a text that one layout cuts has the same key in the other`(_ limit: Int) {
        // The longest text, 160 bytes (`MAX_TEXT_LEN`), signed, as the firmware queues it (`queueMessage`).
        let body = Self.hex("0123456789ab 42 02 80009265 deadbeef") + Data(repeating: 0x61, count: 160)
        let old = (Data([0x07]) + body).prefix(limit)
        let new = (Self.hex("10 140000") + body).prefix(limit)
        #expect(MessageKey(old) == MessageKey(new))
    }

    @Test func `a frame that cannot be read is its own key`() {
        for frame in [Self.direct.prefix(15), Self.channel.prefix(10), Self.data.prefix(8), Data([0x1D, 1]), Data()] {
            #expect(MessageKey(frame) == MessageKey(Data(frame)))
            #expect(MessageKey(frame) != MessageKey(frame + Data([0])))
        }
    }

    @Test func `only datagrams, which have no time, are another message after a minute`() {
        #expect(MessageKey(Self.data).window == MessageKey.datagramWindow)
        for frame in [Self.direct, Self.channel, Self.signed] { #expect(MessageKey(frame).window == nil) }
    }

    @Test func `a frame in a slice is the same`() {
        let buffer = Data([0xFF]) + Self.direct
        #expect(MessageKey(buffer[1...]) == MessageKey(Self.direct))
    }

    // MARK: Views

    /// Pairs of the two layouts. The second is companion-protocol §3.3, R11 and R12; the first R8 and its counterpart.
    static let pairs: [(old: Data, new: Data)] = [
        (hex("07 0123456789ab ff 00 80009265 48656c6c6f"), direct),
        (hex("08 01 ff 00 80009265 426f623a204869"), channel),
        (hex("07 0123456789ab 42 02 80009265 deadbeef 4869"), signed),
    ]

    @Test(arguments: pairs)
    func `a client gets the layout of its version`(_ old: Data, _ new: Data) throws {
        var silent = new
        silent[1] = 0
        for version in 0...2 as ClosedRange<UInt8> {
            #expect(MessageView.frame(new, forVersion: version) == old)
            #expect(MessageView.frame(old, forVersion: version) == old)
        }
        for version: UInt8 in [3, 13, 255] {
            #expect(MessageView.frame(new, forVersion: version) == new)
            #expect(MessageView.frame(old, forVersion: version) == silent)
        }
    }

    @Test(arguments: pairs)
    func `the codec says the same`(_ old: Data, _ new: Data) throws {
        let message = try #require(try ReceivedMessage(new))
        #expect(try message.encoded(version: 1) == old)
        #expect(try message.encoded(version: 3) == new)
        let without = try #require(try ReceivedMessage(old))
        #expect(try without.encoded(version: 3) == MessageView.frame(old, forVersion: 3))
    }

    @Test func `datagrams are for clients since version 3`() {
        #expect(MessageView.frame(Self.data, forVersion: 2) == nil)
        #expect(MessageView.frame(Self.data, forVersion: 3) == Self.data)
    }

    @Test func `bytes that are no UTF-8 are passed on`() {
        let frame = Self.hex("10 f80000 0123456789ab ff 00 80009265 ff00fe")
        #expect(MessageView.frame(frame, forVersion: 1) == Self.hex("07 0123456789ab ff 00 80009265 ff00fe"))
    }

    @Test func `no frame gets longer than a radio's`() throws {
        let old = Self.hex("07 0123456789ab 42 02 80009265 deadbeef") + Data(repeating: 0x61, count: 159)
        #expect(old.count == 176)
        let frame = try #require(MessageView.frame(old, forVersion: 3))
        #expect(frame.count == 176)
        #expect(frame == (Self.hex("10 000000") + old.dropFirst()).prefix(176))
    }

    @Test func `what is no message is as it is`() {
        for frame in [Data(), Data([0x0A]), Data([0x10, 1, 2]), Data([0x7F, 1]), Data([0x80]) + CacheFrames.key(1)] {
            #expect(MessageView.frame(frame, forVersion: 1) == frame)
        }
    }
}
