// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// One value from outside the files: `MESHHOST__DAEMON__LOG_LEVEL=debug` or `--set daemon.log_level=debug`.
///
/// Devices, shares and modules are addressed by name: `MESHHOST__DEVICE__ROOF__PIN`, `--set device.roof.pin=…`. The
/// value is taken as it is, character by character, and read as the type that its key takes.
struct ConfigOverride {
    var path: [String]
    var text: String
    var position: SourcePosition

    static let environmentPrefix = "MESHHOST__"

    /// The overrides of an environment, in the byte order of the names.
    static func all(in environment: [String: String]) -> [ConfigOverride] {
        environment.filter { $0.key.hasPrefix(environmentPrefix) }
            .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
            .map { name, value in
                ConfigOverride(
                    path: segments(of: name.dropFirst(environmentPrefix.count).lowercased()), text: value,
                    position: .environment(name))
            }
    }

    /// One `--set` argument.
    init(argument: String) throws(ConfigDiagnostic) {
        guard let equals = argument.firstIndex(of: "=") else {
            throw ConfigDiagnostic(
                .error, .overrideUnusable, at: .argument(argument), "there is no \"=\" in this argument",
                hint: "write --set section.key=value")
        }
        let key = argument[..<equals]
        path = key.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        text = String(argument[argument.index(after: equals)...])
        position = .argument(String(key))
    }

    private init(path: [String], text: String, position: SourcePosition) {
        self.path = path
        self.text = text
        self.position = position
    }

    /// `a__b_c` → `a`, `b_c`.
    private static func segments(of name: String) -> [String] {
        var segments = [""]
        var rest = name[...]
        while let character = rest.first {
            if rest.hasPrefix("__") {
                segments.append("")
                rest = rest.dropFirst(2)
            } else {
                segments[segments.count - 1].append(character)
                rest = rest.dropFirst()
            }
        }
        return segments
    }
}

extension ConfigOverride {
    /// The layer that holds this value alone, for the configuration below it.
    func layer(over root: ConfigTable) throws(ConfigDiagnostic) -> ConfigTable {
        guard path.count <= 16, path.allSatisfy({ !$0.isEmpty }) else {
            throw refusal("it names no key")
        }
        switch path[0] {
        case "device", "share":
            let list = path[0]
            guard path.count >= 3 else {
                throw refusal("it names no key of one \(list)", hint: "write the name of the \(list) and a key")
            }
            guard path[2...] != ["name"] else {
                throw refusal("a name cannot be set")
            }
            let name = try existingName(path[1], among: root.names(inList: list))
            var inner = nested(path[2...])
            if list == "share", path[2] == "token" {
                inner = try token(of: root.elements(inList: list).first { $0["name"]?.node.text == name })
            }
            return ConfigTable([element(of: list, name: name, inner)])
        case "module":
            guard path.count >= 3 else {
                throw refusal("it names no key of one module", hint: "write the name of the module and a key")
            }
            let name = try existingName(path[1], among: root.moduleNames)
            return ConfigTable([nested(["module", name] + path[2...])])
        default:
            return ConfigTable([nested(path[...])])
        }
    }

    /// `share.NAME.token.NAME.KEY`.
    private func token(of share: ConfigTable?) throws(ConfigDiagnostic) -> ConfigEntry {
        guard path.count >= 5 else {
            throw refusal("it names no key of one token", hint: "write the name of the token and a key")
        }
        guard path[4...] != ["name"] else {
            throw refusal("a name cannot be set")
        }
        let name = try existingName(path[3], among: share?.names(inList: "token") ?? [])
        return element(of: "token", name: name, nested(path[4...]))
    }

    /// A list with one element, which has a name and one key more.
    private func element(of list: String, name: String, _ inner: ConfigEntry) -> ConfigEntry {
        let table = ConfigTable([entry("name", .string(name)), inner])
        return entry(list, .array([ConfigNode(.table(table), at: position)]))
    }

    private func nested(_ path: ArraySlice<String>) -> ConfigEntry {
        let value: ConfigNode.Value =
            path.count == 1 ? .unparsed(text) : .table(ConfigTable([nested(path.dropFirst())]))
        return entry(path[path.startIndex], value)
    }

    private func entry(_ key: String, _ value: ConfigNode.Value) -> ConfigEntry {
        ConfigEntry(key: key, keyPosition: position, node: ConfigNode(value, at: position))
    }

    /// The name that is meant. Names of environment variables know neither lower case nor `-`.
    private func existingName(_ name: String, among names: [String]) throws(ConfigDiagnostic) -> String {
        guard position.isEnvironment, !names.contains(name) else { return name }
        let matches = names.filter { $0.lowercased().replacingDashes == name }
        guard matches.count <= 1 else {
            throw refusal("it could mean \(matches.map(\.quoted).joined(separator: " or "))", hint: "use --set")
        }
        return matches.first ?? name
    }

    private func refusal(_ message: String, hint: String? = nil) -> ConfigDiagnostic {
        ConfigDiagnostic(.error, .overrideUnusable, at: position, message, hint: hint)
    }
}

extension ConfigTable {
    /// The names in a list of named tables.
    func names(inList list: String) -> [String] {
        elements(inList: list).compactMap { $0["name"]?.node.text }.uniqued
    }

    /// The tables in a list of tables.
    func elements(inList list: String) -> [ConfigTable] {
        guard case .array(let elements)? = self[list]?.node.value else { return [] }
        return elements.compactMap(\.table)
    }

    /// The modules that have a section or a device.
    fileprivate var moduleNames: [String] {
        var names = self["module"]?.node.table?.entries.map(\.key) ?? []
        if case .array(let devices)? = self["device"]?.node.value {
            names += devices.compactMap { $0.table?["module"]?.node.text }
        }
        return names.uniqued
    }
}

extension [String] {
    fileprivate var uniqued: [String] {
        var seen: Set<String> = []
        return filter { seen.insert($0).inserted }
    }
}

extension String {
    fileprivate var replacingDashes: String { String(map { $0 == "-" ? "_" : $0 }) }
}
