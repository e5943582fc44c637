// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Whether bytes look like a frame that a companion radio sends: the cheap check behind the framing that tells a broken
/// frame from a whole one. It decodes nothing.
public enum CompanionLayout {
    /// Whether `payload` may be a whole frame from a radio.
    ///
    /// A frame shorter than its code's layout is broken. An unknown code, or more bytes than the layout has, is not
    /// reason enough: that may be a newer firmware or a fork. But a short write leaves the start of a frame whose stated
    /// length then takes in the next frame (companion-protocol §1.1, "corrupt streams"), so one that holds another is
    /// broken as well. Random bytes look like that in about one frame of a million.
    public static func isPlausible(_ payload: RawSpan) -> Bool {
        guard payload.byteCount > 0 else { return false }
        let code = payload.unsafeLoad(fromByteOffset: 0, as: UInt8.self)
        if let lengths = lengths(of: code), payload.byteCount < lengths.lowerBound { return false }
        return !holdsAnotherFrame(payload)
    }

    /// Whether another frame begins behind the first byte: a header with a code and a length of its layout, and more
    /// that speaks for it: the frame ends with the payload or before another marker, or, where its end is not there yet,
    /// its code has one length only.
    private static func holdsAnotherFrame(_ payload: RawSpan) -> Bool {
        let count = payload.byteCount
        let marker = CompanionFraming.Marker.fromRadio.rawValue
        var position = 1
        while position + CompanionFraming.headerLength < count {
            defer { position += 1 }
            guard payload.unsafeLoad(fromByteOffset: position, as: UInt8.self) == marker else { continue }
            let length = Int(
                UInt16(littleEndian: payload.unsafeLoadUnaligned(fromByteOffset: position + 1, as: UInt16.self)))
            let start = position + CompanionFraming.headerLength
            guard length <= CompanionFraming.maximumPayload,
                let lengths = lengths(of: payload.unsafeLoad(fromByteOffset: start, as: UInt8.self)),
                lengths.contains(length)
            else { continue }
            let end = start + length
            let isLikely =
                if end < count {
                    payload.unsafeLoad(fromByteOffset: end, as: UInt8.self) == marker
                } else {
                    end == count || lengths.lowerBound == lengths.upperBound
                }
            if isLikely { return true }
        }
        return false
    }

    /// The lengths a layout has, code included, in bytes: companion-protocol §1.6 (responses) and §1.7 (pushes), older
    /// forms too. Nil for codes that are not there.
    private static func lengths(of code: UInt8) -> ClosedRange<Int>? {
        switch code {
        case 0x00: 1...5
        case 0x01: 1...2
        case 0x0A, 0x0F, 0x83, 0x90: 1...1
        case 0x19: 2...3
        case 0x02, 0x04, 0x09: 5...5
        case 0x82: 5...9
        case 0x13: 6...6
        case 0x86: 8...8
        case 0x85: 8...14
        case 0x17: 9...9
        case 0x06: 10...10
        case 0x0C: 3...11
        case 0x18: 11...30
        case 0x80, 0x81, 0x8F: 33...33
        case 0x12: 50...50
        case 0x0E, 0x14: 65...65
        case 0x0D: 2...82
        case 0x03, 0x8A: 148...148
        case 0x0B, 0x15, 0x1A, 0x1C, 0x1D: 1...CompanionFraming.largestCeiling
        case 0x88: 3...CompanionFraming.largestCeiling
        case 0x84, 0x8E: 4...CompanionFraming.largestCeiling
        case 0x16, 0x8C: 6...CompanionFraming.largestCeiling
        case 0x08, 0x87, 0x8B: 8...CompanionFraming.largestCeiling
        case 0x1B, 0x8D: 9...CompanionFraming.largestCeiling
        case 0x11: 11...CompanionFraming.largestCeiling
        case 0x89: 12...CompanionFraming.largestCeiling
        case 0x07: 13...CompanionFraming.largestCeiling
        case 0x10: 16...CompanionFraming.largestCeiling
        case 0x05: 58...CompanionFraming.largestCeiling
        default: nil
        }
    }
}
