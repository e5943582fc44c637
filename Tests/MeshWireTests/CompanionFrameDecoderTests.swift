// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport
import MeshWire
import Testing

/// F1–F6 are the rows of companion-protocol §3.1; their source MC1 is the test suite of MeshCore One.
struct CompanionFrameDecoderTests {
    private func radioFrame(_ payload: [UInt8]) -> [UInt8] {
        [0x3E, UInt8(payload.count & 0xFF), UInt8(payload.count >> 8)] + payload
    }

    private func verifier(_ configuration: CompanionFrameDecoder.Configuration) -> StreamVerifier {
        StreamVerifier(
            makeDecoder: {
                let sink = FrameSink(configuration)
                return { sink.receive($0) }
            },
            encode: { [configuration.marker.rawValue, UInt8($0.count & 0xFF), UInt8($0.count >> 8)] + $0 },
            garbage: Array("boot: rst:0x1 (POWERON)\r\n\0".utf8),
            oversizedHeader: [configuration.marker.rawValue, 0xFF, 0xFF])
    }

    @Test func `frames survive every way of cutting the stream`() {
        let payloads: [[UInt8]] = [[1], [0x3E], [1, 2, 3], Array(repeating: 0x3E, count: 40), Array(0...172)]
        verifier(.init(marker: .fromRadio)).verify(payloads)
        verifier(.init(marker: .fromClient)).verify(payloads)
        verifier(.init(marker: .fromRadio, ceiling: 512)).verify(payloads + [Array(repeating: 7, count: 509)])
    }

    @Test func `F3 one frame`() {
        #expect(FrameSink().receive(hex("3e0300010203")) == [[1, 2, 3]])
    }

    @Test func `F4 two frames in one input`() {
        #expect(FrameSink().receive(hex("3e0200aabb 3e0100cc")) == [[0xAA, 0xBB], [0xCC]])
    }

    @Test func `F5 a frame in three inputs`() {
        let sink = FrameSink()
        #expect(sink.receive(hex("3e0500")) == [])
        #expect(sink.receive(hex("0102")) == [])
        #expect(sink.receive(hex("030405")) == [[1, 2, 3, 4, 5]])
    }

    @Test func `F6 a frame cut inside its header`() {
        let sink = FrameSink()
        #expect(sink.receive(hex("3e")) == [])
        #expect(sink.receive(hex("0300aa")) == [])
        #expect(sink.receive(hex("bbcc")) == [[0xAA, 0xBB, 0xCC]])
    }

    @Test func `an empty frame is skipped and counted`() {
        let sink = FrameSink()
        #expect(sink.receive(hex("3e0000 3e0100aa")) == [[0xAA]])
        #expect(sink.counters == .init(frames: 1, skippedBytes: 3, badFrames: 1))
    }

    @Test func `the ceiling itself is accepted, one more is not`() {
        let payload = [UInt8](repeating: 0, count: 176)
        #expect(FrameSink().receive(radioFrame(payload)) == [payload])
        let sink = FrameSink()
        #expect(sink.receive(radioFrame(payload + [0])) == [])
        #expect(sink.counters == .init(frames: 0, skippedBytes: 180, badFrames: 1))
    }

    @Test func `the other direction's marker is noise`() {
        let sink = FrameSink()
        #expect(sink.receive(hex("3c0100aa")) == [])
        #expect(sink.counters.skippedBytes == 4)
        #expect(sink.counters.badFrames == 0)
    }

    @Test func `a frame spliced into another is found when the layout check refuses the outer one`() {
        // OffbandMesh#718: a short USB write, then the next frame's header and payload.
        let configuration = CompanionFrameDecoder.Configuration(
            marker: .fromRadio, isPlausible: { $0.unsafeLoad(fromByteOffset: 0, as: UInt8.self) < 0x80 })
        let stream = hex("3e0600 ff01 3e0200 0a0b 3e0100 05")
        for offset in 0...stream.count {
            let sink = FrameSink(configuration)
            sink.receive(Array(stream[..<offset]))
            sink.receive(Array(stream[offset...]))
            #expect(sink.frames == [[0x0A, 0x0B], [5]], "split at \(offset)")
            #expect(sink.counters == .init(frames: 2, skippedBytes: 5, badFrames: 1))
        }
    }

