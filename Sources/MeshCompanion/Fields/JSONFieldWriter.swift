// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI
internal import MeshWire

/// Writes the fields of a record as JSON members.
struct JSONFieldWriter: FieldVisitor {
    typealias Failure = FieldError

    private let showsSecrets: Bool
    private(set) var members: [String: JSONValue] = [:]

    private init(showsSecrets: Bool) {
        self.showsSecrets = showsSecrets
    }

    /// The members of `record`. Keys, PINs and passwords are left out unless asked for. A value that no layout has is
    /// told up to the field that breaks it, and `error` says which.
    static func members<Record: FieldRecord>(of record: Record, showsSecrets: Bool) -> [String: JSONValue] {
        var writer = JSONFieldWriter(showsSecrets: showsSecrets)
        var copy = record
        do throws(FieldError) {
            try copy.visit(&writer)
        } catch {
            writer.members["error"] = .string("\(error)")
        }
        return writer.members
    }

    /// The members of the record that some bytes are, or why they are none.
    static func json<Record: FieldRecord>(decoding bytes: Data, as prototype: Record) -> JSONValue {
        do throws(DecodeError) {
            return .object(members(of: try WireFieldReader.decode(bytes, as: prototype), showsSecrets: false))
        } catch {
            return ["error": .string("\(error)")]
        }
    }

    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(
        _ name: String, _ value: inout Value, secret: Bool
    ) {
        if secret && !showsSecrets { return }
        members[name] = .int(Int64(clamping: value))
    }

    mutating func scaled<Value: FixedWidthInteger & BitwiseCopyable>(
        _ name: String, _ value: inout Value, scale: Double
    ) {
        members[name] = .double(Double(value) / scale)
    }

    mutating func flag(_ name: String, _ value: inout Bool) {
        members[name] = .bool(value)
    }

    mutating func bytes(_ name: String, _ value: inout Data, count: Int?, minimum: Int, secret: Bool) {
        if secret && !showsSecrets { return }
        members[name] = .string(HexText.text(value))
    }

    mutating func text(_ name: String, _ value: inout String, limit: Int, secret: Bool) {
        if secret && !showsSecrets { return }
        members[name] = .string(value)
    }

    mutating func fixedText(_ name: String, _ value: inout String, length: Int) {
        members[name] = .string(value)
    }

    mutating func opaque(_ value: inout Data, count: Int) {}

    mutating func constant(_ name: String, _ bytes: StaticString, isReserved: Bool) {}

    mutating func begin(_ name: String, isSet: Bool) -> Bool { isSet }

    mutating func rows<Row: FieldRecord>(_ name: String, _ rows: inout [Row], prototype: Row, count: Int?) {
        members[name] = .array(rows.map { .object(Self.members(of: $0, showsSecrets: showsSecrets)) })
    }

    mutating func derived(_ name: String, _ value: @autoclosure () -> JSONValue?) {
        members[name] = value()
    }

    func invalid(_ name: String) -> FieldError { FieldError(name, .invalid) }
}
