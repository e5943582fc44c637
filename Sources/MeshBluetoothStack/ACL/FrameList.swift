// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Frames that wait, of which the first may have been sent in part.
struct FrameList: Sendable {
    private var frames: [[UInt8]] = []
    /// The first frame that waits; those before it are gone. They are removed now and then, not one by one.
    private var first = 0
    /// How much of it is gone.
    private var offset = 0
    /// How many bytes wait.
    private(set) var byteCount = 0

    var isEmpty: Bool { first == frames.count }
    /// How many frames wait, with one that was sent in part.
    var count: Int { frames.count - first }

    /// Adds a frame; one without bytes is not sent at all.
    mutating func append(_ frame: [UInt8]) {
        if frame.isEmpty { return }
        frames.append(frame)
        byteCount += frame.count
    }

    /// Takes the next piece of the first frame.
    mutating func takePiece(upTo limit: Int) -> (bytes: [UInt8], isFirst: Bool) {
        let frame = frames[first]
        let end = min(frame.count, offset + limit)
        let piece = (bytes: Array(frame[offset..<end]), isFirst: offset == 0)
        byteCount -= end - offset
        offset = end
        if end == frame.count { dropFirst() }
        return piece
    }

    private mutating func dropFirst() {
        frames[first] = []
        first += 1
        offset = 0
        if first == frames.count {
            frames.removeAll(keepingCapacity: true)
            first = 0
        } else if first >= 64, first * 2 >= frames.count {
            frames.removeFirst(first)
            first = 0
        }
    }
}
