// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport
import Testing

@testable import MeshDBus

/// A message, put together byte by byte.
private struct Wire {
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
}

private let property = DBusBytesProperty(
    sender: "org.example.Radio", path: "/radio", interface: "org.example.Test", name: "Value")

/// Values that were taken.
private final class Log: @unchecked Sendable {
    // Sendable: it is used by the one test that made it, without a second thread.
    var values: [[UInt8]] = []
}

/// A message as it would be read from a socket.
private func received(_ bytes: [UInt8]) throws(DBusError) -> DBusReceived {
    let result = bytes.withUnsafeBytes { bytes -> Result<DBusReceived, DBusError> in
        do throws(DBusError) {
            return .success(DBusReceived(try DBusHeader(bytes), bytes, descriptors: []))
        } catch {
            return .failure(error)
        }
    }
    return try result.get()
}

struct DBusWireTests {
    @Test(arguments: [false, true])
    func `either byte order is read`(_ isBig: Bool) throws {
        let bytes = Wire.change([[1, 2, 3]], isBig: isBig)
        #expect(try bytes.withUnsafeBytes { try DBusHeader.length(ofMessage: $0) } == bytes.count)
        let message = try received(bytes)
        #expect(message.kind == .signal)
        #expect(message.sender == ":1.7" && message.path == "/radio" && message.member == "PropertiesChanged")
        let (values, _) = try message.arguments()
        #expect(
            values == [
                .string("org.example.Test"),
                .dictionary(key: "s", value: "v", [.string("Value"): .variant(.bytes([1, 2, 3]))]),
                .array(element: "s", []),
            ])
    }

    @Test(arguments: [false, true])
    func `a value alone is taken, and only from the one who has the name`(_ isBig: Bool) throws {
        let (takers, log) = (DBusBytesTakers(), Log())
        func take(_ bytes: [UInt8]) throws -> Bool {
            try bytes.withUnsafeBytes { takers.take(try DBusHeader($0), $0) }
        }
        takers.set(property, owner: nil) { log.values.append(Array($0)) }
        #expect(try !take(Wire.change([[1]], isBig: isBig)))
        #expect(try !take(Wire.change([[1]], isBig: isBig, sender: "")))
        takers.setOwner(of: "org.example.Radio", ":1.7")
        #expect(try take(Wire.change([[1, 2, 3]], isBig: isBig)))
        #expect(try take(Wire.change([[]], isBig: isBig)))
        #expect(try !take(Wire.change([[4]], isBig: isBig, sender: ":1.70")))
        #expect(try !take(Wire.change([[4], [5]], isBig: isBig)))
        #expect(try !take(Wire.change([], isBig: isBig)))
        takers.setOwner(of: "org.example.Radio", nil)
        #expect(try !take(Wire.change([[6]], isBig: isBig)))
        #expect(log.values == [[1, 2, 3], []])
    }

    @Test func `a message whose length is not known yet is waited for`() throws {
        let bytes = Wire.change([[1]])
        for count in 0..<16 {
            #expect(try bytes[..<count].withUnsafeBytes { try DBusHeader.length(ofMessage: $0) } == nil)
        }
        #expect(throws: DBusError.self) {
            try ([0] + bytes).withUnsafeBytes { _ = try DBusHeader.length(ofMessage: $0) }
        }
    }

    /// Nothing is read that is not there, whatever the bytes say: the pointers end with the bytes, and reading goes through
    /// the checks of ``DBusWireReader``. What is looked for is a trap.
    @Test func `broken messages are errors or other messages`() throws {
        var random = SplitMix(state: 9)
        let takers = DBusBytesTakers()
        takers.set(property, owner: ":1.7") { _ in }
        for isBig in [false, true] {
            let whole = Wire.change([Array(repeating: 7, count: 20), [1]], isBig: isBig)
            for round in 0..<4_000 {
                var bytes = whole
                for _ in 0...round % 4 {
                    bytes[Int.random(in: bytes.indices, using: &random)] = .random(in: 0...255, using: &random)
                }
                bytes.removeLast(round % 3 == 0 ? Int.random(in: 0...bytes.count, using: &random) : 0)
                guard let message = try? received(bytes) else { continue }
                _ = try? message.arguments()
                _ = message.error
                bytes.withUnsafeBytes { bytes in
                    guard let header = try? DBusHeader(bytes) else { return }
                    _ = takers.take(header, bytes)
                }
            }
        }
    }

    @Test(arguments: ["a", "()", "a()", "(", "a{", "{s", ")", "(s}", String(repeating: "a", count: 255)])
    func `what is no type is an error`(_ signature: String) {
        let bytes = Array(signature.utf8)
        bytes.withUnsafeBytes { bytes in
            let reader = DBusWireReader(bytes, isSwapped: false, at: 0)
            #expect(throws: DBusError.self) { try reader.endOfType(0, within: bytes.count) }
        }
    }
}
