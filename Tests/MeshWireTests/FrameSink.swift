// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshWire

/// A decoder with the frames it has handed out.
final class FrameSink {
    private var decoder: CompanionFrameDecoder
    private(set) var frames: [[UInt8]] = []
    var counters: CompanionFrameDecoder.Counters { decoder.counters }
    var nextDeadline: Duration? { decoder.nextDeadline }
    var hasPartialFrame: Bool { decoder.hasPartialFrame }

    init(_ configuration: CompanionFrameDecoder.Configuration = .init(marker: .fromRadio)) {
        decoder = CompanionFrameDecoder(configuration)
    }

    /// Returns the frames these bytes complete.
    ///
    /// Not `Array(frames[before...])`: where its result is not used, the optimizer of Swift 6.3.1 removes that copy but not
    /// the release of its elements, and the frames are freed twice.
    @discardableResult
    func receive(_ bytes: [UInt8], now: Duration = .zero) -> [[UInt8]] {
        var completed: [[UInt8]] = []
        decoder.bytesReceived(bytes.span.bytes, now: now) { completed.append($0.copied) }
        frames += completed
        return completed
    }

    /// Returns the frames that come to light.
    @discardableResult
    func deadline(now: Duration) -> [[UInt8]] {
        var found: [[UInt8]] = []
        decoder.deadlineReached(now: now) { found.append($0.copied) }
        frames += found
        return found
    }

    func resume(now: Duration) { decoder.readingResumed(now: now) }

    func end() { decoder.streamEnded() }
}

extension RawSpan {
    var copied: [UInt8] { withUnsafeBytes { Array($0) } }
}

/// Bytes written as in the protocol reference: `3e 0300 010203`.
func hex(_ text: String) -> [UInt8] {
    let digits = text.filter { !$0.isWhitespace }.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}
