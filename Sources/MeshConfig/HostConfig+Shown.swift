// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

// `meshhost config show`: the effective configuration with all defaults. Secrets are left out by their type: a
// reference is shown, a secret that stands in the configuration itself is not.

extension HostConfig {
    /// The configuration as TOML that reads as the same configuration again, inline secrets aside.
    public func shownTOML() -> String {
        shownSections.map(\.toml).joined(separator: "\n")
    }

    /// The configuration as JSON with the same keys.
    public func shownJSON() -> JSONValue {
        var root = JSONValue.object([:])
        for section in shownSections {
            let content = section.json
            if let list = section.list {
                root.insert(.array((root[list]?.arrayValue ?? []) + [content]), at: [list])
            } else if section.path.isEmpty {
                root = content
            } else {
                root.insert(content, at: section.path[...])
            }
        }
        return root
    }

    private var shownSections: [ShownSection] {
        var sections = [ShownSection(entries: [(["config_version"], 1)]), daemon.shown, journal.shown]
        sections.append(ShownSection(path: ["defaults", "link"], entries: linkDefaults.shownEntries))
        sections += modules.map(\.shown)
        sections += devices.map(\.shown)
        sections += shares.map(\.shown)
        return sections
    }
}

extension ModuleConfig {
    fileprivate var shown: ShownSection {
        var section = ShownSection(path: ["module", name], entries: [])
        if let path { section.entries.append((["path"], .string(path))) }
        if let command { section.entries.append((["command"], .array(command.map { .string($0) }))) }
        if let isolation { section.entries.append((["isolation"], .string(isolation.rawValue))) }
        section.entries.append((["memory_mib"], .int(Int64(memoryLimit))))
        if let sha256 { section.entries.append((["sha256"], .string(sha256))) }
        return section
    }
}

/// A section on its way to TOML and JSON; keys of inner tables are paths.
private struct ShownSection {
    var path: [String] = []
    /// The list of tables that this is an element of.
    var list: String?
    var entries: [(path: [String], value: JSONValue)]
    var comment: String?

    var toml: String {
        var lines: [String] = []
        if let list {
            lines.append("[[\(list)]]")
        } else if !path.isEmpty {
            lines.append("[\(Self.tomlKey(path))]")
        }
        if let comment {
            lines.append("# \(comment)")
        }
        lines += entries.map { "\(Self.tomlKey($0.path)) = \($0.value.toml)" }
        return lines.map { $0 + "\n" }.joined()
    }

    var json: JSONValue {
        var result = JSONValue.object([:])
        for entry in entries {
            result.insert(entry.value, at: entry.path[...])
        }
        return result
    }

    private static func tomlKey(_ path: [String]) -> String {
        path.map { $0.isBareKey ? $0 : $0.quoted }.joined(separator: ".")
    }
}

extension JSONValue {
    fileprivate mutating func insert(_ value: JSONValue, at path: ArraySlice<String>) {
        guard let key = path.first else {
            self = value
            return
        }
        var members = objectValue ?? [:]
        members[key, default: .object([:])].insert(value, at: path.dropFirst())
        self = .object(members)
    }

    /// The value in one line of TOML; null, which TOML lacks, as an empty table.
    fileprivate var toml: String {
        switch self {
        case .null: "{}"
        case .bool(let flag): "\(flag)"
        case .int(let number): "\(number)"
        case .double(let number): "\(number)"
        case .string(let text): text.quoted
        case .array(let elements): "[\(elements.map(\.toml).joined(separator: ", "))]"
        case .object(let members):
            members.isEmpty
                ? "{}"
                : "{ "
                    + members.sorted { $0.key < $1.key }
                    .map { "\($0.key.isBareKey ? $0.key : $0.key.quoted) = \($0.value.toml)" }
                    .joined(separator: ", ") + " }"
        }
    }
}

extension DaemonConfig {
    fileprivate var shown: ShownSection {
        ShownSection(
            path: ["daemon"],
            entries: [
                (["log_level"], .string(logLevel.name)), (["state_dir"], .string(stateDirectory)),
                (["control_socket"], .string(controlSocket)),
                (["module_path"], .array(modulePath.map { .string($0) })),
            ])
    }
}

