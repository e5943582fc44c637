// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTestSupport
import Testing

@testable import MeshDBus

private let property = DBusBytesProperty(
    sender: "org.example.Radio", path: "/radio", interface: "org.example.Test", name: "Value")

/// Values that were taken.
private final class Log: @unchecked Sendable {
    // Sendable: it is used by the one test that made it, without a second thread.
    var values: [[UInt8]] = []
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
