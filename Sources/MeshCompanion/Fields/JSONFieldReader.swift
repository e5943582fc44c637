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
        if let name = members.keys.filter({ !reader.known.contains($0) }).min() {
            let fields = reader.known.subtracting(known).sorted()
            let near = NearestName.of(name, among: fields).map { "did you mean \"\($0)\"?" }
            throw FieldError(
                name, .unknown,
                advice: near ?? (fields.isEmpty ? "there are none" : "there are: \(fields.joined(separator: ", "))"))
        }
        return record
    }

    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(
        _ name: String, _ value: inout Value, secret: Bool
    ) throws(FieldError) {
        let (least, most) = (Int64(Value.min), Int64(clamping: Value.max))
        let advice = "write a whole number from \(least) to \(most)"
        guard let number = try member(name, advice).intValue else {
            throw FieldError(name, .wrongType(expected: "an integer"), advice: advice)
        }
        guard let number = Value(exactly: number) else { throw FieldError(name, .outOfRange(least...most)) }
        value = number
    }

    mutating func scaled<Value: FixedWidthInteger & BitwiseCopyable>(
        _ name: String, _ value: inout Value, scale: Double
    ) throws(FieldError) {
        let range = Int64(Value.min)...Int64(clamping: Value.max)
        let advice = "write a number from \(Double(range.lowerBound) / scale) to \(Double(range.upperBound) / scale)"
        let number: Double
        switch try member(name, advice) {
        case .int(let value): number = Double(value)
        case .double(let value): number = value
        default: throw FieldError(name, .wrongType(expected: "a number"), advice: advice)
        }
        guard let steps = Int64(exactly: (number * scale).rounded()) else {
            throw FieldError(name, .invalid, advice: advice)
        }
        guard let steps = Value(exactly: steps) else { throw FieldError(name, outOf: range, scale: scale) }
        value = steps
    }

    mutating func flag(_ name: String, _ value: inout Bool) throws(FieldError) {
        guard let flag = try member(name, "write true or false").boolValue else {
            throw FieldError(name, .wrongType(expected: "true or false"))
        }
        value = flag
    }

    mutating func bytes(
        _ name: String, _ value: inout Data, count: Int?, minimum: Int, secret: Bool
    ) throws(FieldError) {
        let advice =
            count.map { "write \(2 * $0) hexadecimal digits in quotes" }
            ?? "write two hexadecimal digits for each byte, in quotes"
        guard let data = HexText.bytes(try string(name, advice)) else {
            throw FieldError(name, .wrongType(expected: "an even number of hexadecimal digits"))
        }
        if let count, data.count != count { throw FieldError(name, .wrongLength(expected: count), advice: advice) }
        if data.count < minimum { throw FieldError(name, .tooShort(minimum: minimum)) }
        value = data
    }

    mutating func text(_ name: String, _ value: inout String, limit: Int, secret: Bool) throws(FieldError) {
        value = try string(name, limit == .max ? "write a text in quotes" : "write a text of up to \(limit) bytes")
    }

    mutating func fixedText(_ name: String, _ value: inout String, length: Int) throws(FieldError) {
        value = try string(name, "write a text of up to \(length - 1) bytes")
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
        guard let array = try member(name, "write an array of objects").arrayValue else {
            throw FieldError(name, .wrongType(expected: "an array"))
        }
        rows = []
        for (index, element) in array.enumerated() {
            guard let object = element.objectValue else {
                throw FieldError(name, .wrongType(expected: "an array of objects"))
            }
            do throws(FieldError) {
                rows.append(try Self.record(object, as: prototype))
            } catch {
                throw error.inRow(index, of: name)
            }
        }
    }

    /// What is told for people may come back with the rest, and is not read.
    mutating func derived(_ name: String, _ value: @autoclosure () -> JSONValue?) {
        known.insert(name)
    }

    func invalid(_ name: String) -> FieldError { FieldError(name, .invalid) }

    /// The value of a field; `advice` says what to write if there is none. A member that looks like it is told first.
    private mutating func member(_ name: String, _ advice: String) throws(FieldError) -> JSONValue {
        known.insert(name)
        if let value = members[name] { return value }
        let near = NearestName.of(name, among: members.keys.filter { !known.contains($0) }.sorted())
        throw FieldError(name, .missing, advice: near.map { "there is \"\($0)\" instead" } ?? advice)
    }

    private mutating func string(_ name: String, _ advice: String) throws(FieldError) -> String {
        guard let text = try member(name, advice).stringValue else {
            throw FieldError(name, .wrongType(expected: "a string"), advice: advice)
        }
        return text
    }
}
