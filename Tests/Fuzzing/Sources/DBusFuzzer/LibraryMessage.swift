// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import CDBus

@testable import MeshDBus

/// A message as libdbus reads it: what ours is compared with.
final class LibraryMessage {
    private let message: OpaquePointer

    /// Nil where libdbus refuses the bytes.
    init?(_ bytes: [UInt8]) {
        let message = bytes.withUnsafeBytes { bytes in
            bytes.withMemoryRebound(to: CChar.self) { dbus_message_demarshal($0.baseAddress, Int32($0.count), nil) }
        }
        guard let message else { return nil }
        self.message = message
    }

    deinit {
        dbus_message_unref(message)
    }

    /// What goes over the socket for a message of ours.
    static func bytes(of message: DBusMessage) -> [UInt8] {
        dbus_message_set_serial(message.pointer, 1)
        var (start, count): (UnsafeMutablePointer<CChar>?, Int32) = (nil, 0)
        guard dbus_message_marshal(message.pointer, &start, &count) != 0 else { preconditionFailure("no memory") }
        defer { dbus_free(start) }
        return UnsafeRawBufferPointer(start: start, count: Int(count)).map { $0 }
    }

    var values: [DBusValue] {
        var iterator = DBusMessageIter()
        return dbus_message_iter_init(message, &iterator) != 0 ? Self.values(&iterator) : []
    }

    private static func values(_ iterator: inout DBusMessageIter) -> [DBusValue] {
        var values: [DBusValue] = []
        while type(iterator) != nil {
            values.append(value(&iterator))
            dbus_message_iter_next(&iterator)
        }
        return values
    }

    /// Nil at the end.
    private static func type(_ iterator: DBusMessageIter) -> Unicode.Scalar? {
        var iterator = iterator
        let type = dbus_message_iter_get_arg_type(&iterator)
        return type == 0 ? nil : Unicode.Scalar(UInt8(type))
    }

    private static func basic<Value: BitwiseCopyable>(_ iterator: inout DBusMessageIter, _ value: Value) -> Value {
        var value = value
        dbus_message_iter_get_basic(&iterator, &value)
        return value
    }

    private static func text(_ iterator: inout DBusMessageIter) -> String {
        basic(&iterator, UnsafePointer<CChar>?.none).map { String(cString: $0) } ?? ""
    }

    private static func value(_ iterator: inout DBusMessageIter) -> DBusValue {
        var inner = DBusMessageIter()
        switch type(iterator) {
        case "y": return .byte(basic(&iterator, 0))
        case "b": return .bool(basic(&iterator, dbus_bool_t(0)) != 0)
        case "n": return .int16(basic(&iterator, 0))
        case "q": return .uint16(basic(&iterator, 0))
        case "i": return .int32(basic(&iterator, 0))
        case "u": return .uint32(basic(&iterator, 0))
        case "x": return .int64(basic(&iterator, 0))
        case "t": return .uint64(basic(&iterator, 0))
        case "d": return .double(basic(&iterator, 0))
        case "s": return .string(text(&iterator))
        case "o": return .objectPath(text(&iterator))
        case "g": return .signature(text(&iterator))
        case "r":
            dbus_message_iter_recurse(&iterator, &inner)
            return .structure(values(&inner))
        case "v":
            dbus_message_iter_recurse(&iterator, &inner)
            return .variant(value(&inner))
        case "a":
            guard let pointer = dbus_message_iter_get_signature(&iterator) else { preconditionFailure("no memory") }
            defer { dbus_free(pointer) }
            let element = String(cString: pointer).dropFirst()
            dbus_message_iter_recurse(&iterator, &inner)
            return array(of: element, &inner)
        case let type: preconditionFailure("a value of type \(String(describing: type))")
        }
    }

    private static func array(of element: Substring, _ inner: inout DBusMessageIter) -> DBusValue {
        switch element.first {
        case "y":
            return .bytes(
                values(&inner).map { value in
                    guard case .byte(let byte) = value else { preconditionFailure("no byte") }
                    return byte
                })
        case "{":
            var entries: [DBusValue: DBusValue] = [:]
            while type(inner) != nil {
                var entry = DBusMessageIter()
                dbus_message_iter_recurse(&inner, &entry)
                let pair = values(&entry)
                entries[pair[0]] = pair[1]
                dbus_message_iter_next(&inner)
            }
            let types = element.dropFirst().dropLast()
            return .dictionary(key: String(types.prefix(1)), value: String(types.dropFirst()), entries)
        default: return .array(element: String(element), values(&inner))
        }
    }
}

extension DBusValue {
    /// Equal, and a number that is none is the same as itself. Within keys of a dictionary there is no telling.
    func isSame(as other: DBusValue) -> Bool {
        switch (self, other) {
        case (.double(let one), .double(let two)): one.bitPattern == two.bitPattern
        case (.array(let one, let these), .array(let two, let those)): one == two && these.isSame(as: those)
        case (.structure(let these), .structure(let those)): these.isSame(as: those)
        case (.variant(let one), .variant(let two)): one.isSame(as: two)
        case (.dictionary("d", let one, let these), .dictionary("d", let two, let those)):
            one == two && these.count == those.count
        case (.dictionary(let keys, let one, let these), .dictionary(let otherKeys, let two, let those)):
            keys == otherKeys && one == two && these.count == those.count
                && these.allSatisfy { key, value in those[key].map { value.isSame(as: $0) } ?? false }
        default: self == other
        }
    }
}

extension [DBusValue] {
    func isSame(as other: [DBusValue]) -> Bool {
        count == other.count && zip(self, other).allSatisfy { $0.isSame(as: $1) }
    }
}
