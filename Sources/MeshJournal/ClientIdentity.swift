// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Who reads: what stays the same when a program comes back.
///
/// Its text form is `share/name@address#slot`, such as `home/mccli@192.168.1.20#0`. In each part `%`, `/`, `@`, `#`, spaces
/// and control characters are written as `%` and two hexadecimal digits, so that the form can be taken apart again,
/// whatever a client calls itself.
public struct ClientIdentity: Sendable, Hashable {
    /// The share that it came in by.
    public var share: String
    /// What it calls itself (APP_START).
    public var name: String
    /// Where it comes from, without a port.
    public var address: String
    /// Tells apart clients that are alike in all this and are there at the same time; the first is 0.
    public var slot: Int

    public init(share: String, name: String, address: String, slot: Int = 0) {
        self.share = share
        self.name = name
        self.address = address
        self.slot = slot
    }
}

extension ClientIdentity: LosslessStringConvertible {
    /// The text form.
    public var description: String {
        "\(Self.escaped(share))/\(Self.escaped(name))@\(Self.escaped(address))#\(slot)"
    }

    /// The identity with this text form; nil if it is none.
    public init?(_ description: String) {
        let marks: [UInt8] = [UInt8(ascii: "/"), UInt8(ascii: "@"), UInt8(ascii: "#")]
        var parts: [String] = []
        var rest = Array(description.utf8)[...]
        for mark in marks {
            guard let end = rest.firstIndex(of: mark), let part = Self.unescaped(rest[..<end]) else { return nil }
            parts.append(part)
            rest = rest[(end + 1)...]
        }
        guard let slot = Int(String(decoding: rest, as: UTF8.self)) else { return nil }
        self.init(share: parts[0], name: parts[1], address: parts[2], slot: slot)
        // One identity has one form: `#+1` and `%41` are none.
        guard self.description.utf8.elementsEqual(description.utf8) else { return nil }
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    private static func escaped(_ part: String) -> String {
        var bytes: [UInt8] = []
        for byte in part.utf8 {
            switch byte {
            case ...0x20, 0x7F, UInt8(ascii: "%"), UInt8(ascii: "/"), UInt8(ascii: "@"), UInt8(ascii: "#"):
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default:
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func unescaped(_ part: ArraySlice<UInt8>) -> String? {
        var bytes: [UInt8] = []
        var index = part.startIndex
        while index < part.endIndex {
            if part[index] == UInt8(ascii: "%") {
                guard index + 2 < part.endIndex, let high = digits.firstIndex(of: part[index + 1]),
                    let low = digits.firstIndex(of: part[index + 2])
                else { return nil }
                bytes.append(UInt8(high << 4 | low))
                index += 3
            } else {
                bytes.append(part[index])
                index += 1
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