    @Test func `a frame short of one byte costs itself and not the frame behind it`() {
        let sink = FrameSink()
        sink.receive(hex("3e0400 010203"), now: .seconds(10))
        #expect(sink.nextDeadline == .seconds(12))
        #expect(sink.receive(hex("3e0200 aabb"), now: .seconds(13)) == [[1, 2, 3, 0x3E]])
        #expect(sink.receive(hex("3e0200 ccdd"), now: .seconds(14)) == [[0xCC, 0xDD]])

        let timely = FrameSink()
        timely.receive(hex("3e0400 010203"), now: .seconds(10))
        #expect(timely.deadline(now: .seconds(11)) == [])
        #expect(timely.hasPartialFrame)
        #expect(timely.deadline(now: .seconds(12)) == [])
        #expect(timely.nextDeadline == nil)
        #expect(timely.receive(hex("3e0200 aabb"), now: .seconds(13)) == [[0xAA, 0xBB]])
        #expect(timely.counters == .init(frames: 1, skippedBytes: 6, badFrames: 1))
    }

    @Test func `the deadline sets free the frames inside a stale one`() {
        let sink = FrameSink()
        sink.receive(hex("3ea000 01 3e0200aabb 3e0300cc"), now: .zero)
        #expect(sink.deadline(now: .seconds(2)) == [[0xAA, 0xBB]])
        #expect(sink.nextDeadline == .seconds(4))
        #expect(sink.receive(hex("ddee"), now: .seconds(3)) == [[0xCC, 0xDD, 0xEE]])
        #expect(sink.deadline(now: .seconds(9)) == [])
    }

    @Test func `the deadline counts from the first byte of the partial frame`() {
        let sink = FrameSink()
        sink.receive(hex("3e0400 01"), now: .seconds(1))
        sink.receive(hex("02"), now: .seconds(2))
        #expect(sink.nextDeadline == .seconds(3))
        sink.receive(hex("0304 3e"), now: .seconds(2.5))
        #expect(sink.nextDeadline == .seconds(4.5))
    }

    @Test func `time in which nothing was read does not count`() {
        let sink = FrameSink()
        sink.receive(hex("3e0400 01"), now: .seconds(1))
        sink.resume(now: .seconds(9))
        #expect(sink.nextDeadline == .seconds(11))
        #expect(sink.deadline(now: .seconds(10)) == [])
        #expect(sink.receive(hex("020304"), now: .seconds(10)) == [[1, 2, 3, 4]])
    }

    @Test func `the end of the stream counts what was left`() {
        let sink = FrameSink()
        sink.receive(hex("3e0400 01"))
        sink.end()
        sink.end()
        #expect(sink.counters == .init(frames: 0, skippedBytes: 4, badFrames: 1))
        #expect(sink.receive(hex("3e0100 02")) == [[2]])
    }

    @Test func `any bytes give the same frames however they are cut, and every byte is accounted for`() {
        var random = SplitMix(state: 20_260_814)
        for round in 0..<2_000 {
            // Few values, so that markers and small lengths are common.
            let alphabet: [UInt8] = [0x3E, 0, 1, 2, 3, 5, 0x3E, 0xFF]
            let bytes = (0..<Int.random(in: 0...120, using: &random)).map { _ in
                alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
            }
            var configuration = CompanionFrameDecoder.Configuration(marker: .fromRadio, ceiling: 20)
            if round % 2 == 1 {
                configuration.isPlausible = { $0.unsafeLoad(fromByteOffset: 0, as: UInt8.self) != 3 }
            }
            let whole = FrameSink(configuration)
            whole.receive(bytes)
            let cut = FrameSink(configuration)
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = Int.random(in: 0...rest.count, using: &random)
                cut.receive(Array(rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
            #expect(cut.frames == whole.frames, "round \(round): \(bytes)")
            whole.end()
            let framed = whole.frames.reduce(0) { $0 + 3 + $1.count }
            #expect(framed + Int(whole.counters.skippedBytes) == bytes.count, "round \(round): \(bytes)")
        }
    }
}
