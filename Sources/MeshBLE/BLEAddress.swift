// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A Bluetooth device address and its kind: the same six bytes public and random are two devices (Core Specification,
/// Vol 6 Part B §1.3).
public struct BLEAddress: Sendable, Hashable {
    /// Where an address comes from.
    public enum Kind: String, Sendable, Hashable {
        /// Assigned by the IEEE.
        case `public`
        /// Made by the device.
        case random
    }

    /// Six bytes as people write them, the most significant first.
    public var bytes: [UInt8]
    /// Nil where nobody has said it yet: such an address matches both kinds.
    public var kind: Kind?

    /// Reads `C0:11:22:33:44:55`, in any case, and `C0:11:22:33:44:55/random`. Nil for anything else.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let pairs = parts[0].split(separator: ":", omittingEmptySubsequences: false)
        guard pairs.count == 6, pairs.allSatisfy({ $0.utf8.count == 2 && $0.allSatisfy(\.isHexDigit) }) else {
            return nil
        }
        let bytes = pairs.compactMap { UInt8($0, radix: 16) }
        guard bytes.count == 6 else { return nil }
        self.bytes = bytes
        if parts.count == 2 {
            guard let kind = Kind(rawValue: String(parts[1])) else { return nil }
            self.kind = kind
        }
    }

    /// Whether both can mean one device.
    public func matches(_ other: BLEAddress) -> Bool {
        bytes == other.bytes && (kind == nil || other.kind == nil || kind == other.kind)
    }

    /// Without the kind.
    public var text: String {
        bytes.map { byte in
            let hex = String(byte, radix: 16, uppercase: true)
            return hex.count == 1 ? "0" + hex : hex
        }.joined(separator: ":")
    }
}

extension BLEAddress: CustomStringConvertible {
    /// With the kind, if it is known.
    public var description: String { kind.map { "\(text)/\($0.rawValue)" } ?? text }
}
