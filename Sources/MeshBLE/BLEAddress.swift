// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshWire

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

    /// The 48 bits as people write them: the first pair of digits is the most significant byte.
    public var value: UInt64
    /// Nil where nobody has said it yet: such an address matches both kinds.
    public var kind: Kind?

    /// Takes the low 48 bits of `value`.
    public init(_ value: UInt64, _ kind: Kind? = nil) {
        self.value = value & 0xFFFF_FFFF_FFFF
        self.kind = kind
    }

    /// Reads `C0:11:22:33:44:55`, in any case, and `C0:11:22:33:44:55/random`. Nil for anything else.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let value = BluetoothAddressText.value(parts[0]) else { return nil }
        self.value = value
        if parts.count == 2 {
            guard let kind = Kind(rawValue: String(parts[1])) else { return nil }
            self.kind = kind
        }
    }

    /// Whether both can mean one device.
    public func matches(_ other: BLEAddress) -> Bool {
        value == other.value && (kind == nil || other.kind == nil || kind == other.kind)
    }

    /// Without the kind.
    public var text: String { BluetoothAddressText.text(value) }
}

extension BLEAddress: CustomStringConvertible {
    /// With the kind, if it is known.
    public var description: String { kind.map { "\(text)/\($0.rawValue)" } ?? text }
}
