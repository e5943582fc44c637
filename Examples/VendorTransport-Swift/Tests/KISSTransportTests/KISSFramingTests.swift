// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import KISSTransport

struct KISSFramingTests {
    private func decode(_ bytes: [UInt8], limit: Int = 16, by step: Int = .max) -> (frames: [[UInt8]], skipped: Int) {
        var decoder = KISSDecoder(limit: limit)
        var frames: [[UInt8]] = []
        for start in stride(from: 0, to: bytes.count, by: min(step, max(1, bytes.count))) {
            bytes[start..<min(bytes.count, start + min(step, bytes.count))].withUnsafeBytes { part in
                decoder.bytesReceived(part) { frames.append(Array($0)) }
            }
        }
        return (frames, decoder.skippedBytes)
    }

    /// The example of the specification: "TEST" is sent as C0 00 54 45 53 54 C0.
    @Test func `a frame as the specification shows it`() {
        #expect(KISS.encode(Array("TEST".utf8)) == [0xC0, 0x00, 0x54, 0x45, 0x53, 0x54, 0xC0])
        #expect(KISS.encode([0xC0, 0xDB]) == [0xC0, 0x00, 0xDB, 0xDC, 0xDB, 0xDD, 0xC0])
    }

    @Test(arguments: [1, 2, 3, 7, Int.max]) func `every byte comes back, however the stream is cut`(step: Int) {
        let payloads: [[UInt8]] = [Array(0...255), [0xC0], [0xDB, 0xDC, 0xDD], [0, 0]]
        let stream = payloads.flatMap { KISS.encode($0) }
        #expect(decode(stream, limit: 256, by: step).frames == payloads)
    }

    @Test func `what is no data frame is skipped and counted`() {
        #expect(decode([1, 2, 3] + KISS.encode([7])) == ([[7]], 3))
        #expect(decode([0xC0, 0x01, 9, 0xC0]) == ([], 2))
        #expect(decode([0xC0, 0x00, 0xDB, 5, 6, 0xC0] + KISS.encode([7])).frames == [[7]])
        #expect(decode([0xC0, 0x00, 1, 0xDB, 0xC0] + KISS.encode([7])).frames == [[7]])
        #expect(decode(KISS.encode([])).frames.isEmpty)
    }

    @Test func `a frame has its limit`() {
        #expect(decode(KISS.encode([UInt8](repeating: 1, count: 16))).frames.count == 1)
        let (frames, skipped) = decode(KISS.encode([UInt8](repeating: 1, count: 17)) + KISS.encode([2]))
        #expect(frames == [[2]])
        #expect(skipped == 18)
    }
}
