// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// A value of a configuration file with its place: what TOML, JSON, environment variables and `--set` all become.
struct ConfigNode: Sendable {
    enum Value: Sendable {
        case table(ConfigTable)
        case array([ConfigNode])
        case string(String)
        case integer(Int64)
        case real(Double)
        case boolean(Bool)
        case dateOrTime
        case null
        /// Text from outside a file (or a default); whoever reads it knows the type it must have.
        case unparsed(String)
    }

    var value: Value
    var position: SourcePosition

    init(_ value: Value, at position: SourcePosition) {
        self.value = value
        self.position = position
    }

    var table: ConfigTable? {
        if case .table(let table) = value { table } else { nil }
    }

    /// The text of a string, parsed or not.
    var text: String? {
        switch value {
        case .string(let text), .unparsed(let text): text
        case .table, .array, .integer, .real, .boolean, .dateOrTime, .null: nil
        }
    }

    /// The type as messages name it.
    var typeName: String {
        switch value {
        case .table: "a table"
        case .array: "a list"
        case .string, .unparsed: "a text"
        case .integer: "a whole number"
        case .real: "a fraction"
        case .boolean: "true or false"
        case .dateOrTime: "a date or time"
        case .null: "null"
        }
    }
}

/// A table in the order of its text. Keys are unique.
struct ConfigTable: Sendable {
    private(set) var entries: [ConfigEntry] = []
    private var places: [String: Int] = [:]

    init(_ entries: [ConfigEntry] = []) {
        entries.forEach { set($0) }
    }

    subscript(key: String) -> ConfigEntry? {
        places[key].map { entries[$0] }
    }

    /// Replaces the entry with the same key, or appends.
    mutating func set(_ entry: ConfigEntry) {
        if let place = places[entry.key] {
            entries[place] = entry
        } else {
            places[entry.key] = entries.count
            entries.append(entry)
        }
    }
}

/// One member of a table.
struct ConfigEntry: Sendable {
    var key: String
    var keyPosition: SourcePosition
    var node: ConfigNode
    /// For a module option: written directly in the device rather than below `options`.
    var isShorthand = false
}
