// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

/// Puts a stream decoder through everything a byte stream can do to frames; every stream decoder is tested with it.
struct StreamVerifier {
    /// A fresh decoder: takes the next bytes, returns the frames they complete.
    var makeDecoder: () -> ([UInt8]) -> [[UInt8]]
    /// The bytes of one frame.
    var encode: ([UInt8]) -> [UInt8]
    /// Bytes that begin no frame.
    var garbage: [UInt8]
    /// The start of a frame that states more than the ceiling.
    var oversizedHeader: [UInt8]

    func verify(_ payloads: [[UInt8]], sourceLocation: SourceLocation = #_sourceLocation) {
        let encoded = payloads.map(encode)
        let stream = encoded.flatMap { $0 }

        expect(payloads, [stream], "concatenated in one input", sourceLocation)
        expect(payloads, encoded, "one frame per input", sourceLocation)
        expect(payloads, stream.map { [$0] }, "byte by byte", sourceLocation)
        expect(payloads, [[]] + stream.flatMap { [[$0], []] }, "with empty inputs between", sourceLocation)
        for offset in 0...stream.count {
            expect(
                payloads, [Array(stream[..<offset]), Array(stream[offset...])], "split at \(offset)", sourceLocation)
        }
        for width in [2, 3, 4, 5, 7, 64] {
            let pieces = stride(from: 0, to: stream.count, by: width).map {
                Array(stream[$0..<min($0 + width, stream.count)])
            }
            expect(payloads, pieces, "in pieces of \(width)", sourceLocation)
        }
        for offset in 0..<stream.count {
            var end = 0
            let whole = zip(payloads, encoded).prefix {
                end += $1.count; return end <= offset
            }.map(\.0)
            expect(whole, [Array(stream[..<offset])], "truncated at \(offset)", sourceLocation)
        }
        for prefix in [garbage, oversizedHeader, garbage + oversizedHeader, oversizedHeader + oversizedHeader] {
            expect(payloads, [prefix + stream], "behind \(prefix)", sourceLocation)
            expect(payloads, [prefix, stream], "an input after \(prefix)", sourceLocation)
            expect(payloads, (prefix + stream).map { [$0] }, "byte by byte behind \(prefix)", sourceLocation)
            expect(payloads, [encoded.flatMap { prefix + $0 }], "\(prefix) before each", sourceLocation)
        }
        for payload in payloads {
            let nested = encode(payload)
            expect([nested], [encode(nested)], "a frame inside a payload", sourceLocation)
            expect([nested], encode(nested).map { [$0] }, "a frame inside a payload, byte by byte", sourceLocation)
        }
    }

    private func expect(
        _ expected: [[UInt8]], _ inputs: [[UInt8]], _ situation: String, _ sourceLocation: SourceLocation
    ) {
        let decode = makeDecoder()
        let frames = inputs.flatMap(decode)
        #expect(frames == expected, "\(situation)", sourceLocation: sourceLocation)
    }
}
