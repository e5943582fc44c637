// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Why bytes from a peer have no meaning, and where.
public struct DecodeError: Error, Sendable, Hashable {
    /// What is wrong with the bytes.
    public enum Reason: Sendable, Hashable {
        /// The bytes end before the value does.
        case truncated(missing: Int)
        /// Bytes follow where the layout has none.
        case trailing(count: Int)
        /// No layout has this code.
        case unknownCode(UInt8)
        /// A field holds what its layout does not allow. The name is the layout's, never text from the peer.
        case invalidField(String)
    }

    public var reason: Reason
    /// Where, in bytes from the start of what was decoded.
    public var offset: Int

    public init(_ reason: Reason, offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}

extension DecodeError: CustomStringConvertible {
    /// Such as `2 bytes missing at offset 7`.
    public var description: String {
        switch reason {
        case .truncated(let missing): "\(missing) bytes missing at offset \(offset)"
        case .trailing(let count): "\(count) bytes too many at offset \(offset)"
        case .unknownCode(let code): "unknown code 0x\(String(code, radix: 16)) at offset \(offset)"
        case .invalidField(let name): "invalid \(name) at offset \(offset)"
        }
    }
}
