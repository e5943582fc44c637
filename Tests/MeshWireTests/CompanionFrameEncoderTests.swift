// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire
import Testing

struct CompanionFrameEncoderTests {
    @Test func `F1 a frame from app to radio`() throws {
        let encoder = CompanionFrameEncoder(marker: .fromClient)
        let payload: [UInt8] = [1, 2, 3]
        #expect(try encoder.encode(payload.span.bytes) == hex("3c0300010203"))
    }

    @Test func `F2 an empty payload is refused, as firmware would not answer it`() {
        let encoder = CompanionFrameEncoder(marker: .fromClient)
        let empty: [UInt8] = []
        #expect(throws: CompanionFrameEncoder.Failure.empty) { try encoder.encode(empty.span.bytes) }
    }

    @Test func `the ceiling is the limit`() throws {
        let encoder = CompanionFrameEncoder(marker: .fromRadio, ceiling: 300)
        let full = [UInt8](repeating: 9, count: 300)
        #expect(try encoder.encode(full.span.bytes) == hex("3e2c01") + full)
        let over = full + [9]
        #expect(throws: CompanionFrameEncoder.Failure.tooLong(length: 301, ceiling: 300)) {
            try encoder.encode(over.span.bytes)
        }
    }

    @Test func `what is encoded is decoded`() throws {
        let encoder = CompanionFrameEncoder(marker: .fromRadio)
        var stream: [UInt8] = []
        let payloads = (1...176).map { [UInt8](repeating: UInt8($0), count: $0) }
        for payload in payloads { try encoder.encode(payload.span.bytes, into: &stream) }
        #expect(FrameSink().receive(stream) == payloads)
    }
}
