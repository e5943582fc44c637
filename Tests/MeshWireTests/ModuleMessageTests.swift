// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire
import Testing

/// The protocol between the host and a module in a process of its own.
@Suite struct ModuleMessageTests {
    private static func decode(
        _ bytes: [UInt8], from sender: ModuleMessage.Sender
    ) throws(DecodeError) -> (ModuleMessage, [UInt8]) {
        let message = try bytes.span.bytes.withUnsafeBytes { (bytes) throws(DecodeError) in
            try ModuleMessage(decoding: bytes, from: sender)
        }
        return (message, Array(bytes.dropFirst(ModuleMessage.headLength)))
    }

    /// Written by hand from the table in the handbook (`struct.pack("<BBHiQQ", …)` of Python gives the same).
    @Test func `a message has these bytes`() throws {
        let send = ModuleMessage(.send, flags: .withoutResponse, link: 7, cookie: 0x0102_0304_0506_0708)
        #expect(
            send.encoded([0xAA, 0xBB]) == [
                20, 2, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 0xAA, 0xBB,
            ])
        let down = ModuleMessage(.linkDown, code: -10, link: 0x1_0000_0001)
        #expect(
            down.encoded(Array("gone".utf8)) == [
                68, 0, 0, 0, 0xF6, 0xFF, 0xFF, 0xFF, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x67, 0x6F, 0x6E,
                0x65,
            ])
    }

    @Test(arguments: ModuleMessage.Kind.allCases)
    func `every kind is read as it was written, by the side it is meant for only`(kind: ModuleMessage.Kind) throws {
        let flags: ModuleMessage.Flags = kind.isDocument ? .more : kind == .send ? .withoutResponse : []
        let message = ModuleMessage(kind, flags: flags, code: .min, link: .max, cookie: 1 << 63)
        let payloads: [[UInt8]] = [[], [1], [UInt8](repeating: 1, count: 4_096), [UInt8](repeating: 1, count: 65_512)]
        var accepted = 0
        for sender in ModuleMessage.Sender.allCases {
            for payload in payloads {
                guard let (read, rest) = try? Self.decode(message.encoded(payload), from: sender) else { continue }
                #expect(kind.isSent(by: sender))
                #expect(read == message)
                #expect(rest == payload)
                accepted += 1
            }
        }
        #expect(accepted > 0)
    }

    @Test(arguments: ModuleMessage.Kind.allCases)
    func `a head that ends early is an error at its end`(kind: ModuleMessage.Kind) {
        let bytes = ModuleMessage(kind, code: 1, link: 2, cookie: 3).encoded()
        let sender: ModuleMessage.Sender = kind.isSent(by: .host) ? .host : .module
        for count in 0..<bytes.count {
            let error = #expect(throws: DecodeError.self) { try Self.decode(Array(bytes.prefix(count)), from: sender) }
            #expect((error?.offset ?? .max) <= count)
        }
    }

    @Test func `what is not laid down is refused`() {
        func reason(_ bytes: [UInt8], _ sender: ModuleMessage.Sender) -> DecodeError.Reason? {
            do throws(DecodeError) {
                _ = try Self.decode(bytes, from: sender)
                return nil
            } catch { return error.reason }
        }
        var bytes = ModuleMessage(.ping).encoded()
        #expect(reason(bytes, .module) == .unknownCode(2))
        bytes[0] = 200
        #expect(reason(bytes, .host) == .unknownCode(200))
        bytes = ModuleMessage(.ping).encoded()
        bytes[1] = 1
        #expect(reason(bytes, .host) == .invalidField("flags"))
        bytes = ModuleMessage(.ping).encoded()
        bytes[3] = 1
        #expect(reason(bytes, .host) == .invalidField("reserved"))
        #expect(reason(ModuleMessage(.ping).encoded([1]), .host) == .invalidField("length"))
        #expect(reason(ModuleMessage(.frame).encoded(), .module) == .invalidField("length"))
        let tooLong = [UInt8](repeating: 0, count: 4_097)
        #expect(reason(ModuleMessage(.frame).encoded(tooLong), .module) == .invalidField("length"))
        let huge = ModuleMessage(.hello).encoded([UInt8](repeating: 0, count: 65_513))
        #expect(reason(huge, .module) == .trailing(count: 1))
    }

    // MARK: Documents

    private static func take(
        _ assembler: inout ModuleDocumentAssembler, _ message: ModuleMessage, _ payload: [UInt8]
    ) -> ModuleDocumentAssembler.Result {
        payload.withUnsafeBytes { assembler.take(message, $0) }
    }

    @Test func `parts become one document, and other messages may come between`() {
        var assembler = ModuleDocumentAssembler()
        let part = ModuleMessage(.managed, flags: .more, cookie: 5)
        let last = ModuleMessage(.managed, cookie: 5)
        #expect(Self.take(&assembler, last, [9]) == .whole)
        #expect(Self.take(&assembler, part, [1, 2]) == .partial)
        #expect(Self.take(&assembler, ModuleMessage(.frame), [7]) == .whole)
        #expect(Self.take(&assembler, part, [3]) == .partial)
        #expect(Self.take(&assembler, last, []) == .document([1, 2, 3]))
        #expect(Self.take(&assembler, last, [9]) == .whole)
    }

    @Test func `parts that do not belong together, or are too many, are a breach`() {
        let part = ModuleMessage(.managed, flags: .more, cookie: 5)
        for other in [ModuleMessage(.managed, cookie: 6), ModuleMessage(.diagnostics, cookie: 5)] {
            var assembler = ModuleDocumentAssembler()
            #expect(Self.take(&assembler, part, [1]) == .partial)
            #expect(Self.take(&assembler, other, [1]) == .breach)
        }
        var assembler = ModuleDocumentAssembler()
        // Without an end and without a byte it would go on for ever.
        #expect(Self.take(&assembler, part, []) == .breach)
        var count = 0
        while Self.take(&assembler, part, [UInt8](repeating: 0, count: 65_512)) == .partial { count += 1 }
        #expect(count == ModuleMessage.maximumDocument / 65_512)
    }

    // MARK: Frames

    @Test func `frames in one message are read as they were written, and never beyond its end`() throws {
        var frames = ModuleFrames()
        let list: [[UInt8]] = [[1], [2, 3], [UInt8](repeating: 4, count: 4_096)]
        for frame in list {
            let isIn = frames.append(frame)
            #expect(isIn)
        }
        let isEmptyIn = frames.append([])
        let isLongIn = frames.append([UInt8](repeating: 0, count: 4_097))
        #expect(!isEmptyIn && !isLongIn)
        #expect(frames.count == 3)
        #expect(frames.bytes.prefix(7) == [1, 0, 1, 2, 0, 2, 3])
        let ends = [0, 3, 7, frames.bytes.count]
        for count in 0...frames.bytes.count {
            var read: [[UInt8]] = []
            var isWhole = true
            do throws(DecodeError) {
                try frames.bytes.prefix(count).withUnsafeBytes { (bytes) in
                    Result { () throws(DecodeError) in try ModuleFrames.forEach(in: bytes) { read.append(Array($0)) } }
                }.get()
            } catch { isWhole = false }
            #expect(isWhole == ends.contains(count))
            #expect(read == Array(list.prefix(ends.lastIndex { $0 <= count } ?? 0)))
        }
        while frames.append([UInt8](repeating: 0, count: 4_096)) {}
        #expect(frames.bytes.count <= ModuleMessage.maximumLength - ModuleMessage.headLength)
    }

    // MARK: Sightings

    @Test func `a sighting is read as it was written, and never beyond its end`() throws {
        let sighting = ModuleSighting(address: Array("aa:1".utf8), name: Array("roof".utf8), advertisement: [1, 2, 3])
        let bytes = sighting.encoded
        #expect(bytes == [4, 0, 4, 0] + Array("aa:1roof".utf8) + [1, 2, 3])
        for count in 0...bytes.count {
            let read = bytes.prefix(count).withUnsafeBytes { try? ModuleSighting(decoding: $0) }
            if count < 12 { #expect(read == nil) }
            if count == bytes.count { #expect(read == sighting) }
        }
    }
}
