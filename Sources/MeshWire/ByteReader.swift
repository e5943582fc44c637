// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Which byte of an integer comes first.
public enum ByteOrder: Sendable, Hashable {
    case little
    case big
}

/// Reads values from bytes one after the other; it cannot read past their end.
///
/// After an error the position is where the failed value began. Use ``decode(_:_:)`` where the bytes are a span: the
/// reader then cannot outlive them.
public struct ByteReader: ~Copyable {
    private let bytes: UnsafeRawBufferPointer
    /// Where the next value begins.
    public private(set) var offset = 0

    /// Reads a buffer that stays valid for as long as the reader is used.
    public init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    /// Decodes one value from `bytes`.
    public static func decode<Value>(
        _ bytes: RawSpan, _ body: (inout ByteReader) throws(DecodeError) -> Value
    ) throws(DecodeError) -> Value {
        try bytes.withUnsafeBytes { (buffer) throws(DecodeError) in
            var reader = ByteReader(buffer)
            return try body(&reader)
        }
    }

    /// Decodes one value from `bytes`.
    public static func decode<Value>(
        _ bytes: [UInt8], _ body: (inout ByteReader) throws(DecodeError) -> Value
    ) throws(DecodeError) -> Value {
        try decode(bytes.span.bytes, body)
    }

    /// How many bytes are left.
    public var remaining: Int { bytes.count - offset }

    /// The next byte, without reading it; nil at the end.
    public var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    /// Throws if bytes are left.
    public func expectEnd() throws(DecodeError) {
        if remaining > 0 { throw DecodeError(.trailing(count: remaining), offset: offset) }
    }

    // MARK: Integers

    /// An integer of any width.
    public mutating func read<Integer: FixedWidthInteger & BitwiseCopyable>(
        _ type: Integer.Type = Integer.self, _ order: ByteOrder = .little
    ) throws(DecodeError) -> Integer {
        let size = Integer.bitWidth / 8
        try require(size)
        let value = bytes.loadUnaligned(fromByteOffset: offset, as: Integer.self)
        offset += size
        return order == .little ? Integer(littleEndian: value) : Integer(bigEndian: value)
    }

    // MARK: Bytes

    /// The next `count` bytes, in place: valid as long as what the reader reads.
    public mutating func readBuffer(_ count: Int) throws(DecodeError) -> UnsafeRawBufferPointer {
        try require(count)
        defer { offset += count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
    }

    /// A copy of the next `count` bytes.
    public mutating func readBytes(_ count: Int) throws(DecodeError) -> [UInt8] {
        Array(try readBuffer(count))
    }

    /// A copy of all that is left.
    public mutating func readRest() -> [UInt8] {
        defer { offset = bytes.count }
        return Array(bytes[offset...])
    }

    /// Passes over `count` bytes.
    public mutating func skip(_ count: Int) throws(DecodeError) {
        try require(count)
        offset += count
    }

    // MARK: Text

    /// The text of a NUL-padded field of `length` bytes. What follows the first NUL is garbage to be ignored, and a
    /// character cut by the field's end is dropped.
    public mutating func readFixedText(_ length: Int) throws(DecodeError) -> String {
        let field = try readBuffer(length)
        return WireText.decode(UnsafeRawBufferPointer(rebasing: field.prefix { $0 != 0 }))
    }

    /// The text up to a NUL or the end, whichever comes first. The NUL is read too; what follows it is left.
    public mutating func readText() -> String {
        let text = UnsafeRawBufferPointer(rebasing: bytes[offset...].prefix { $0 != 0 })
        offset = min(offset + text.count + 1, bytes.count)
        return WireText.decode(text)
    }

    private func require(_ count: Int) throws(DecodeError) {
        precondition(count >= 0)
        if remaining < count { throw DecodeError(.truncated(missing: count - remaining), offset: offset) }
    }
}
