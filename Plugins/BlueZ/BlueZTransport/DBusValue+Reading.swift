// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshDBus

/// Reads values of an expected kind, through variants. What is of another kind reads as nothing: a newer bluetoothd may say
/// things in a new way.
extension DBusValue {
    /// Without the variants around it.
    var plain: DBusValue {
        var value = self
        while case .variant(let inner) = value { value = inner }
        return value
    }

    /// A string or an object path.
    var text: String? {
        switch plain {
        case .string(let text), .objectPath(let text): text
        default: nil
        }
    }

    var flag: Bool? {
        if case .bool(let flag) = plain { flag } else { nil }
    }

    /// A whole number of any width.
    var number: Int? {
        switch plain {
        case .byte(let number): Int(number)
        case .int16(let number): Int(number)
        case .uint16(let number): Int(number)
        case .int32(let number): Int(number)
        case .uint32(let number): Int(number)
        case .int64(let number): Int(exactly: number)
        case .uint64(let number): Int(exactly: number)
        default: nil
        }
    }

    /// A signal strength in dBm. What no receiver can measure is none: 127 says so (Core Specification, Vol 4 Part E §7.7.65.2),
    /// and of whatever else lies outside -127...20 nothing can be computed.
    var signalStrength: Int? {
        guard case .int16(let number) = plain, (-127...20).contains(number) else { return nil }
        return Int(number)
    }

    var octets: [UInt8]? {
        if case .bytes(let bytes) = plain { bytes } else { nil }
    }

    /// The elements of an array of strings or object paths.
    var texts: [String]? {
        if case .array(_, let elements) = plain { elements.compactMap(\.text) } else { nil }
    }

    var entries: [DBusValue: DBusValue]? {
        if case .dictionary(_, _, let entries) = plain { entries } else { nil }
    }

    /// The entries of `a{sv}` by their names.
    var properties: [String: DBusValue]? {
        guard let entries else { return nil }
        var properties: [String: DBusValue] = [:]
        properties.reserveCapacity(entries.count)
        for (key, value) in entries {
            if let name = key.text { properties[name] = value.plain }
        }
        return properties
    }

    /// An `a{sv}`.
    static func options(_ entries: [String: DBusValue]) -> DBusValue {
        var values: [DBusValue: DBusValue] = [:]
        for (name, value) in entries { values[.string(name)] = .variant(value) }
        return .dictionary(key: "s", value: "v", values)
    }
}
