// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI
internal import MeshWire

/// Writes the fields of a record as bytes, and refuses what the layout cannot hold rather than cut it.
struct WireFieldWriter: FieldVisitor {
    typealias Failure = FieldError

    private var writer = ByteWriter(capacity: CompanionFraming.maximumPayload)
    private var lacksField = false

    /// The bytes of `record` after those of `start`.
    static func encode<Record: FieldRecord>(_ record: Record, after start: [UInt8] = []) throws(FieldError) -> Data {
        var writer = WireFieldWriter()
        writer.writer.write(contentsOf: start)
        var copy = record
        try copy.visit(&writer)
        return Data(writer.writer.bytes)
    }

    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(
        _ name: String, _ value: inout Value, secret: Bool
    ) throws(FieldError) {
        try requirePlace(name)
        var bits = value.littleEndian
        withUnsafeBytes(of: &bits) { writer.write(contentsOf: $0) }
    }

    mutating func scaled<Value: FixedWidthInteger & BitwiseCopyable>(
        _ name: String, _ value: inout Value, scale: Double
    ) throws(FieldError) {
        try integer(name, &value, secret: false)
    }

    mutating func flag(_ name: String, _ value: inout Bool) throws(FieldError) {
        try requirePlace(name)
        writer.write(value ? 1 as UInt8 : 0)
    }

    mutating func bytes(
        _ name: String, _ value: inout Data, count: Int?, minimum: Int, secret: Bool
    ) throws(FieldError) {
        try requirePlace(name)
        if let count, value.count != count { throw FieldError(name, .wrongLength(expected: count)) }
        if value.count < minimum { throw FieldError(name, .tooShort(minimum: minimum)) }
        writer.write(contentsOf: value)
    }

    mutating func text(_ name: String, _ value: inout String, limit: Int, secret: Bool) throws(FieldError) {
        try requirePlace(name)
        try check(name, value, limit: limit)
        writer.writeText(value)
    }

    mutating func fixedText(_ name: String, _ value: inout String, length: Int) throws(FieldError) {
        try requirePlace(name)
        try check(name, value, limit: length - 1)
        writer.writeFixedText(value, length: length)
    }

    mutating func opaque(_ value: inout Data, count: Int) throws(FieldError) {
        try bytes("reserved", &value, count: count, minimum: count, secret: false)
    }

    mutating func constant(_ name: String, _ bytes: StaticString, isReserved: Bool) throws(FieldError) {
        bytes.withUTF8Buffer { writer.write(contentsOf: $0) }
    }

    mutating func begin(_ name: String, isSet: Bool) -> Bool {
        lacksField = lacksField || !isSet
        return isSet
    }

    mutating func rows<Row: FieldRecord>(
        _ name: String, _ rows: inout [Row], prototype: Row, count: Int?
    ) throws(FieldError) {
        for index in rows.indices { try rows[index].visit(&self) }
    }

    mutating func derived(_ name: String, _ value: @autoclosure () -> JSONValue?) {}

    func invalid(_ name: String) -> FieldError { FieldError(name, .invalid) }

    private func requirePlace(_ name: String) throws(FieldError) {
        if lacksField { throw FieldError(name, .afterAbsentField) }
    }

    private func check(_ name: String, _ text: String, limit: Int) throws(FieldError) {
        if text.utf8.count > limit { throw FieldError(name, .tooLong(limit: limit)) }
        if text.utf8.contains(0) { throw FieldError(name, .holdsNUL) }
    }
}
