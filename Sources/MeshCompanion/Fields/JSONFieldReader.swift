// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI

/// Reads the fields of a record from JSON members, and refuses members that the record does not have.
struct JSONFieldReader: FieldVisitor {
    typealias Failure = FieldError

    private let members: [String: JSONValue]
    private var known: Set<String>

    private init(_ members: [String: JSONValue], known: Set<String>) {
        self.members = members
        self.known = known
    }

    /// A record from an object's members, but for those that `known` has.
    static func record<Record: FieldRecord>(
        _ members: [String: JSONValue], as prototype: Record, known: Set<String> = []
    ) throws(FieldError) -> Record {
        var reader = JSONFieldReader(members, known: known)
        var record = prototype
        try record.visit(&reader)
        if let name = members.keys.filter({ !reader.known.contains($0) }).min() { throw FieldError(name, .unknown) }
        return record
    }

    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(
        _ name: String, _ value: inout Value, secret: Bool
    ) throws(FieldError) {
        guard let number = try member(name).intValue else { throw FieldError(name, .wrongType(expected: "an integer")) }
        value = try narrow(name, number)
    }

    mutating func scaled<Value: FixedWidthInteger & BitwiseCopyable>(
        _ name: String, _ value: inout Value, scale: Double
    ) throws(FieldError) {
        let number: Double
        switch try member(name) {
        case .int(let value): number = Double(value)
        case .double(let value): number = value
        default: throw FieldError(name, .wrongType(expected: "a number"))
        }
        guard let steps = Int64(exactly: (number * scale).rounded()) else { throw FieldError(name, .invalid) }
        value = try narrow(name, steps)
    }

    mutating func flag(_ name: String, _ value: inout Bool) throws(FieldError) {
        guard let flag = try member(name).boolValue else {
            throw FieldError(name, .wrongType(expected: "true or false"))
        }
        value = flag
    }

    mutating func bytes(
        _ name: String, _ value: inout Data, count: Int?, minimum: Int, secret: Bool
    ) throws(FieldError) {
        guard let data = HexText.bytes(try string(name)) else {
            throw FieldError(name, .wrongType(expected: "an even number of hexadecimal digits"))
        }
        if let count, data.count != count { throw FieldError(name, .wrongLength(expected: count)) }
        if data.count < minimum { throw FieldError(name, .tooShort(minimum: minimum)) }
        value = data
    }

    mutating func text(_ name: String, _ value: inout String, limit: Int, secret: Bool) throws(FieldError) {
        value = try string(name)
    }

    mutating func fixedText(_ name: String, _ value: inout String, length: Int) throws(FieldError) {
        value = try string(name)
    }

    mutating func opaque(_ value: inout Data, count: Int) {}

    mutating func constant(_ name: String, _ bytes: StaticString, isReserved: Bool) {}

    mutating func begin(_ name: String, isSet: Bool) -> Bool {
        known.insert(name)
        return members[name].map { $0 != .null } ?? false
    }

    mutating func rows<Row: FieldRecord>(
        _ name: String, _ rows: inout [Row], prototype: Row, count: Int?
    ) throws(FieldError) {
        guard let array = try member(name).arrayValue else { throw FieldError(name, .wrongType(expected: "an array")) }
        rows = []
        for element in array {
            guard let object = element.objectValue else {
                throw FieldError(name, .wrongType(expected: "an array of objects"))
            }
            rows.append(try Self.record(object, as: prototype))
        }
    }

    /// What is told for people may come back with the rest, and is not read.
    mutating func derived(_ name: String, _ value: @autoclosure () -> JSONValue?) {
        known.insert(name)
    }

    func invalid(_ name: String) -> FieldError { FieldError(name, .invalid) }

    private mutating func member(_ name: String) throws(FieldError) -> JSONValue {
        known.insert(name)
        guard let value = members[name] else { throw FieldError(name, .missing) }
        return value
    }

    private mutating func string(_ name: String) throws(FieldError) -> String {
        guard let text = try member(name).stringValue else { throw FieldError(name, .wrongType(expected: "a string")) }
        return text
    }

    private func narrow<Value: FixedWidthInteger>(_ name: String, _ number: Int64) throws(FieldError) -> Value {
        guard let value = Value(exactly: number) else {
            throw FieldError(name, .outOfRange(Int64(Value.min)...Int64(clamping: Value.max)))
        }
        return value
    }
}
