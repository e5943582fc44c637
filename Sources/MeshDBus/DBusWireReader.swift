// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CDBus

/// Walks the bytes of one message (D-Bus Specification, "Marshaling (Wire Format)"). The bytes are lent.
///
/// Whatever they are, nothing outside of them is read, and what the specification forbids is an error. The bus has checked what
/// it passes on, so that nobody should meet one; but what has made its way through this once is relied upon.
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

    static var tooDeep: DBusError {
        DBusError(DBusError.invalidArguments, "values are nested too deeply")
    }

    /// Steps over padding, which is zeros.
    mutating func align(to alignment: Int) throws(DBusError) {
        let aligned = (offset + alignment - 1) & ~(alignment - 1)
        guard aligned <= bytes.count else { throw Self.malformed }
        while offset < aligned {
            guard bytes[offset] == 0 else { throw Self.malformed }
            offset += 1
        }
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
        guard bytes.count - offset > length, bytes[offset + length] == 0 else { throw Self.malformed }
        let range = offset..<offset + length
        offset = range.upperBound + 1
        return range
    }

    /// Where the elements of an array stand that are aligned like this.
    mutating func array(alignedTo alignment: Int) throws(DBusError) -> Range<Int> {
        let length = Int(try number(UInt32.self))
        guard length <= DBUS_MAXIMUM_ARRAY_LENGTH else { throw Self.malformed }
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

    /// The text that stands there. D-Bus has no zeros in texts.
    func string(_ range: Range<Int>) throws(DBusError) -> String {
        let text = slice(range)
        guard !text.contains(0), let string = String(validating: text, as: UTF8.self) else { throw Self.malformed }
        return string
    }

    /// Throws unless the text that stands there is what one of libdbus's validators accepts. A zero follows each text.
    func check(_ range: Range<Int>, _ validate: (UnsafePointer<CChar>) -> dbus_bool_t) throws(DBusError) {
        let isValid = slice(range).withMemoryRebound(to: CChar.self) { text in
            guard let start = text.baseAddress, !text.contains(0) else { return false }
            return validate(start) != 0
        }
        guard isValid else { throw Self.malformed }
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
