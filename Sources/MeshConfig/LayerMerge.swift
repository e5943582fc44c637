// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// Lays configurations over each other: a later layer wins key by key, and named tables meet by their name.
struct LayerMerge {
    /// What all layers together say.
    private(set) var root = ConfigTable()

    /// Lists whose elements have names: at the top, and in the elements of such a list.
    private static let namedLists: Set<String> = ["device", "share"]
    private static let innerNamedLists: [String: Set<String>] = ["share": ["token"]]
    /// Keys that take one text as well as a list.
    private static let flexibleKeys: Set<String> = ["listen"]

    mutating func add(_ layer: ConfigTable, _ diagnostics: inout DiagnosticList) {
        var layer = layer
        Self.gatherOptions(of: &layer, &diagnostics)
        root = Self.merged(root, layer, label: .root, lists: Self.namedLists, areOptions: false, &diagnostics)
    }

    /// `lists` are the keys of named lists; `areOptions` says that a secret may be among the values.
    private static func merged(
        _ base: ConfigTable, _ layer: ConfigTable, label: SectionLabel, lists: Set<String> = [], areOptions: Bool,
        _ diagnostics: inout DiagnosticList
    ) -> ConfigTable {
        var result = base
        for entry in layer.entries {
            guard let old = base[entry.key] else {
                result.set(entry)
                continue
            }
            var new = entry
            if lists.contains(entry.key), case .array(let oldElements) = old.node.value,
                case .array(let newElements) = entry.node.value
            {
                new.node.value = .array(
                    mergedByName(oldElements, newElements, list: entry.key, in: label, &diagnostics))
            } else if case .table(let oldTable) = old.node.value, case .table(let newTable) = entry.node.value,
                !(areOptions && isSecretReference(newTable))
            {
                // Only the tables of devices get their options gathered, so no other one has this key.
                new.node.value = .table(
                    merged(
                        oldTable, newTable, label: label.table(entry.key), areOptions: entry.key == "options",
                        &diagnostics))
            } else if !isReplaceable(old, by: entry, isOption: areOptions) {
                diagnostics.error(
                    .retyped, at: entry.node.position, in: label.text,
                    "\"\(entry.key)\" is \(entry.node.typeName) here and was \(old.node.typeName) at "
                        + "\(old.node.position)", hint: "a later layer must keep the type")
                continue
            }
            result.set(new)
        }
        return result
    }

    /// Elements with a name that the base has are laid over it, once each; all others are appended, so that a name
    /// that one file uses twice stays visible as the error it is.
    private static func mergedByName(
        _ base: [ConfigNode], _ layer: [ConfigNode], list: String, in outer: SectionLabel,
        _ diagnostics: inout DiagnosticList
    ) -> [ConfigNode] {
        var result = base
        var met: Set<Int> = []
        for element in layer {
            guard let table = element.table, let name = table["name"]?.node.text,
                let index = base.indices.first(where: {
                    base[$0].table?["name"]?.node.text == name && !met.contains($0)
                }), let baseTable = base[index].table
            else {
                result.append(element)
                continue
            }
            met.insert(index)
            let isToken = outer.text != nil
            let label = outer.element(of: isToken ? "share.\(list)" : list, name: name, ordinal: index + 1)
            result[index].value = .table(
                merged(
                    baseTable, table, label: label, lists: isToken ? [] : innerNamedLists[list] ?? [],
                    areOptions: isToken, &diagnostics))
        }
        return result
    }

    /// Whether a value may take the place of another. Text from overrides has no type yet, and a secret option may be
    /// a text in one layer and a reference in another.
    private static func isReplaceable(_ old: ConfigEntry, by new: ConfigEntry, isOption: Bool) -> Bool {
        switch (old.node.value, new.node.value) {
        case (.table(let old), .unparsed), (.table(let old), .string):
            return isOption && isSecretReference(old)
        case (.table, .table(let new)), (.string, .table(let new)), (.unparsed, .table(let new)):
            return isOption && isSecretReference(new)
        case (.string, .array), (.array, .string), (.unparsed, .array): return flexibleKeys.contains(new.key)
        case (.array(let elements), .unparsed): return elements.allSatisfy { $0.table == nil }
        case (_, .unparsed), (.unparsed, _): return true
        case (.string, .string), (.integer, .integer), (.real, .real), (.boolean, .boolean), (.array, .array),
            (.dateOrTime, .dateOrTime), (.null, .null):
            return true
        default: return false
        }
    }

    private static func isSecretReference(_ table: ConfigTable) -> Bool {
        table.entries.count == 1 && SecretReference.kinds.contains(table.entries[0].key)
    }
}

extension LayerMerge {
    /// Moves module options that stand directly in a device below its `options`: both spellings mean the same, also
    /// when two layers use one each.
    private static func gatherOptions(of layer: inout ConfigTable, _ diagnostics: inout DiagnosticList) {
        guard var devices = layer["device"], case .array(var elements) = devices.node.value else { return }
        for index in elements.indices {
            guard let table = elements[index].table else { continue }
            let label = SectionLabel.element(of: "device", name: table["name"]?.node.text, ordinal: index + 1)
            elements[index].value = .table(gatheringOptions(of: table, label: label, &diagnostics))
        }
        devices.node.value = .array(elements)
        layer.set(devices)
    }

    private static func gatheringOptions(
        of device: ConfigTable, label: SectionLabel, _ diagnostics: inout DiagnosticList
    ) -> ConfigTable {
        var result = ConfigTable()
        var options: [ConfigEntry] = []
        var header: ConfigEntry?
        for var entry in device.entries {
            if entry.key == "options" {
                header = entry
                guard let table = entry.node.table else {
                    diagnostics.error(
                        .wrongType, at: entry.node.position, in: label.text,
                        "\"options\" takes a table, not \(entry.node.typeName)")
                    continue
                }
                options += table.entries
            } else if ConfigSchema.Device.keyNames.contains(entry.key) {
                result.set(entry)
            } else {
                entry.isShorthand = true
                options.append(entry)
            }
        }
        var table = ConfigTable()
        for entry in options {
            if let first = table[entry.key] {
                diagnostics.error(
                    .optionGivenTwice, at: entry.keyPosition, in: label.text,
                    "option \"\(entry.key)\" is given twice", hint: "the other one is at \(first.keyPosition)")
            } else {
                table.set(entry)
            }
        }
        if let first = header ?? options.first {
            result.set(
                ConfigEntry(
                    key: "options", keyPosition: first.keyPosition,
                    node: ConfigNode(.table(table), at: first.keyPosition)))
        }
        return result
    }
}
