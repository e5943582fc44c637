// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI
internal import MeshWire

/// Reads the fields of a record from bytes. Bytes after the last field are passed over: a newer firmware may add some.
struct WireFieldReader: FieldVisitor, ~Copyable {
    typealias Failure = DecodeError

    private var reader: ByteReader
    private var fieldStart = 0

    private init(_ bytes: UnsafeRawBufferPointer) {
        reader = ByteReader(bytes)
    }

    /// Decodes one value from all of `data`.
    static func decode<Value>(
        _ data: Data, _ body: (inout WireFieldReader) throws(DecodeError) -> Value
    ) throws(DecodeError) -> Value {
        let bytes = [UInt8](data)
        return try bytes.span.bytes.withUnsafeBytes { (buffer) throws(DecodeError) in
            var reader = WireFieldReader(buffer)
            return try body(&reader)
        }
    }

    /// Decodes a record from all of `data`.
    static func decode<Record: FieldRecord>(_ data: Data, as prototype: Record) throws(DecodeError) -> Record {
        try decode(data) { reader throws(DecodeError) in
            var record = prototype
            try record.visit(&reader)
            return record
        }
    }

    /// How many bytes are left.
    var remaining: Int { reader.remaining }

    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(
        _ name: String, _ value: inout Value, secret: Bool
    ) throws(DecodeError) {
        fieldStart = reader.offset
        value = try reader.read(Value.self)
    }

    mutating func scaled<Value: FixedWidthInteger & BitwiseCopyable>(
        _ name: String, _ value: inout Value, scale: Double
    ) throws(DecodeError) {
        try integer(name, &value, secret: false)
    }

    mutating func flag(_ name: String, _ value: inout Bool) throws(DecodeError) {
        var byte: UInt8 = 0
        try integer(name, &byte, secret: false)
        value = byte != 0
    }

    mutating func bytes(
        _ name: String, _ value: inout Data, count: Int?, minimum: Int, secret: Bool
    ) throws(DecodeError) {
        fieldStart = reader.offset
        value = Data(try reader.readBuffer(count ?? max(reader.remaining, minimum)))
    }

    mutating func text(_ name: String, _ value: inout String, limit: Int, secret: Bool) throws(DecodeError) {
        fieldStart = reader.offset
        value = reader.readText()
    }

    mutating func fixedText(_ name: String, _ value: inout String, length: Int) throws(DecodeError) {
        fieldStart = reader.offset
        value = try reader.readFixedText(length)
    }

    mutating func opaque(_ value: inout Data, count: Int) throws(DecodeError) {
        value = Data(try reader.readBuffer(count))
    }

    mutating func constant(_ name: String, _ bytes: StaticString, isReserved: Bool) throws(DecodeError) {
        fieldStart = reader.offset
        let found = try reader.readBuffer(bytes.utf8CodeUnitCount)
        let isSame = bytes.withUTF8Buffer { $0.elementsEqual(found) }
        if !isReserved && !isSame { throw invalid(name) }
    }

    mutating func begin(_ name: String, isSet: Bool) -> Bool { reader.remaining > 0 }

    mutating func rows<Row: FieldRecord>(
        _ name: String, _ rows: inout [Row], prototype: Row, count: Int?
    ) throws(DecodeError) {
        rows = []
        while count.map({ rows.count < $0 }) ?? (reader.remaining > 0) {
            var row = prototype
            try row.visit(&self)
            rows.append(row)
        }
    }

    mutating func derived(_ name: String, _ value: @autoclosure () -> JSONValue?) {}

    func invalid(_ name: String) -> DecodeError { DecodeError(.invalidField(name), offset: fieldStart) }
}
