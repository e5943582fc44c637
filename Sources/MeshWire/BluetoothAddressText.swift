// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// How people write the 48 bits of a Bluetooth device address: `C0:11:22:33:44:55`, the most significant byte first.
public enum BluetoothAddressText {
    /// Reads six pairs of hexadecimal digits, in any case. Nil for anything else.
    public static func value(_ text: some StringProtocol) -> UInt64? {
        let pairs = text.split(separator: ":", omittingEmptySubsequences: false)
        guard pairs.count == 6, pairs.allSatisfy({ $0.utf8.count == 2 && $0.allSatisfy(\.isHexDigit) }) else {
            return nil
        }
        return UInt64(pairs.joined(), radix: 16)
    }

    /// The low 48 bits of `value`, in upper case.
    public static func text(_ value: UInt64) -> String {
        (0..<6).reversed().map { index in
            let digits = String(UInt8(truncatingIfNeeded: value >> (8 * index)), radix: 16, uppercase: true)
            return digits.utf8.count == 1 ? "0" + digits : digits
        }.joined(separator: ":")
    }
}
