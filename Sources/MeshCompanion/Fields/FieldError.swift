// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshTransportAPI

/// Why a value cannot be written as bytes, or read from JSON. Equal to another by field and reason.
public struct FieldError: Error, Sendable {
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
    /// What to try, for people.
    public var advice: String?
    /// The range in the unit of the JSON, where that is not the one of the bytes.
    private var range: ClosedRange<Double>?
    /// The row that it is in, such as `readings[2]`.
    private var row: String?

    public init(_ field: String, _ reason: Reason, advice: String? = nil) {
        self.field = field
        self.reason = reason
        self.advice = advice
    }

    /// A number beyond what its bytes hold, each a multiple of 1/`scale`.
    init(_ field: String, outOf range: ClosedRange<Int64>, scale: Double) {
        self.init(field, .outOfRange(range))
        if scale != 1 { self.range = Double(range.lowerBound) / scale...Double(range.upperBound) / scale }
    }

    /// A name that is none of these.
    init(_ field: String, _ name: String, noneOf known: [String], else advice: String) {
        let near = NearestName.of(name, among: known)
        self.init(
            field, .invalid, advice: "there is no \"\(name)\"; " + (near.map { "did you mean \"\($0)\"?" } ?? advice))
    }

    /// The same, told of a row of a list.
    func inRow(_ index: Int, of list: String) -> FieldError {
        var error = self
        error.row = "\(list)[\(index)]"
        return error
    }
}

extension FieldError: Hashable {
    public static func == (left: FieldError, right: FieldError) -> Bool {
        left.field == right.field && left.reason == right.reason
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(field)
        hasher.combine(reason)
    }
}

extension FieldError: CustomStringConvertible {
    /// Such as `node_name: more than 31 bytes`, or `channel: missing; write a whole number from 0 to 255`.
    public var description: String {
        let text =
            switch reason {
            case .missing: "missing"
            case .unknown: "no such field"
            case .wrongType(let expected): "not \(expected)"
            case .outOfRange(let bytes):
                range.map { "not between \($0.lowerBound) and \($0.upperBound)" }
                    ?? "not between \(bytes.lowerBound) and \(bytes.upperBound)"
            case .tooLong(let limit): "more than \(limit) bytes"
            case .tooShort(let minimum): "less than \(minimum) bytes"
            case .wrongLength(let expected): "not \(expected) bytes"
            case .holdsNUL: "holds a NUL"
            case .afterAbsentField: "present while a field before it is absent"
            case .invalid: "not allowed here"
            }
        return (row.map { "\($0).\(field)" } ?? field) + ": \(text)" + (advice.map { "; \($0)" } ?? "")
    }
}
