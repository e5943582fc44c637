// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Bytes from hexadecimal digits; spaces are ignored.
func hex(_ digits: String) -> [UInt8] {
    let digits = digits.utf8.filter { $0 != UInt8(ascii: " ") }
    return stride(from: 0, to: digits.count, by: 2).map { start in
        UInt8(String(decoding: digits[start..<start + 2], as: UTF8.self), radix: 16)!
    }
}

/// A moment, in seconds from the start of a test.
func at(_ seconds: Double) -> Duration { .seconds(seconds) }
