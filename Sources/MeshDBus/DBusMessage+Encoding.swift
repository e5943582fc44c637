// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import CDBus

extension DBusMessage {
    /// The most arrays, structures, dictionary entries and variants within one another ("Maximum message depth": 64).
    static let maximumDepth = 64

    /// Writes arguments behind those that are there. After an error the message is of no use.
    func append(_ values: [DBusValue]) throws(DBusError) {
        if values.isEmpty { return }
        // libdbus ends the process for signatures that are none, so each is checked before it is used.
        let signature = values.map(\.typeSignature).joined()
        try Self.check(signature, "signature") { dbus_signature_validate($0, nil) }
        var iterator = DBusMessageIter()
        dbus_message_iter_init_append(pointer, &iterator)
        for value in values { try Self.write(value, &iterator, depth: 0) }
    }

    private static func write(_ value: DBusValue, _ iterator: inout DBusMessageIter, depth: Int) throws(DBusError) {
        switch value {
        case .byte(let number): try write(number, "y", &iterator)
        case .bool(let flag): try write(dbus_bool_t(flag ? 1 : 0), "b", &iterator)
        case .int16(let number): try write(number, "n", &iterator)
        case .uint16(let number): try write(number, "q", &iterator)
        case .int32(let number): try write(number, "i", &iterator)
        case .uint32(let number): try write(number, "u", &iterator)
        case .int64(let number): try write(number, "x", &iterator)
        case .uint64(let number): try write(number, "t", &iterator)
        case .double(let number): try write(number, "d", &iterator)
        case .string(let text):
            try check(text, "string") { dbus_validate_utf8($0, nil) }
            try write(text, "s", &iterator)
        case .objectPath(let path):
            try check(path, "object path") { dbus_validate_path($0, nil) }
            try write(path, "o", &iterator)
        case .signature(let signature):
            try check(signature, "signature") { dbus_signature_validate($0, nil) }
            try write(signature, "g", &iterator)
        case .descriptor(let descriptor): try write(descriptor: descriptor, &iterator)
        case .bytes(let bytes): try write(bytes, &iterator, depth: depth)
        case .array(let element, let elements):
            try checkOne("a" + element)
            try container("a", element, &iterator, depth) { iterator throws(DBusError) in
                for value in elements {
                    try expect(value, element)
                    try write(value, &iterator, depth: depth + 1)
                }
            }
        case .dictionary(let key, let value, let entries):
            try write(entries, key: key, value: value, &iterator, depth: depth)
        case .structure(let fields):
            try container("r", nil, &iterator, depth) { iterator throws(DBusError) in
                for field in fields { try write(field, &iterator, depth: depth + 1) }
            }
        case .variant(let content):
            let signature = content.typeSignature
            try checkOne(signature)
            try container("v", signature, &iterator, depth) { iterator throws(DBusError) in
                try write(content, &iterator, depth: depth + 1)
            }
        }
    }

    private static func write(
        _ entries: [DBusValue: DBusValue], key: String, value: String, _ iterator: inout DBusMessageIter, depth: Int
    ) throws(DBusError) {
        try checkOne("a{\(key)\(value)}")
        try container("a", "{\(key)\(value)}", &iterator, depth) { iterator throws(DBusError) in
            for entry in entries {
                try expect(entry.key, key)
                try expect(entry.value, value)
                try container("e", nil, &iterator, depth + 1) { iterator throws(DBusError) in
                    try write(entry.key, &iterator, depth: depth + 2)
                    try write(entry.value, &iterator, depth: depth + 2)
                }
            }
        }
    }

    private static func write<Number>(
        _ number: Number, _ type: Unicode.Scalar, _ iterator: inout DBusMessageIter
    ) throws(DBusError) where Number: BitwiseCopyable {
        var number = number
        try memory(dbus_message_iter_append_basic(&iterator, Int32(type.value), &number))
    }

    private static func write(
        _ text: String, _ type: Unicode.Scalar, _ iterator: inout DBusMessageIter
    ) throws(DBusError) {
        try memory(
            text.withCString { pointer in
                var pointer: UnsafePointer<CChar>? = pointer
                return dbus_message_iter_append_basic(&iterator, Int32(type.value), &pointer)
            })
    }

    private static func write(descriptor: Int32, _ iterator: inout DBusMessageIter) throws(DBusError) {
        var descriptor = descriptor
        // libdbus sends a copy of its own, and making it fails for what is not open.
        let type = Int32(UInt8(ascii: "h"))
        if descriptor < 0 || dbus_message_iter_append_basic(&iterator, type, &descriptor) == 0 {
            throw DBusError(DBusError.invalidArguments, "descriptor \(descriptor) cannot be sent")
        }
    }

    private static func write(
        _ bytes: [UInt8], _ iterator: inout DBusMessageIter, depth: Int
    ) throws(DBusError) {
        guard bytes.count <= DBUS_MAXIMUM_ARRAY_LENGTH else {
            throw DBusError(DBusError.invalidArguments, "\(bytes.count) bytes are too many for an array")
        }
        try container("a", "y", &iterator, depth) { iterator throws(DBusError) in
            if bytes.isEmpty { return }
            try memory(
                bytes.withUnsafeBufferPointer { buffer in
                    var start = buffer.baseAddress
                    return dbus_message_iter_append_fixed_array(
                        &iterator, Int32(UInt8(ascii: "y")), &start, Int32(buffer.count))
                })
        }
    }

    /// Opens a container, lets `body` fill it, and closes it. `content` is what libdbus wants to know of an array's or a
    /// variant's content beforehand.
    private static func container(
        _ type: Unicode.Scalar, _ content: String?, _ iterator: inout DBusMessageIter, _ depth: Int,
        _ body: (inout DBusMessageIter) throws(DBusError) -> Void
    ) throws(DBusError) {
        guard depth < maximumDepth else { throw DBusWireReader.tooDeep }
        var inner = DBusMessageIter()
        try memory(dbus_message_iter_open_container(&iterator, Int32(type.value), content, &inner))
        do throws(DBusError) {
            try body(&inner)
        } catch {
            dbus_message_iter_abandon_container(&iterator, &inner)
            throw error
        }
        try memory(dbus_message_iter_close_container(&iterator, &inner))
    }

    /// What a caller says of an array's content may be more than one type, which would pass within a longer signature.
    private static func checkOne(_ signature: String) throws(DBusError) {
        try check(signature, "signature of one type") { dbus_signature_validate_single($0, nil) }
    }

    private static func expect(_ value: DBusValue, _ signature: String) throws(DBusError) {
        if value.typeSignature != signature {
            throw DBusError(
                DBusError.invalidArguments, "a value of type '\(value.typeSignature)' stands among '\(signature)'")
        }
    }
}
