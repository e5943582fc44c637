// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import Acme

struct AcmeFramingTests {
    private let frames: [[UInt8]] = [[1], [0xFF, 0, 2], Array(repeating: 7, count: AcmeFraming.maximumFrame)]

    @Test(arguments: [1, 2, 3, 1_000, 10_000])
    func `frames come out whole, however the bytes arrive`(portion: Int) throws {
        let bytes = frames.flatMap { AcmeFraming.encode($0) }
        var framing = AcmeFraming()
        var received: [[UInt8]] = []
        for start in stride(from: 0, to: bytes.count, by: portion) {
            try bytes[start..<min(start + portion, bytes.count)].withUnsafeBytes {
                try framing.bytesReceived($0) { received.append(Array($0)) }
            }
        }
        #expect(received == frames)
    }

    @Test(arguments: [[0, 0], [1, 16]] as [[UInt8]])
    func `a length that cannot be is an error`(bytes: [UInt8]) {
        var framing = AcmeFraming()
        #expect(throws: AcmeFraming.Nonsense.self) {
            try bytes.withUnsafeBytes { try framing.bytesReceived($0) { _ in } }
        }
    }
}
