// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import Glibc

extension DBusValue {
    /// The signature of the value's type, such as `a{sv}`. Not checked: a structure of nothing has `()`, which D-Bus
    /// does not allow.
    public var typeSignature: String {
        switch self {
        case .byte: "y"
        case .bool: "b"
        case .int16: "n"
        case .uint16: "q"
        case .int32: "i"
        case .uint32: "u"
        case .int64: "x"
        case .uint64: "t"
        case .double: "d"
        case .string: "s"
        case .objectPath: "o"
        case .signature: "g"
        case .descriptor: "h"
        case .bytes: "ay"
        case .array(let element, _): "a" + element
        case .dictionary(let key, let value, _): "a{\(key)\(value)}"
        case .structure(let fields): "(" + fields.map(\.typeSignature).joined() + ")"
        case .variant: "v"
        }
    }

    /// Visits the descriptors of this value and of those within it.
    fileprivate func forEachDescriptor(_ body: (Int32) -> Void) {
        switch self {
        case .descriptor(let descriptor): body(descriptor)
        case .array(_, let elements), .structure(let elements): elements.forEach { $0.forEachDescriptor(body) }
        case .dictionary(_, _, let entries):
            for (key, value) in entries {
                key.forEachDescriptor(body)
                value.forEachDescriptor(body)
            }
        case .variant(let value): value.forEachDescriptor(body)
        case .byte, .bool, .int16, .uint16, .int32, .uint32, .int64, .uint64, .double, .string, .objectPath, .signature,
            .bytes:
            break
        }
    }
}

extension [DBusValue] {
    /// Closes every descriptor in these results: for a caller that does not want them after all.
    public func closeDescriptors() {
        for value in self { value.forEachDescriptor { if $0 >= 0 { close($0) } } }
    }
}
