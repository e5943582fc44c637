// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Signatures within a message (D-Bus Specification, "Type System").
extension DBusWireReader {
    /// "The maximum depth of container type nesting is 32 array type codes and 32 open parentheses."
    static let maximumTypeDepth = 32

    private static let basicTypes = Array("ybnqiuxtdsogh".utf8)

    /// What types are within: arrays, and structures or dictionary entries.
    private struct Depth {
        var arrays = 0
        var structures = 0
    }

    /// Throws unless these are complete types, one behind the other.
    func checkTypes(_ signature: Range<Int>) throws(DBusError) {
        var start = signature.lowerBound
        while start < signature.upperBound { start = try endOfType(start, within: signature.upperBound) }
    }

    /// Where the one complete type ends that begins at `start`.
    func endOfType(_ start: Int, within limit: Int) throws(DBusError) -> Int {
        try endOfType(start, within: limit, Depth())
    }

    private func endOfType(_ start: Int, within limit: Int, _ depth: Depth) throws(DBusError) -> Int {
        guard start < limit else { throw Self.malformed }
        var depth = depth
        switch bytes[start] {
        case UInt8(ascii: "a"):
            depth.arrays += 1
            guard depth.arrays <= Self.maximumTypeDepth else { throw Self.tooDeep }
            if start + 1 < limit, bytes[start + 1] == UInt8(ascii: "{") {
                return try endOfEntry(start + 1, within: limit, depth)
            }
            return try endOfType(start + 1, within: limit, depth)
        case UInt8(ascii: "("):
            depth.structures += 1
            guard depth.structures <= Self.maximumTypeDepth else { throw Self.tooDeep }
            var next = start + 1
            while next < limit, bytes[next] != UInt8(ascii: ")") { next = try endOfType(next, within: limit, depth) }
            // A structure of nothing would take no bytes, and an array of those no end.
            guard next < limit, next > start + 1 else { throw Self.malformed }
            return next + 1
        case let type:
            guard type == UInt8(ascii: "v") || Self.basicTypes.contains(type) else { throw Self.malformed }
            return start + 1
        }
    }

    /// Of a dictionary: a key of a basic type, and one value.
    private func endOfEntry(_ start: Int, within limit: Int, _ depth: Depth) throws(DBusError) -> Int {
        var depth = depth
        depth.structures += 1
        guard depth.structures <= Self.maximumTypeDepth else { throw Self.tooDeep }
        guard start + 1 < limit, Self.basicTypes.contains(bytes[start + 1]) else { throw Self.malformed }
        let end = try endOfType(start + 2, within: limit, depth)
        guard end < limit, bytes[end] == UInt8(ascii: "}") else { throw Self.malformed }
        return end + 1
    }
}
