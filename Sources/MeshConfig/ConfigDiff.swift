// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// What a reload has to do. Links of devices that appear nowhere in it stay as they are.
public struct ConfigDiff: Sendable, Hashable {
    /// Names, in the order of the new configuration.
    public var devicesAdded: [String]
    /// Names, in the order of the old configuration.
    public var devicesRemoved: [String]
    /// Names of devices whose link must be made anew. What does not touch the link, such as `autoconnect`, is not
    /// counted: it holds from the next time it is looked at.
    public var devicesChanged: [String]
    /// Names of devices of which ``DeviceConfig/companion`` changed, and the link did not have to be touched for it.
    public var companionsChanged: [String]
    /// ``ShareConfig/id``s, in the order of the new configuration.
    public var sharesAdded: [String]
    /// ``ShareConfig/id``s, in the order of the old configuration.
    public var sharesRemoved: [String]
    /// ``ShareConfig/id``s of shares of which anything changed. A share without a name is added and removed when its
    /// address changes.
    public var sharesChanged: [String]
    /// Keys that changed and take effect when the daemon starts again, such as `daemon.state_dir`.
    public var restartRequired: [String]
    /// The new level, if it changed.
    public var logLevel: LogLevel?

    /// Compares two configurations; where things stand in their files does not matter.
    public init(from old: HostConfig, to new: HostConfig) {
        let devices = Self.compare(old.devices, new.devices, id: \.name, facts: \.linkFacts)
        devicesAdded = devices.added
        devicesRemoved = devices.removed
        devicesChanged = devices.changed
        companionsChanged = Self.compare(old.devices, new.devices, id: \.name, facts: \.companion).changed

        let shares = Self.compare(old.shares, new.shares, id: \.id, facts: \.facts)
        sharesAdded = shares.added
        sharesRemoved = shares.removed
        sharesChanged = shares.changed

        restartRequired = HostConfig.restartKeys.filter { !$0.isSame(old, new) }.map(\.name)
        logLevel = old.daemon.logLevel == new.daemon.logLevel ? nil : new.daemon.logLevel
    }

    /// Whether there is nothing to do.
    public var isEmpty: Bool {
        devicesAdded.isEmpty && devicesRemoved.isEmpty && devicesChanged.isEmpty && sharesAdded.isEmpty
            && companionsChanged.isEmpty && sharesRemoved.isEmpty && sharesChanged.isEmpty && restartRequired.isEmpty
            && logLevel == nil
    }

    private static func compare<Element, Facts: Equatable>(
        _ old: [Element], _ new: [Element], id: (Element) -> String, facts: (Element) -> Facts
    ) -> (added: [String], removed: [String], changed: [String]) {
        let before = Dictionary(old.map { (id($0), facts($0)) }) { first, _ in first }
        let after = Dictionary(new.map { (id($0), facts($0)) }) { first, _ in first }
        return (
            added: new.map(id).filter { before[$0] == nil },
            removed: old.map(id).filter { after[$0] == nil },
            changed: new.map(id).filter { before[$0] != nil && before[$0] != after[$0] }
        )
    }
}

extension DeviceConfig {
    /// The device without what leaves its link alone.
    fileprivate var linkFacts: DeviceConfig {
        var facts = self
        facts.position = .none
        facts.autoconnect = true
        facts.companion = CompanionConfig()
        facts.isOptional = false
        return facts
    }
}

extension ShareConfig {
    fileprivate var facts: ShareConfig {
        var facts = self
        facts.position = .none
        return facts
    }
}

extension HostConfig {
    /// A key that takes effect when the daemon starts again.
    fileprivate struct RestartKey {
        var name: String
        var isSame: (HostConfig, HostConfig) -> Bool

        init<Value: Equatable>(_ section: String, _ key: ConfigKey<Value>, _ value: @escaping (HostConfig) -> Value) {
            assert(key.spec.needsRestart)
            name = "\(section).\(key.spec.name)"
            isSame = { value($0) == value($1) }
        }
    }

    fileprivate static var restartKeys: [RestartKey] {
        [
            RestartKey("daemon", ConfigSchema.Daemon.stateDir, \.daemon.stateDirectory),
            RestartKey("daemon", ConfigSchema.Daemon.controlSocket, \.daemon.controlSocket),
            RestartKey("daemon", ConfigSchema.Daemon.modulePath, \.daemon.modulePath),
            RestartKey("journal", ConfigSchema.Journal.maxMessages, \.journal.maximumMessages),
            RestartKey("journal", ConfigSchema.Journal.maxAge, \.journal.maximumAge),
            RestartKey("journal", ConfigSchema.Journal.sync, \.journal.sync),
        ]
    }
}
