// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import Testing

@testable import MeshDBus

/// What D-Bus forbids is refused, and what it just allows is not (D-Bus Specification, "Type System", "Marshaling", "Message
/// Format").
struct DBusStrictnessTests {
    private static func values(_ bytes: [UInt8]) -> [DBusValue]? {
        try? received(bytes).arguments().values
    }

    @Test(arguments: [false, true])
    func `a message without faults is read`(_ isBig: Bool) {
        let bytes = Wire.signal("bsogv", isBig: isBig) { body in
            body.number(UInt32(1))
            body.text("\u{FFFF} is no character, but allowed")
            body.text("/")
            body.signature("a{s(iv)}")
            body.signature("b")
            body.number(UInt32(0))
        }
        #expect(
            Self.values(bytes) == [
                .bool(true), .string("\u{FFFF} is no character, but allowed"), .objectPath("/"), .signature("a{s(iv)}"),
                .variant(.bool(false)),
            ])
    }

    @Test func `arguments that D-Bus forbids are refused`() {
        let faults: [(String, String, (inout Wire) -> Void)] = [
            ("a truth of 2", "b", { $0.number(UInt32(2)) }),
            (
                "no UTF-8", "s",
                {
                    $0.counted { $0.bytes += [0xC3] }; $0.bytes.append(0)
                }
            ),
            (
                "half of a pair", "s",
                {
                    $0.counted { $0.bytes += [0xED, 0xA0, 0x80] }; $0.bytes.append(0)
                }
            ),
            ("a zero in a text", "s", { $0.text("a\0b") }),
            (
                "a text without an end", "s",
                {
                    $0.text("ab"); $0.bytes[$0.bytes.count - 1] = 1
                }
            ),
            (
                "a signature without an end", "g",
                {
                    $0.signature("ab"); $0.bytes[$0.bytes.count - 1] = 1
                }
            ),
            ("no path", "o", { $0.text("radio") }),
            ("an empty path", "o", { $0.text("") }),
            ("a path with an end", "o", { $0.text("/radio/") }),
            ("a zero in a path", "o", { $0.text("/radio\0") }),
            ("half a signature", "g", { $0.signature("a") }),
            ("an unknown type", "g", { $0.signature("z") }),
            ("a variant of nothing", "v", { $0.signature("") }),
            (
                "a variant of two", "v",
                {
                    $0.signature("yy"); $0.bytes += [1, 2]
                }
            ),
            (
                "padding", "yu",
                {
                    $0.bytes += [1, 1, 0, 0]; $0.number(UInt32(1))
                }
            ),
            ("padding of a structure", "y(y)", { $0.bytes += [1, 0, 0, 0, 0, 0, 0, 1, 1] }),
            (
                "padding of an empty array", "ax",
                {
                    $0.number(UInt32(0)); $0.bytes += [0, 0, 0, 1]
                }
            ),
            ("more than there are types", "y", { $0.bytes += [1, 0] }),
            ("half an element", "aq", { $0.counted(alignedTo: 2) { $0.bytes += [1, 0, 1] } }),
            ("no types", "", { $0.bytes += [1] }),
            ("an unknown type of an argument", "z", { $0.bytes += [1] }),
            (
                "an entry without its dictionary", "{ss}",
                {
                    $0.text("a"); $0.text("b")
                }
            ),
            (
                "a key that is a container", "a{vs}",
                {
                    $0.number(UInt32(0)); $0.align(8)
                }
            ),
            (
                "a dictionary without values", "a{s}",
                {
                    $0.number(UInt32(0)); $0.align(8)
                }
            ),
            (
                "a dictionary of three", "a{sss}",
                {
                    $0.number(UInt32(0)); $0.align(8)
                }
            ),
        ]
        for (name, types, body) in faults {
            #expect(Self.values(Wire.signal(types, body)) == nil, "\(name)")
        }
    }

    @Test func `headers that D-Bus forbids are refused`() {
        func header(_ change: (inout Wire) -> Void) -> [UInt8] { Wire.signal("", header: change) { _ in } }
        func first(_ index: Int, _ byte: UInt8) -> [UInt8] {
            var bytes = header { _ in }
            bytes[index] = byte
            return bytes
        }
        #expect(Self.values(header { _ in }) == [])
        #expect(
            Self.values(
                header {
                    $0.field(200, "v") {
                        $0.signature("y"); $0.bytes += [1]
                    }
                }) == [])
        let faults: [(String, [UInt8])] = [
            ("an invalid kind", first(1, 0)),
            ("another version", first(3, 2)),
            ("no serial", first(8, 0)),
            ("a kind that wants other fields", first(1, 2)),
            ("a path twice", header { $0.field(1, "o") { $0.text("/radio") } }),
            ("field 0", header { $0.field(0, "y") { $0.bytes += [1] } }),
            ("a path that is a text", header { $0.field(6, "o") { $0.text("/radio") } }),
            ("a name that is none", header { $0.field(7, "s") { $0.text("nobody") } }),
            ("a destination that is none", header { $0.field(6, "s") { $0.text("") } }),
            ("an error's name that is none", header { $0.field(4, "s") { $0.text("failed") } }),
            ("an answer to nothing", header { $0.field(5, "u") { $0.number(UInt32(0)) } }),
            ("a field of two types", header { $0.field(200, "yy") { $0.bytes += [1, 2] } }),
            (
                "padding behind the fields",
                header {
                    $0.field(200, "y") { $0.bytes += [1] }; $0.bytes.append(1)
                }
            ),
        ]
        for (name, bytes) in faults {
            #expect(Self.values(bytes) == nil, "\(name)")
        }
    }

    @Test(arguments: [("/radio", "//"), ("org.example.Test", "org.example"), ("Changed", "Chan.ed")])
    func `names in the header are checked`(_ name: String, _ other: String) throws {
        var bytes = Wire.signal("") { _ in }
        let length = try #require(
            bytes.indices.first { bytes[$0...].starts(with: Array(name.utf8) + [0]) })
        let new = (Array(other.utf8) + Array(repeating: UInt8(ascii: "/"), count: 20)).prefix(name.utf8.count)
        bytes.replaceSubrange(length..<length + name.utf8.count, with: new)
        #expect(Self.values(bytes) == nil)
    }

    @Test(arguments: [(64, true), (65, false)])
    func `at most 64 containers are within one another`(_ depth: Int, _ isAllowed: Bool) {
        let bytes = Wire.signal("v") { body in
            for _ in 1..<depth { body.signature("v") }
            body.signature("y")
            body.bytes.append(9)
        }
        #expect((Self.values(bytes) != nil) == isAllowed)
        // A dictionary and its entry are two.
        var value = DBusValue.byte(9)
        for _ in 0..<depth / 3 { value = .dictionary(key: "s", value: "v", [.string("a"): .variant(value)]) }
        for _ in 0..<depth % 3 { value = .variant(value) }
        #expect(
            ((try? DBusMessage(signal: "A", path: "/", interface: "a.b", destination: nil, [value])) != nil)
                == isAllowed)
    }

    @Test(arguments: ["a", "("])
    func `at most 32 arrays and 32 structures are in a type`(_ opening: Character) throws {
        for (depth, isAllowed) in [(32, true), (33, false)] {
            let open = String(repeating: opening, count: depth)
            let close = String(repeating: ")", count: opening == "(" ? depth : 0)
            let bytes = Wire.signal("g") { $0.signature(open + "y" + close) }
            #expect((Self.values(bytes) != nil) == isAllowed)
        }
        let alternating = String(repeating: "a(", count: 32) + "y" + String(repeating: ")", count: 32)
        #expect(Self.values(Wire.signal("g") { $0.signature(alternating) }) != nil)
    }
}
