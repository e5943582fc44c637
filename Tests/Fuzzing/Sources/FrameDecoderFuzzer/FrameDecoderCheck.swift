// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// What must hold for any bytes. The first two choose how the rest is cut and what the decoder is set to.
enum FrameDecoderCheck {
    static func run(_ input: UnsafeRawBufferPointer) {
        guard input.count >= 2 else { return }
        let (settings, seed) = (input[0], input[1])
        let bytes = UnsafeRawBufferPointer(rebasing: input[2...])
        var configuration = CompanionFrameDecoder.Configuration(
            marker: settings & 1 == 0 ? .fromRadio : .fromClient,
            ceiling: [176, 512, 3, 65_535][Int(settings >> 1 & 3)])
        if settings & 8 != 0 { configuration.isPlausible = { CompanionLayout.isPlausible($0) } }

        let whole = Run(configuration, bytes, width: { bytes.count })
        let single = Run(configuration, bytes, width: { 1 })
        var state = UInt64(seed) &+ 1
        let cut = Run(configuration, bytes) {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % 60
        }
        precondition(single.frames == whole.frames, "byte by byte gives other frames")
        precondition(cut.frames == whole.frames, "cut otherwise gives other frames")
        precondition(single.counters == whole.counters && cut.counters == whole.counters, "other counts")
        let framed = whole.frames.reduce(0) { $0 + CompanionFraming.headerLength + $1.count }
        precondition(framed + Int(whole.counters.skippedBytes) == bytes.count, "bytes that are unaccounted for")
    }

    /// One decoder that got all bytes in inputs of some width, then its deadlines, then the end.
    private struct Run {
        var frames: [[UInt8]] = []
        var counters = CompanionFrameDecoder.Counters()

        init(
            _ configuration: CompanionFrameDecoder.Configuration, _ bytes: UnsafeRawBufferPointer, width: () -> Int
        ) {
            var decoder = CompanionFrameDecoder(configuration)
            var position = 0
            while position < bytes.count {
                let end = min(position + max(0, width()), bytes.count)
                decoder.bytesReceived(bytes.bytes.extracting(position..<end), now: .zero) { accept($0, configuration) }
                position = end
            }
            // Each deadline gives up at least a marker, so they end.
            var now = Duration.zero
            var left = bytes.count
            while let deadline = decoder.nextDeadline {
                precondition(left >= 0, "deadlines without progress")
                left -= 1
                now = max(now, deadline)
                decoder.deadlineReached(now: now) { accept($0, configuration) }
            }
            precondition(!decoder.hasPartialFrame)
            decoder.streamEnded()
            counters = decoder.counters
        }

        private mutating func accept(_ frame: RawSpan, _ configuration: CompanionFrameDecoder.Configuration) {
            precondition(frame.byteCount > 0 && frame.byteCount <= configuration.ceiling, "a frame beyond the limits")
            frame.withUnsafeBytes { frames.append(Array($0)) }
        }
    }
}