extension JournalConfig {
    fileprivate var shown: ShownSection {
        ShownSection(
            path: ["journal"],
            entries: [
                (["max_messages"], .int(Int64(maximumMessages))), (["max_age"], .string(maximumAge.optionText)),
                (["sync"], .string(sync.rawValue)),
            ])
    }
}

extension LinkConfig {
    fileprivate var shownEntries: [(path: [String], value: JSONValue)] {
        [
            (["connect_timeout"], .string(connectTimeout.optionText)),
            (["backoff", "first"], .string(backoffFirst.optionText)),
            (["backoff", "max"], .string(backoffMaximum.optionText)),
            (["max_retries"], .int(Int64(maximumRetries))),
            (["stable_after"], .string(stableAfter.optionText)),
            (["contention_backoff"], .string(contentionBackoff.optionText)),
        ]
    }
}

extension DeviceConfig {
    fileprivate var shown: ShownSection {
        var section = ShownSection(
            list: "device",
            entries: [
                (["name"], .string(name)), (["module"], .string(module)), (["optional"], .bool(isOptional)),
                (["autoconnect"], .bool(autoconnect)), (["protocol"], .string(deviceProtocol.rawValue)),
            ])
        if let adapter {
            section.entries.append((["adapter"], .string(adapter)))
        }
        section.entries += companion.shownEntries.map { (["companion"] + $0.path, $0.value) }
        section.entries += link.shownEntries.map { (["link"] + $0.path, $0.value) }
        section.entries += options.sorted { $0.key < $1.key }.map { (["options", $0.key], $0.value.shown) }
        section.comment = disabledReason.map {
            "disabled: " + $0.split(whereSeparator: \.isNewline).joined(separator: " ")
        }
        return section
    }
}

extension CompanionConfig {
    fileprivate var shownEntries: [(path: [String], value: JSONValue)] {
        [
            (["send_wait"], .string(sendWait.optionText)), (["set_clock"], .bool(setsClock)),
            (["backlog"], .int(Int64(backlog))), (["probe_after"], .string(probeAfter.optionText)),
        ]
    }
}

extension OptionSetting {
    fileprivate var shown: JSONValue {
        switch self {
        case .value(let value): value
        case .secret(let reference, _): reference.shown
        case .unchecked(let text): .string(text.description)
        }
    }
}

extension SecretReference {
    fileprivate var shown: JSONValue {
        switch self {
        case .file(let path): ["file": .string(path)]
        case .environment(let name): ["env": .string(name)]
        case .credential(let name): ["credential": .string(name)]
        case .inline(let text): .string(text.description)
        }
    }
}

extension ShareConfig {
    fileprivate var shown: ShownSection {
        var section = ShownSection(list: "share", entries: [])
        if let name {
            section.entries.append((["name"], .string(name)))
        }
        let addresses = listen.map { JSONValue.string($0.description) }
        section.entries += [
            (["type"], .string(kind.rawValue)), (["device"], .string(device)),
            (["listen"], addresses.count == 1 ? addresses[0] : .array(addresses)),
        ]
        // With tokens, each has its own.
        if tokens.isEmpty { section.entries.append((["role"], .string(role.rawValue))) }
        section.entries.append((["insecure"], .bool(isInsecure)))
        if let tls {
            section.entries += [
                (["tls_certificate"], .string(tls.certificate)), (["tls_key"], .string(tls.key)),
            ]
        }
        if !tokens.isEmpty { section.entries.append((["token"], .array(tokens.map(\.shown)))) }
        section.entries += [
            (["max_clients"], .int(Int64(maximumClients))), (["queue_frames"], .int(Int64(queueFrames))),
            (["queue_bytes"], .int(Int64(queueBytes))), (["stuck_timeout"], .string(stuckTimeout.optionText)),
            (["rx_log"], .bool(receivedPacketLogs)), (["echo"], .bool(echoes)),
            (["airtime_percent"], .int(Int64(airtimePercent))), (["airtime_burst"], .string(airtimeBurst.optionText)),
        ]
        return section
    }
}

extension ShareTokenConfig {
    fileprivate var shown: JSONValue {
        ["name": .string(name), "role": .string(role.rawValue), "secret": secret.shown]
    }
}
