// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CDBus
internal import Glibc

extension DBusMessage {
    /// The arguments, and the descriptors among them, which are the caller's to close.
    func arguments() throws(DBusError) -> (values: [DBusValue], descriptors: [Int32]) {
        var reader = DBusArgumentReader()
        do throws(DBusError) {
            return (try reader.read(pointer), reader.descriptors)
        } catch {
            for descriptor in reader.descriptors { close(descriptor) }
            throw error
        }
    }

    /// What an error message says.
    var error: DBusError {
        let name = dbus_message_get_error_name(pointer).map { String(cString: $0) } ?? DBusError.failed
        var iterator = DBusMessageIter()
        guard dbus_message_iter_init(pointer, &iterator) != 0,
            dbus_message_iter_get_arg_type(&iterator) == Int32(UInt8(ascii: "s"))
        else { return DBusError(name) }
        return DBusError(name, DBusArgumentReader.text(&iterator))
    }
}

/// Reads values out of a message. libdbus has checked the message's form when it arrived; what this does not know is an
/// error all the same, never a trap.
private struct DBusArgumentReader {
    /// Opened so far.
    private(set) var descriptors: [Int32] = []

    mutating func read(_ message: OpaquePointer) throws(DBusError) -> [DBusValue] {
        var iterator = DBusMessageIter()
        guard dbus_message_iter_init(message, &iterator) != 0 else { return [] }
        return try values(&iterator, depth: 0)
    }

    /// All values from here to the end of what the iterator walks.
    private mutating func values(_ iterator: inout DBusMessageIter, depth: Int) throws(DBusError) -> [DBusValue] {
        var values: [DBusValue] = []
        // 0 is DBUS_TYPE_INVALID: the end.
        while dbus_message_iter_get_arg_type(&iterator) != 0 {
            values.append(try value(&iterator, depth: depth))
            dbus_message_iter_next(&iterator)
        }
        return values
    }

    private mutating func value(_ iterator: inout DBusMessageIter, depth: Int) throws(DBusError) -> DBusValue {
        guard depth <= DBusMessage.maximumDepth else {
            throw DBusError(DBusError.invalidArguments, "values are nested too deeply")
        }
        switch UInt8(truncatingIfNeeded: dbus_message_iter_get_arg_type(&iterator)) {
        case UInt8(ascii: "y"): return .byte(Self.number(&iterator, 0))
        case UInt8(ascii: "b"): return .bool(Self.number(&iterator, dbus_bool_t(0)) != 0)
        case UInt8(ascii: "n"): return .int16(Self.number(&iterator, 0))
        case UInt8(ascii: "q"): return .uint16(Self.number(&iterator, 0))
        case UInt8(ascii: "i"): return .int32(Self.number(&iterator, 0))
        case UInt8(ascii: "u"): return .uint32(Self.number(&iterator, 0))
        case UInt8(ascii: "x"): return .int64(Self.number(&iterator, 0))
        case UInt8(ascii: "t"): return .uint64(Self.number(&iterator, 0))
        case UInt8(ascii: "d"): return .double(Self.number(&iterator, 0))
        case UInt8(ascii: "s"): return .string(Self.text(&iterator))
        case UInt8(ascii: "o"): return .objectPath(Self.text(&iterator))
        case UInt8(ascii: "g"): return .signature(Self.text(&iterator))
        case UInt8(ascii: "h"): return try descriptor(&iterator)
        case UInt8(ascii: "a"): return try array(&iterator, depth: depth)
        case UInt8(ascii: "r"):
            var inner = DBusMessageIter()
            dbus_message_iter_recurse(&iterator, &inner)
            return .structure(try values(&inner, depth: depth + 1))
        case UInt8(ascii: "v"):
            var inner = DBusMessageIter()
            dbus_message_iter_recurse(&iterator, &inner)
            return .variant(try value(&inner, depth: depth + 1))
        case let type:
            throw DBusError(DBusError.invalidArguments, "a value of the unknown type \(type)")
        }
    }

    private mutating func array(_ iterator: inout DBusMessageIter, depth: Int) throws(DBusError) -> DBusValue {
        var inner = DBusMessageIter()
        let elementType = UInt8(truncatingIfNeeded: dbus_message_iter_get_element_type(&iterator))
        if elementType == UInt8(ascii: "y") {
            dbus_message_iter_recurse(&iterator, &inner)
            var start: UnsafePointer<UInt8>?
            var count: Int32 = 0
            dbus_message_iter_get_fixed_array(&inner, &start, &count)
            return .bytes(Array(UnsafeBufferPointer(start: start, count: start == nil ? 0 : Int(count))))
        }
        // The element's signature is known for an empty array as well.
        guard let text = dbus_message_iter_get_signature(&iterator) else { throw DBusError(DBusError.noMemory) }
        let element = String(String(cString: text).dropFirst())
        dbus_free(text)
        dbus_message_iter_recurse(&iterator, &inner)
        guard elementType == UInt8(ascii: "e") else {
            return .array(element: element, try values(&inner, depth: depth + 1))
        }
        // `{`, a basic type, any type, `}`.
        let key = String(element.dropFirst().prefix(1))
        let value = String(element.dropFirst(2).dropLast())
        return .dictionary(key: key, value: value, try entries(&inner, depth: depth + 1))
    }

    private mutating func entries(
        _ iterator: inout DBusMessageIter, depth: Int
    ) throws(DBusError) -> [DBusValue: DBusValue] {
        var entries: [DBusValue: DBusValue] = [:]
        while dbus_message_iter_get_arg_type(&iterator) != 0 {
            var entry = DBusMessageIter()
            dbus_message_iter_recurse(&iterator, &entry)
            let key = try value(&entry, depth: depth)
            dbus_message_iter_next(&entry)
            entries[key] = try value(&entry, depth: depth)
            dbus_message_iter_next(&iterator)
        }
        return entries
    }

    private mutating func descriptor(_ iterator: inout DBusMessageIter) throws(DBusError) -> DBusValue {
        // A copy that libdbus makes for us, closed on `exec`; -1 when it cannot.
        let descriptor = Self.number(&iterator, Int32(-1))
        guard descriptor >= 0 else {
            throw DBusError(DBusError.noMemory, "no descriptor is free for one that was received")
        }
        descriptors.append(descriptor)
        return .descriptor(descriptor)
    }

    private static func number<Number>(_ iterator: inout DBusMessageIter, _ initial: Number) -> Number
    where Number: BitwiseCopyable {
        var number = initial
        dbus_message_iter_get_basic(&iterator, &number)
        return number
    }

    /// A string, path or signature.
    static func text(_ iterator: inout DBusMessageIter) -> String {
        var text: UnsafePointer<CChar>?
        dbus_message_iter_get_basic(&iterator, &text)
        return text.map { String(cString: $0) } ?? ""
    }
}
