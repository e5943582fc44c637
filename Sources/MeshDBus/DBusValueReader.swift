// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CDBus
internal import Glibc

/// Makes values of a message's bytes.
struct DBusValueReader {
    private(set) var reader: DBusWireReader
    /// Those that came with the message; nil where nobody takes them.
    private let descriptors: [Int32]?
    /// Copies of them, made so far: the caller's to close, whether or not an error follows.
    private(set) var copies: [Int32] = []

    init(_ reader: DBusWireReader, descriptors: [Int32]?) {
        self.reader = reader
        self.descriptors = descriptors
    }

    /// The values of these types, one behind the other.
    mutating func values(_ signature: Range<Int>, depth: Int = 0) throws(DBusError) -> [DBusValue] {
        var values: [DBusValue] = []
        var start = signature.lowerBound
        while start < signature.upperBound {
            let end = try reader.endOfType(start, within: signature.upperBound)
            values.append(try value(start..<end, depth: depth))
            start = end
        }
        return values
    }

    /// The value of this one type, which is within so many containers.
    mutating func value(_ type: Range<Int>, depth: Int = 0) throws(DBusError) -> DBusValue {
        guard !type.isEmpty else { throw DBusWireReader.malformed }
        switch reader.bytes[type.lowerBound] {
        case UInt8(ascii: "y"): return .byte(try reader.number())
        case UInt8(ascii: "b"): return .bool(try bool())
        case UInt8(ascii: "n"): return .int16(try reader.number())
        case UInt8(ascii: "q"): return .uint16(try reader.number())
        case UInt8(ascii: "i"): return .int32(try reader.number())
        case UInt8(ascii: "u"): return .uint32(try reader.number())
        case UInt8(ascii: "x"): return .int64(try reader.number())
        case UInt8(ascii: "t"): return .uint64(try reader.number())
        case UInt8(ascii: "d"): return .double(Double(bitPattern: try reader.number()))
        case UInt8(ascii: "s"): return .string(try reader.string(try reader.text()))
        case UInt8(ascii: "o"): return .objectPath(try objectPath())
        case UInt8(ascii: "g"): return .signature(try signature())
        case UInt8(ascii: "h"): return try descriptor()
        case UInt8(ascii: "a"): return try array(of: type.lowerBound + 1..<type.upperBound, depth: depth)
        case UInt8(ascii: "("):
            try reader.align(to: 8)
            let fields = type.lowerBound + 1..<type.upperBound - 1
            return .structure(try values(fields, depth: try Self.inside(depth)))
        case UInt8(ascii: "v"):
            let content = try reader.signature()
            guard try reader.endOfType(content.lowerBound, within: content.upperBound) == content.upperBound else {
                throw DBusWireReader.malformed
            }
            return .variant(try value(content, depth: try Self.inside(depth)))
        case let type:
            throw DBusError(DBusError.invalidArguments, "a value of the unknown type \(type)")
        }
    }

    /// The depth of what is in a container of this depth.
    private static func inside(_ depth: Int) throws(DBusError) -> Int {
        guard depth < DBusMessage.maximumDepth else { throw DBusWireReader.tooDeep }
        return depth + 1
    }

    private mutating func bool() throws(DBusError) -> Bool {
        switch try reader.number(UInt32.self) {
        case 0: return false
        case 1: return true
        default: throw DBusWireReader.malformed
        }
    }

    private mutating func objectPath() throws(DBusError) -> String {
        let text = try reader.text()
        try reader.check(text) { dbus_validate_path($0, nil) }
        return try reader.string(text)
    }

    private mutating func signature() throws(DBusError) -> String {
        let text = try reader.signature()
        try reader.checkTypes(text)
        return try reader.string(text)
    }

    private mutating func array(of element: Range<Int>, depth: Int) throws(DBusError) -> DBusValue {
        guard !element.isEmpty else { throw DBusWireReader.malformed }
        let inside = try Self.inside(depth)
        let type = reader.bytes[element.lowerBound]
        let elements = try reader.array(alignedTo: DBusWireReader.alignment(ofType: type))
        switch type {
        case UInt8(ascii: "y"):
            reader.skip(to: elements.upperBound)
            return .bytes(Array(reader.slice(elements)))
        case UInt8(ascii: "{"):
            return try dictionary(
                of: element.lowerBound + 1..<element.upperBound - 1, elements, depth: try Self.inside(inside))
        default:
            var values: [DBusValue] = []
            while reader.offset < elements.upperBound { values.append(try value(element, depth: inside)) }
            guard reader.offset == elements.upperBound else { throw DBusWireReader.malformed }
            return .array(element: try reader.string(element), values)
        }
    }

    /// `types` are those of key and value, `depth` is that of both.
    private mutating func dictionary(
        of types: Range<Int>, _ elements: Range<Int>, depth: Int
    ) throws(DBusError) -> DBusValue {
        // Keys are of basic types, which are one character long.
        let keyEnd = types.lowerBound + 1
        let (keyType, valueType) = (types.lowerBound..<keyEnd, keyEnd..<types.upperBound)
        var entries: [DBusValue: DBusValue] = [:]
        while reader.offset < elements.upperBound {
            try reader.align(to: 8)
            let key = try value(keyType, depth: depth)
            entries[key] = try value(valueType, depth: depth)
        }
        guard reader.offset == elements.upperBound else { throw DBusWireReader.malformed }
        return .dictionary(key: try reader.string(keyType), value: try reader.string(valueType), entries)
    }

    static var missingDescriptor: DBusError {
        DBusError(DBusError.invalidArguments, "the message speaks of a descriptor that did not come with it")
    }

    private mutating func descriptor() throws(DBusError) -> DBusValue {
        let index = Int(try reader.number(UInt32.self))
        guard let descriptors else { return .descriptor(-1) }
        // Nobody speaks of one twice, but for making more of them than there are.
        guard index < descriptors.count, copies.count < descriptors.count else { throw Self.missingDescriptor }
        let copy = fcntl(descriptors[index], F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else {
            throw DBusError(DBusError.noMemory, "no descriptor is free for one that was received")
        }
        copies.append(copy)
        return .descriptor(copy)
    }
}
