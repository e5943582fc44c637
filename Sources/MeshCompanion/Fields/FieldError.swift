// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Why a value cannot be written as bytes, or read from JSON.
public struct FieldError: Error, Sendable, Hashable {
    /// What is wrong with the field.
    public enum Reason: Sendable, Hashable {
        /// It is not there.
        case missing
        /// There is no such field.
        case unknown
        /// It is of another JSON type than this.
        case wrongType(expected: String)
        /// A number beyond what its bytes hold.
        case outOfRange(ClosedRange<Int64>)
        /// More bytes than its layout has room for.
        case tooLong(limit: Int)
        /// Fewer bytes than its layout asks for.
        case tooShort(minimum: Int)
        /// Not the one number of bytes that its layout has.
        case wrongLength(expected: Int)
        /// Text with a NUL, which would end it early.
        case holdsNUL
        /// A field before it is absent, so it would be read as that one.
        case afterAbsentField
        /// What its layout does not allow.
        case invalid
    }

    /// The field, by its name in JSON; `frame` for the whole.
    public var field: String
    public var reason: Reason

    public init(_ field: String, _ reason: Reason) {
        self.field = field
        self.reason = reason
    }
}

extension FieldError: CustomStringConvertible {
    /// Such as `node_name: more than 31 bytes`.
    public var description: String {
        let text =
            switch reason {
            case .missing: "missing"
            case .unknown: "no such field"
            case .wrongType(let expected): "not \(expected)"
            case .outOfRange(let range): "not between \(range.lowerBound) and \(range.upperBound)"
            case .tooLong(let limit): "more than \(limit) bytes"
            case .tooShort(let minimum): "less than \(minimum) bytes"
            case .wrongLength(let expected): "not \(expected) bytes"
            case .holdsNUL: "holds a NUL"
            case .afterAbsentField: "present while a field before it is absent"
            case .invalid: "not allowed here"
            }
        return "\(field): \(text)"
    }
}
