// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import FoundationEssentials
internal import MeshTransportAPI

/// A value whose layout is told once, field by field, and so is read and written the same way as bytes and as JSON.
protocol FieldRecord {
    /// Shows every field to the visitor, in the order of the layout.
    mutating func visit<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws(Visitor.Failure)
}

/// What goes through the fields of a ``FieldRecord``: a reader replaces their values, a writer takes them.
///
/// Names are those of the JSON members. Numbers are little-endian (companion-protocol, introduction).
protocol FieldVisitor: ~Copyable {
    associatedtype Failure: Error

    /// A whole number. A secret one is shown in JSON on demand only.
    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(
        _ name: String, _ value: inout Value, secret: Bool
    ) throws(Failure)
    /// A number kept as a multiple of 1/`scale`; in JSON the number itself.
    mutating func scaled<Value: FixedWidthInteger & BitwiseCopyable>(
        _ name: String, _ value: inout Value, scale: Double
    ) throws(Failure)
    /// One byte: 0 is false, anything else is true.
    mutating func flag(_ name: String, _ value: inout Bool) throws(Failure)
    /// `count` bytes; or all that are left, at least `minimum`. In JSON hexadecimal.
    mutating func bytes(
        _ name: String, _ value: inout Data, count: Int?, minimum: Int, secret: Bool
    ) throws(Failure)
    /// Text up to a NUL or the end of the frame.
    mutating func text(_ name: String, _ value: inout String, limit: Int, secret: Bool) throws(Failure)
    /// Text in a NUL-padded field.
    mutating func fixedText(_ name: String, _ value: inout String, length: Int) throws(Failure)
    /// Bytes whose meaning is open: kept, but neither shown in JSON nor asked for.
    mutating func opaque(_ value: inout Data, count: Int) throws(Failure)
    /// Bytes that a layout always has. Where the layout calls them reserved, what is there is passed over.
    mutating func constant(_ name: String, _ bytes: StaticString, isReserved: Bool) throws(Failure)
    /// Whether a field that older or shorter forms lack is there: `isSet` for writers, what is found for readers.
    mutating func begin(_ name: String, isSet: Bool) throws(Failure) -> Bool
    /// `count` records one after the other, or as many as are left.
    mutating func rows<Row: FieldRecord>(
        _ name: String, _ rows: inout [Row], prototype: Row, count: Int?
    ) throws(Failure)
    /// What JSON tells in addition, for people.
    mutating func derived(_ name: String, _ value: @autoclosure () -> JSONValue?)
    /// The failure for a field that holds what its layout does not allow.
    func invalid(_ name: String) -> Failure
}

extension FieldVisitor where Self: ~Copyable {
    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(
        _ name: String, _ value: inout Value
    ) throws(Failure) {
        try integer(name, &value, secret: false)
    }

    mutating func integer<Value: FixedWidthInteger & BitwiseCopyable>(
        _ name: String, optional value: inout Value?
    ) throws(Failure) {
        guard try begin(name, isSet: value != nil) else { return value = nil }
        var number = value ?? 0
        try integer(name, &number, secret: false)
        value = number
    }

    mutating func flag(_ name: String, optional value: inout Bool?) throws(Failure) {
        guard try begin(name, isSet: value != nil) else { return value = nil }
        var flag = value ?? false
        try self.flag(name, &flag)
        value = flag
    }

    mutating func bytes(_ name: String, _ value: inout Data, count: Int, secret: Bool = false) throws(Failure) {
        try bytes(name, &value, count: count, minimum: count, secret: secret)
    }

    mutating func rest(_ name: String, _ value: inout Data, minimum: Int = 0) throws(Failure) {
        try bytes(name, &value, count: nil, minimum: minimum, secret: false)
    }

    mutating func text(_ name: String, _ value: inout String) throws(Failure) {
        try text(name, &value, limit: .max, secret: false)
    }

    /// Text that may not be empty.
    mutating func requiredText(_ name: String, _ value: inout String) throws(Failure) {
        try text(name, &value, limit: .max, secret: false)
        if value.isEmpty { throw invalid(name) }
    }

    /// Bytes that mean nothing yet.
    mutating func reserved(_ bytes: StaticString) throws(Failure) {
        try constant("reserved", bytes, isReserved: true)
    }

    /// Bytes without which the rest has no meaning.
    mutating func constant(_ name: String, _ bytes: StaticString) throws(Failure) {
        try constant(name, bytes, isReserved: false)
    }

    mutating func key(_ value: inout PublicKey, as name: String = "public_key") throws(Failure) {
        var data = value.data
        try bytes(name, &data, count: PublicKey.length)
        guard let key = PublicKey(data) else { throw invalid(name) }
        value = key
    }

    mutating func key(optional value: inout PublicKey?, as name: String = "public_key") throws(Failure) {
        guard try begin(name, isSet: value != nil) else { return value = nil }
        var key = value ?? .zero
        try self.key(&key, as: name)
        value = key
    }

    mutating func prefix(_ name: String, _ value: inout KeyPrefix) throws(Failure) {
        var data = value.data
        try bytes(name, &data, count: KeyPrefix.length)
        guard let prefix = KeyPrefix(data) else { throw invalid(name) }
        value = prefix
    }

    /// Four bytes that are compared and never counted with: in JSON hexadecimal, in the order of the wire.
    mutating func tag(_ name: String, _ value: inout UInt32) throws(Failure) {
        var data = Data((0..<4).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) })
        try bytes(name, &data, count: 4)
        value = data.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    mutating func signalToNoise(_ value: inout SignalToNoise, as name: String = "snr_db") throws(Failure) {
        try scaled(name, &value.quarters, scale: 4)
    }

    mutating func coordinates(_ value: inout Coordinates) throws(Failure) {
        try scaled("latitude_deg", &value.latitudeMicrodegrees, scale: Coordinates.scale)
        try scaled("longitude_deg", &value.longitudeMicrodegrees, scale: Coordinates.scale)
    }

    mutating func nodeType(_ value: inout NodeType) throws(Failure) {
        try integer("type", &value.rawValue)
    }

    /// A path byte that no path follows.
    mutating func pathByte(_ value: inout PathByte) throws(Failure) {
        try integer("path_byte", &value.rawValue)
        let hops = value.hops
        derived("hops", hops.map { .int(Int64($0)) } ?? .null)
    }

    /// A path byte and its path. Where there must be one, ``PacketPath/none`` is not allowed.
    mutating func path(
        _ value: inout PacketPath, as name: String = "path", isRequired: Bool = false
    ) throws(Failure) {
        var byte = value.byte
        try integer("\(name)_byte", &byte.rawValue)
        guard let count = byte == .none && !isRequired ? 0 : byte.pathLength else { throw invalid("\(name)_byte") }
        var hashes = value.hashes
        try bytes(name, &hashes, count: count)
        guard let path = PacketPath(byte: byte, hashes: hashes) else { throw invalid(name) }
        value = path
    }
}
