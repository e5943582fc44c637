// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

@testable import MeshDBus

/// A message, put together byte by byte.
struct Wire {
    var bytes: [UInt8] = []
    let isBig: Bool

    mutating func align(_ alignment: Int) {
        while bytes.count % alignment != 0 { bytes.append(0) }
    }

    mutating func number<Number: FixedWidthInteger>(_ number: Number) {
        align(MemoryLayout<Number>.size)
        withUnsafeBytes(of: isBig ? number.bigEndian : number.littleEndian) { bytes += $0 }
    }

    mutating func text(_ text: String) {
        number(UInt32(text.utf8.count))
        bytes += Array(text.utf8) + [0]
    }

    mutating func signature(_ signature: String) {
        bytes += [UInt8(signature.utf8.count)] + Array(signature.utf8) + [0]
    }

    /// The length of what `body` appends, before it.
    mutating func counted(alignedTo alignment: Int = 1, _ body: (inout Wire) -> Void) {
        number(UInt32(0))
        let place = bytes.count - 4
        align(alignment)
        let begin = bytes.count
        body(&self)
        var length = Wire(isBig: isBig)
        length.number(UInt32(bytes.count - begin))
        bytes.replaceSubrange(place..<place + 4, with: length.bytes)
    }

    mutating func field(_ code: UInt8, _ type: String, _ value: (inout Wire) -> Void) {
        align(8)
        bytes.append(code)
        signature(type)
        value(&self)
    }

    /// `PropertiesChanged` of `/radio`, telling of these values of `Value`.
    static func change(_ values: [[UInt8]], isBig: Bool = false, sender: String = ":1.7") -> [UInt8] {
        var body = Wire(isBig: isBig)
        body.text("org.example.Test")
        body.counted(alignedTo: 8) { body in
            for value in values {
                body.align(8)
                body.text("Value")
                body.signature("ay")
                body.counted { $0.bytes += value }
            }
        }
        body.counted { _ in }
        var message = Wire(bytes: [UInt8(ascii: isBig ? "B" : "l"), 4, 1, 1], isBig: isBig)
        message.number(UInt32(body.bytes.count))
        message.number(UInt32(77))
        message.counted(alignedTo: 8) { message in
            message.field(1, "o") { $0.text("/radio") }
            message.field(2, "s") { $0.text("org.freedesktop.DBus.Properties") }
            message.field(3, "s") { $0.text("PropertiesChanged") }
            message.field(6, "s") { $0.text(":1.9") }
            message.field(200, "a{sv}") { $0.counted(alignedTo: 8) { _ in } }
            message.field(8, "g") { $0.signature("sa{sv}as") }
            message.field(7, "s") { $0.text(sender) }
        }
        message.align(8)
        return message.bytes + body.bytes
    }

    /// A signal with arguments of these types, as `body` writes them. The header is whole, unless `header` changes it.
    static func signal(
        _ types: String, isBig: Bool = false, header: (inout Wire) -> Void = { _ in }, _ body: (inout Wire) -> Void
    ) -> [UInt8] {
        var arguments = Wire(isBig: isBig)
        body(&arguments)
        var message = Wire(bytes: [UInt8(ascii: isBig ? "B" : "l"), 4, 1, 1], isBig: isBig)
        message.number(UInt32(arguments.bytes.count))
        message.number(UInt32(77))
        message.counted(alignedTo: 8) { message in
            message.field(1, "o") { $0.text("/radio") }
            message.field(2, "s") { $0.text("org.example.Test") }
            message.field(3, "s") { $0.text("Changed") }
            message.field(8, "g") { $0.signature(types) }
            header(&message)
        }
        message.align(8)
        return message.bytes + arguments.bytes
    }
}

/// A message as it would be read from a socket.
func received(_ bytes: [UInt8]) throws(DBusError) -> DBusReceived {
    let result = bytes.withUnsafeBytes { bytes -> Result<DBusReceived, DBusError> in
        do throws(DBusError) {
            return .success(try DBusReceived(try DBusHeader(bytes), bytes, descriptors: []))
        } catch {
            return .failure(error)
        }
    }
    return try result.get()
}
