// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Builds bytes value by value.
///
/// There is no `write` of an `Int`, so that a bare number never takes eight bytes by accident.
public struct ByteWriter: Sendable {
    /// What was written.
    public private(set) var bytes: [UInt8] = []

    /// `capacity` is the expected length in bytes.
    public init(capacity: Int = 0) {
        bytes.reserveCapacity(capacity)
    }

    // MARK: Integers

    public mutating func write(_ value: UInt8) { bytes.append(value) }
    public mutating func write(_ value: Int8) { bytes.append(UInt8(bitPattern: value)) }
    public mutating func write(_ value: UInt16, _ order: ByteOrder = .little) { append(value, order) }
    public mutating func write(_ value: Int16, _ order: ByteOrder = .little) { append(value, order) }
    public mutating func write(_ value: UInt32, _ order: ByteOrder = .little) { append(value, order) }
    public mutating func write(_ value: Int32, _ order: ByteOrder = .little) { append(value, order) }
    public mutating func write(_ value: UInt64, _ order: ByteOrder = .little) { append(value, order) }

    private mutating func append<Integer: FixedWidthInteger>(_ value: Integer, _ order: ByteOrder) {
        withUnsafeBytes(of: order == .little ? value.littleEndian : value.bigEndian) { bytes.append(contentsOf: $0) }
    }

    // MARK: Bytes and text

    /// Writes all of `content`.
    public mutating func write(contentsOf content: some Sequence<UInt8>) {
        bytes.append(contentsOf: content)
    }

    /// Writes all of `content`.
    public mutating func write(contentsOf content: RawSpan) {
        content.withUnsafeBytes { bytes.append(contentsOf: $0) }
    }

    /// Writes `count` zero bytes.
    public mutating func writeZeros(_ count: Int) {
        bytes.append(contentsOf: repeatElement(0, count: count))
    }

    /// Writes the text without a terminator, cut between characters to at most `limit` bytes.
    public mutating func writeText(_ text: String, limit: Int = .max) {
        bytes.append(contentsOf: WireText.prefix(of: text, bytes: limit).utf8)
    }

    /// Writes a field of exactly `length` bytes: the text, cut between characters to at most `length - 1` bytes, then
    /// NULs (radios keep names as C strings: `char name[32]` holds 31 bytes).
    public mutating func writeFixedText(_ text: String, length: Int) {
        let end = bytes.count + length
        writeText(text, limit: length - 1)
        writeZeros(end - bytes.count)
    }
}
