// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Walks the bytes of one message (D-Bus Specification, "Marshaling (Wire Format)"). The bytes are lent.
///
/// Whatever they are, nothing outside of them is read. The bus has checked what it passes on, so that nobody meets the errors
/// of this; it checks more than is checked here: texts that are no UTF-8 are repaired, and padding is not looked at.
struct DBusWireReader {
    /// All of the message: alignment counts from its beginning.
    let bytes: UnsafeRawBufferPointer
    /// Whether its numbers are in the other byte order.
    let isSwapped: Bool
    private(set) var offset: Int

    init(_ bytes: UnsafeRawBufferPointer, isSwapped: Bool, at offset: Int) {
        self.bytes = bytes
        self.isSwapped = isSwapped
        self.offset = offset
    }

    static var malformed: DBusError {
        DBusError(DBusError.invalidArguments, "the message is not what D-Bus allows")
    }

    mutating func align(to alignment: Int) throws(DBusError) {
        let aligned = (offset + alignment - 1) & ~(alignment - 1)
        guard aligned <= bytes.count else { throw Self.malformed }
        offset = aligned
    }

    mutating func number<Number: FixedWidthInteger & BitwiseCopyable>(
        _ type: Number.Type = Number.self
    ) throws(DBusError) -> Number {
        let size = MemoryLayout<Number>.size
        try align(to: size)
        guard bytes.count - offset >= size else { throw Self.malformed }
        let number = bytes.loadUnaligned(fromByteOffset: offset, as: Number.self)
        offset += size
        return isSwapped ? number.byteSwapped : number
    }

    /// Where a string, or an object path, stands.
    mutating func text() throws(DBusError) -> Range<Int> {
        let length = Int(try number(UInt32.self))
        return try content(length)
    }

    /// Where a signature stands.
    mutating func signature() throws(DBusError) -> Range<Int> {
        let length = Int(try number(UInt8.self))
        return try content(length)
    }

    /// A text, which a zero follows.
    private mutating func content(_ length: Int) throws(DBusError) -> Range<Int> {
        guard bytes.count - offset > length else { throw Self.malformed }
        let range = offset..<offset + length
        offset = range.upperBound + 1
        return range
    }

    /// Where the elements of an array stand that are aligned like this.
    mutating func array(alignedTo alignment: Int) throws(DBusError) -> Range<Int> {
        let length = Int(try number(UInt32.self))
        try align(to: alignment)
        guard bytes.count - offset >= length else { throw Self.malformed }
        return offset..<offset + length
    }

    mutating func skip(to end: Int) {
        assert((offset...bytes.count).contains(end))
        offset = end
    }

    func slice(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[range])
    }

    func string(_ range: Range<Int>) -> String {
        String(decoding: slice(range), as: UTF8.self)
    }

    // MARK: Signatures

    /// Where the one complete type ends that begins at `start`.
    func endOfType(_ start: Int, within limit: Int, depth: Int = 0) throws(DBusError) -> Int {
        guard start < limit, depth <= DBusMessage.maximumDepth else { throw Self.malformed }
        let closing: UInt8
        switch bytes[start] {
        case UInt8(ascii: "a"): return try endOfType(start + 1, within: limit, depth: depth + 1)
        case UInt8(ascii: "("): closing = UInt8(ascii: ")")
        case UInt8(ascii: "{"): closing = UInt8(ascii: "}")
        case UInt8(ascii: ")"), UInt8(ascii: "}"): throw Self.malformed
        default: return start + 1
        }
        var next = start + 1
        while next < limit, bytes[next] != closing {
            next = try endOfType(next, within: limit, depth: depth + 1)
        }
        // One of nothing would take no bytes, and an array of those no end.
        guard next < limit, next > start + 1 else { throw Self.malformed }
        return next + 1
    }

    /// How values of a type are aligned, by its first character.
    static func alignment(ofType type: UInt8) -> Int {
        switch type {
        case UInt8(ascii: "y"), UInt8(ascii: "g"), UInt8(ascii: "v"): 1
        case UInt8(ascii: "n"), UInt8(ascii: "q"): 2
        case UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"), UInt8(ascii: "("), UInt8(ascii: "{"): 8
        default: 4
        }
    }
}
