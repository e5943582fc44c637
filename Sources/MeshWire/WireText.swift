// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// UTF-8 as it is found in fields of limited length.
public enum WireText {
    /// The text of `bytes`. A character that the end cuts is dropped; other bytes that are no UTF-8 become U+FFFD.
    public static func decode(_ bytes: UnsafeRawBufferPointer) -> String {
        String(decoding: bytes.dropLast(cutTail(bytes)), as: UTF8.self)
    }

    /// As much of the start of `text` as `limit` bytes hold without cutting a code point.
    public static func prefix(of text: String, bytes limit: Int) -> String {
        if text.utf8.count <= limit { return text }
        var used = 0
        var scalars = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            used += UTF8.width(scalar)
            if used > limit { break }
            scalars.append(scalar)
        }
        return String(scalars)
    }

    /// How many bytes at the end begin a character and do not finish it.
    private static func cutTail(_ bytes: UnsafeRawBufferPointer) -> Int {
        // A character has at most 4 bytes (RFC 3629 §3), so at most 3 of a cut one are there.
        for length in 1...3 where length <= bytes.count {
            let byte = bytes[bytes.count - length]
            if byte & 0b1100_0000 == 0b1000_0000 { continue }
            let expected =
                switch byte {
                case 0xC2...0xDF: 2
                case 0xE0...0xEF: 3
                case 0xF0...0xF4: 4
                default: 1
                }
            return expected > length ? length : 0
        }
        return 0
    }
}
