// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire
import Testing

/// Puts a decoder of whole packets through every truncation and some damage; every decoder of the stack is tested with
/// it.
struct DecoderVerifier<Value: Equatable> {
    var decode: (RawSpan) throws -> Value
    /// Whether the layout ends with a field that takes whatever is left, so that shorter packets can be valid.
    var hasOpenEnd = false

    /// `packet` decodes; whatever is cut off or changed gives a value or a `DecodeError` with an offset inside.
    func verify(_ packet: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(throws: Never.self, sourceLocation: sourceLocation) { try decode(packet.span.bytes) }
        for count in 0..<packet.count {
            let outcome = run(Array(packet.prefix(count)), sourceLocation)
            if !hasOpenEnd {
                #expect(outcome == nil, "cut at \(count) of \(packet.count)", sourceLocation: sourceLocation)
            }
        }
        _ = run(packet + [0], sourceLocation)
        for index in packet.indices {
            for change: UInt8 in [0x01, 0x80, 0xFF] {
                var damaged = packet
                damaged[index] ^= change
                _ = run(damaged, sourceLocation)
            }
        }
    }

    private func run(_ bytes: [UInt8], _ sourceLocation: SourceLocation) -> Value? {
        do {
            return try decode(bytes.span.bytes)
        } catch let error as DecodeError {
            #expect((0...bytes.count).contains(error.offset), "\(error)", sourceLocation: sourceLocation)
        } catch {
            Issue.record("\(error) is no DecodeError", sourceLocation: sourceLocation)
        }
        return nil
    }
}
