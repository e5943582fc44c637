// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Finds the frames in a byte stream from a radio or a client, whatever else is in the stream.
///
///         bytes                      no marker: skip to the next
///           │                        length 0 or over the ceiling: skip the marker, look again
///     ┌─────▼─────┐  header whole    payload implausible: skip the marker, look again
///     │ searching ├──────────────▶ payload whole ──▶ frame out, search on behind it
///     └─────▲─────┘                  │ not yet
///           │ deadline: skip the     ▼
///           └─ stale marker ◀── partial frame kept, `nextDeadline` set
///
/// The frames depend on the bytes alone, not on how they were cut into inputs (deadlines aside). Skipping only the
/// marker of what turned out to be no frame, and looking again inside it, recovers a frame whose header a short write of
/// a USB stack put into another one (companion-protocol §1.1, "corrupt streams").
///
/// Whole frames are handed out in place; only a partial frame is copied, so a large input costs a look at each header.
/// Memory is bounded by two frames. The protocol leaves resynchronisation open and every peer does it differently; what
/// is done here is companion-protocol §1.1, last bullet.
public struct CompanionFrameDecoder: ~Copyable, Sendable {
    public struct Configuration: Sendable {
        /// The marker that frames begin with.
        public var marker: CompanionFraming.Marker
        /// The largest payload accepted, in bytes; forks have larger frames than ``CompanionFraming/maximumPayload``.
        public var ceiling: Int
        /// How long a partial frame may wait for its rest, so that a lost byte does not swallow the frames behind it.
        public var partialFrameTimeout: Duration
        /// Whether a payload fits a known layout: a pure function. Nil accepts everything.
        public var isPlausible: (@Sendable (RawSpan) -> Bool)?

        /// The defaults are those of companion-protocol §1.1.
        public init(
            marker: CompanionFraming.Marker, ceiling: Int = CompanionFraming.maximumPayload,
            partialFrameTimeout: Duration = .seconds(2), isPlausible: (@Sendable (RawSpan) -> Bool)? = nil
        ) {
            precondition((1...CompanionFraming.largestCeiling).contains(ceiling))
            self.marker = marker
            self.ceiling = ceiling
            self.partialFrameTimeout = partialFrameTimeout
            self.isPlausible = isPlausible
        }
    }

    /// What has passed since the decoder was made.
    public struct Counters: Sendable, Hashable {
        /// Frames handed out.
        public var frames: UInt64 = 0
        /// Bytes that belonged to no frame.
        public var skippedBytes: UInt64 = 0
        /// Markers that headed no frame: bad length, implausible payload, or the rest never came.
        public var badFrames: UInt64 = 0

        public init(frames: UInt64 = 0, skippedBytes: UInt64 = 0, badFrames: UInt64 = 0) {
            self.frames = frames
            self.skippedBytes = skippedBytes
            self.badFrames = badFrames
        }
    }

    /// What stands at one position of the stream.
    private enum Finding {
        /// A frame with this many payload bytes.
        case frame(length: Int)
        /// A marker that heads no frame.
        case falseMarker
        /// Bytes that hold no marker.
        case noise(count: Int)
        /// The start of a frame that needs this many bytes in all, as far as is known.
        case partial(total: Int)
    }

    public let configuration: Configuration
    public private(set) var counters = Counters()
    /// The start of a frame whose rest has not come, beginning with its marker; else empty.
    private var partial: [UInt8] = []
    private var partialSince = Duration.zero

    public init(_ configuration: Configuration) {
        self.configuration = configuration
    }

    /// Whether the start of a frame waits for its rest.
    public var hasPartialFrame: Bool { !partial.isEmpty }

    /// When ``deadlineReached(now:onFrame:)`` is due; nil without a partial frame.
    public var nextDeadline: Duration? {
        partial.isEmpty ? nil : partialSince + configuration.partialFrameTimeout
    }

