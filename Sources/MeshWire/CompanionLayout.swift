// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Whether bytes look like a frame that a companion radio sends: the cheap check behind the framing that tells a broken
/// frame from a whole one. It decodes nothing.
public enum CompanionLayout {
    /// Whether `payload` may be a whole frame from a radio.
    ///
    /// A frame shorter than its code's layout is broken. An unknown code, or more bytes than the layout has, is not reason
    /// enough: that may be a newer firmware or a fork. Nor is a payload that holds what looks like another frame: texts and
    /// packets come from the air, and whoever puts a framed reply into one must not have it taken for the radio's own.
    public static func isPlausible(_ payload: RawSpan) -> Bool {
        guard payload.byteCount > 0 else { return false }
        let code = payload.unsafeLoad(fromByteOffset: 0, as: UInt8.self)
        return payload.byteCount >= shortest(of: code)
    }

    /// The fewest bytes a layout has, code included: companion-protocol §1.6 (responses) and §1.7 (pushes), older forms
    /// too. 1 for codes that are not there.
    private static func shortest(of code: UInt8) -> Int {
        switch code {
        case 0x0D, 0x19: 2
        case 0x0C, 0x88: 3
        case 0x84, 0x8E: 4
        case 0x02, 0x04, 0x09, 0x82: 5
        case 0x13, 0x16, 0x8C: 6
        case 0x08, 0x85, 0x86, 0x87, 0x8B: 8
        case 0x17, 0x1B, 0x8D: 9
        case 0x06: 10
        case 0x11, 0x18: 11
        case 0x89: 12
        case 0x07: 13
        case 0x10: 16
        case 0x80, 0x81, 0x8F: 33
        case 0x12: 50
        case 0x05: 58
        case 0x0E, 0x14: 65
        case 0x03, 0x8A: 148
        default: 1
        }
    }
}
