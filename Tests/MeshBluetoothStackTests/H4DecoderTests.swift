// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshBluetoothStack
import MeshTestSupport
import Testing

struct H4DecoderTests {
    /// Reset's answer, an ACL packet, an event without parameters, an isochronous packet with reserved bits set.
    private let packets: [[UInt8]] = [
        hex("04 0e 04 01 03 0c 00"), hex("02 40 20 03 00 aa bb cc"), hex("04 1a 00"), hex("05 01 00 02 c0 11 22"),
        hex("03 01 00 01 99"),
    ]

    private func run(_ pieces: [[UInt8]]) -> (packets: [[UInt8]], synchrony: H4Decoder.Synchrony) {
        var decoder = H4Decoder()
        var found: [[UInt8]] = []
        var synchrony = H4Decoder.Synchrony.kept
        for piece in pieces {
            synchrony = decoder.bytesReceived(piece.span.bytes) { kind, packet in
                packet.withUnsafeBytes { found.append([kind.rawValue] + $0) }
            }
        }
        return (found, synchrony)
    }

    @Test func `packets come out whole however the stream is cut`() {
        let stream = packets.flatMap { $0 }
        #expect(run([stream]).packets == packets)
        #expect(run(packets).packets == packets)
        #expect(run(stream.map { [$0] }).packets == packets)
        #expect(run([[]] + stream.flatMap { [[$0], []] }).packets == packets)
        for offset in 0...stream.count {
            #expect(run([Array(stream[..<offset]), Array(stream[offset...])]).packets == packets, "at \(offset)")
        }
        for offset in 0..<stream.count {
            var end = 0
            let whole = packets.prefix {
                end += $0.count
                return end <= offset
            }
            #expect(run([Array(stream[..<offset])]).packets == Array(whole), "truncated at \(offset)")
        }
    }

    @Test(arguments: [0x00, 0x01, 0x06, 0xFF] as [UInt8])
    func `a byte that begins no packet of a controller ends synchrony`(byte: UInt8) {
        let good = packets[0]
        for pieces in [[good + [byte] + good], [good, [byte], good], (good + [byte] + good).map { [$0] }] {
            let result = run(pieces)
            #expect(result.packets == [good])
            #expect(result.synchrony == .lost(.indicator(byte)))
        }
    }

    @Test func `a data packet beyond the ceiling ends synchrony`() {
        let result = run([hex("02 40 20 01 10")])
        #expect(result.packets == [])
        #expect(result.synchrony == .lost(.length(.acl, 0x1001)))
        #expect(run(hex("02 40 20 01 10").map { [$0] }).synchrony == .lost(.length(.acl, 0x1001)))
    }

    @Test func `a restart finds packets again`() {
        var decoder = H4Decoder()
        let noise: [UInt8] = [0x77]
        let lost = decoder.bytesReceived(noise.span.bytes) { _, _ in }
        #expect(lost == .lost(.indicator(0x77)))
        decoder.restart()
        #expect(decoder.hasPartialPacket == false)
        var count = 0
        let good = packets[0]
        let synchrony = decoder.bytesReceived(good.span.bytes) { _, _ in count += 1 }
        #expect(synchrony == .kept)
        #expect(count == 1)
    }

    @Test func `a recording of both directions comes out as it went in`() throws {
        let transcript = try Transcript("acl_27x2_fragments")
        let stream = transcript.records.flatMap { [$0.kind.rawValue] + $0.packet }
        var decoder = H4Decoder(.init(accepted: Set(HCIPacketKind.allCases)))
        var found: [[UInt8]] = []
        var random = SplitMix(state: 7)
        var rest = stream[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(Int.random(in: 0...70, using: &random)))
            rest = rest.dropFirst(piece.count)
            let synchrony = decoder.bytesReceived(piece.span.bytes) { _, packet in
                packet.withUnsafeBytes { found.append(Array($0)) }
            }
            #expect(synchrony == .kept)
        }
        #expect(found == transcript.records.map(\.packet))
    }
}