    /// Takes the next bytes of the stream and hands out the payload of each frame they complete, in order. A payload is
    /// valid during the call of `onFrame` only. `now` is monotonic time.
    public mutating func bytesReceived(_ input: RawSpan, now: Duration, onFrame: (RawSpan) -> Void) {
        var position = partial.isEmpty ? 0 : finishPartial(from: 0, with: input, now: now, onFrame: onFrame)
        while position < input.byteCount {
            switch finding(in: input, at: position) {
            case .frame(let length):
                counters.frames += 1
                let start = position + CompanionFraming.headerLength
                onFrame(input.extracting(start..<start + length))
                position = start + length
            case .falseMarker: position += skipMarker()
            case .noise(let count): position += skip(count)
            case .partial:
                partialSince = now
                append(input.extracting(position...))
                return
            }
        }
    }

    /// Gives up a partial frame whose time is over and looks for frames behind its marker. Early calls change nothing.
    ///
    /// What is found then may again be partial; it gets its own full time.
    public mutating func deadlineReached(now: Duration, onFrame: (RawSpan) -> Void) {
        guard let nextDeadline, nextDeadline <= now else { return }
        let start = skipMarker()
        let nothing: [UInt8] = []
        _ = finishPartial(from: start, with: nothing.span.bytes, now: now, onFrame: onFrame)
    }

    /// Gives a partial frame its full time again: the stream was not read for a while, so its rest may have come.
    public mutating func readingResumed(now: Duration) {
        partialSince = now
    }

    /// Forgets the partial frame: the stream has ended. Its bytes count as skipped.
    public mutating func streamEnded() {
        if !partial.isEmpty { counters.badFrames += 1 }
        counters.skippedBytes += UInt64(partial.count)
        partial.removeAll(keepingCapacity: true)
    }

    /// Goes on at `start` of the partial frame, taking from `input` what it lacks. Returns where in `input` to go on;
    /// if a partial frame remains, that is its end.
    private mutating func finishPartial(
        from start: Int, with input: RawSpan, now: Duration, onFrame: (RawSpan) -> Void
    ) -> Int {
        let kept = partial.count
        var position = start
        var taken = 0
        while position < kept {
            switch finding(in: partial.span.bytes, at: position) {
            case .frame(let length):
                counters.frames += 1
                let start = position + CompanionFraming.headerLength
                onFrame(partial.span.bytes.extracting(start..<start + length))
                position = start + length
            case .falseMarker: position += skipMarker()
            case .noise(let count): position += skip(count)
            case .partial(let total):
                let missing = total - (partial.count - position)
                let more = min(missing, input.byteCount - taken)
                if more == 0 {
                    if position > 0 {
                        partial.removeFirst(position)
                        partialSince = now
                    }
                    return input.byteCount
                }
                append(input.extracting(taken..<taken + more))
                taken += more
            }
        }
        // The position is in the part copied from `input`, which is gone through in place from here on.
        partial.removeAll(keepingCapacity: true)
        return position - kept
    }

    @inline(__always)
    private func finding(in bytes: RawSpan, at position: Int) -> Finding {
        let available = bytes.byteCount - position
        let marker = configuration.marker.rawValue
        guard bytes.unsafeLoad(fromByteOffset: position, as: UInt8.self) == marker else {
            var end = position + 1
            while end < bytes.byteCount, bytes.unsafeLoad(fromByteOffset: end, as: UInt8.self) != marker { end += 1 }
            return .noise(count: end - position)
        }
        guard available >= CompanionFraming.headerLength else { return .partial(total: CompanionFraming.headerLength) }
        let length = Int(
            UInt16(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: position + 1, as: UInt16.self)))
        guard length > 0, length <= configuration.ceiling else { return .falseMarker }
        let total = CompanionFraming.headerLength + length
        guard available >= total else { return .partial(total: total) }
        if let isPlausible = configuration.isPlausible {
            let start = position + CompanionFraming.headerLength
            guard isPlausible(bytes.extracting(start..<start + length)) else { return .falseMarker }
        }
        return .frame(length: length)
    }

    private mutating func skip(_ count: Int) -> Int {
        counters.skippedBytes += UInt64(count)
        return count
    }

    private mutating func skipMarker() -> Int {
        counters.badFrames += 1
        return skip(1)
    }

    private mutating func append(_ bytes: RawSpan) {
        bytes.withUnsafeBytes { partial.append(contentsOf: $0) }
    }
}
