// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

import MeshTransportAPI

/// Turns the merged layers into a ``HostConfig`` and reports everything that is wrong with them.
struct HostConfigReader {
    /// One section as it is read.
    struct Section {
        var label: SectionLabel
        var table: ConfigTable
        /// The header.
        var position: SourcePosition
        /// Known keys that were proposed in the place of unknown ones: they are not reported as missing as well.
        var proposed: Set<String> = []
        var isDevice = false
        /// How overrides address it.
        var overridePath: [String] = []
    }

    /// A device as shares see it, whether or not all of it could be read.
    struct KnownDevice {
        var name: String
        var position: SourcePosition
        var deviceProtocol: DeviceProtocol
    }

    /// Which device a module's options mean.
    struct Identity {
        var module: String
        var text: String
        var device: String
        var position: SourcePosition
    }

    /// An address that a share listens on.
    struct Listener {
        var address: ListenAddress
        var position: SourcePosition
    }

    var diagnostics: DiagnosticList
    /// False when a whole file is missing from what was merged. Then nothing is called missing or unknown that this
    /// file may hold.
    let isComplete: Bool
    let modules: (ModuleRequest) -> ModuleLookup

    var config = HostConfig()
    var knownDevices: [KnownDevice] = []
    var identities: [Identity] = []
    var listeners: [Listener] = []
    var lookups: [String: ModuleLookup] = [:]
    var requirements: [ConfigRequirement] = []

    init(diagnostics: DiagnosticList, isComplete: Bool, modules: @escaping (ModuleRequest) -> ModuleLookup) {
        self.diagnostics = diagnostics
        self.isComplete = isComplete
        self.modules = modules
    }

    mutating func read(_ root: ConfigTable) -> HostConfig {
        var top = Section(label: .root, table: root, position: .none)
        judgeKeys(of: &top, ConfigSchema.Root.section.keys)
        _ = value(ConfigSchema.Root.configVersion, in: top)
        readDaemon(top)
        readJournal(top)
        readDefaults(top)
        readModules(top)
        for (index, node) in elements("device", of: top).enumerated() {
            readDevice(node, ordinal: index + 1)
        }
        var names: [String: SourcePosition] = [:]
        for (index, node) in elements("share", of: top).enumerated() {
            readShare(node, ordinal: index + 1, &names)
        }
        return config
    }

    private mutating func readDaemon(_ top: Section) {
        let written = subsection("daemon", of: top)
        defer {
            require(.stateFolder(config.daemon.stateDirectory), ConfigSchema.Daemon.stateDir.spec, in: written)
            require(.controlSocket(config.daemon.controlSocket), ConfigSchema.Daemon.controlSocket.spec, in: written)
        }
        guard var section = written else { return }
        judgeKeys(of: &section, ConfigSchema.Daemon.section.keys)
        config.daemon.logLevel = value(ConfigSchema.Daemon.logLevel, in: section)
        config.daemon.stateDirectory = value(ConfigSchema.Daemon.stateDir, in: section)
        config.daemon.controlSocket = value(ConfigSchema.Daemon.controlSocket, in: section)
        config.daemon.modulePath = value(ConfigSchema.Daemon.modulePath, in: section)
    }

    /// Notes what a key of the daemon names, or its default.
    private mutating func require(_ thing: ConfigRequirement.Thing, _ key: KeySpec, in section: Section?) {
        let place = section?.table[key.name]?.node.position ?? .builtIn
        requirements.append(ConfigRequirement(thing, at: place, in: SectionLabel.root.table("daemon").text))
    }

    private mutating func readJournal(_ top: Section) {
        guard var section = subsection("journal", of: top) else { return }
        judgeKeys(of: &section, ConfigSchema.Journal.section.keys)
        config.journal.maximumMessages = value(ConfigSchema.Journal.maxMessages, in: section)
        config.journal.maximumAge = value(ConfigSchema.Journal.maxAge, in: section)
        config.journal.sync = value(ConfigSchema.Journal.sync, in: section)
    }

    private mutating func readDefaults(_ top: Section) {
        guard var section = subsection("defaults", of: top) else { return }
        judgeKeys(of: &section, ConfigSchema.Root.defaultsKeys)
        if let link = subsection("link", of: section) {
            config.linkDefaults = readLink(link, over: LinkConfig())
        }
    }

    /// The settings of a link, where the keys that are missing have the values of `base`.
    mutating func readLink(_ section: Section, over base: LinkConfig) -> LinkConfig {
        var section = section
        var link = base
        judgeKeys(of: &section, ConfigSchema.Link.section.keys)
        link.connectTimeout = written(ConfigSchema.Link.connectTimeout, in: section) ?? base.connectTimeout
        link.maximumRetries = written(ConfigSchema.Link.maxRetries, in: section) ?? base.maximumRetries
        link.stableAfter = written(ConfigSchema.Link.stableAfter, in: section) ?? base.stableAfter
        link.contentionBackoff = written(ConfigSchema.Link.contentionBackoff, in: section) ?? base.contentionBackoff
        if var backoff = subsection("backoff", of: section) {
            judgeKeys(of: &backoff, ConfigSchema.Backoff.section.keys)
            let first = written(ConfigSchema.Backoff.first, in: backoff)
            let max = written(ConfigSchema.Backoff.max, in: backoff)
            link.backoffFirst = first ?? base.backoffFirst
            link.backoffMaximum = max ?? base.backoffMaximum
            if link.backoffFirst > link.backoffMaximum, first != nil || max != nil {
                let place = backoff.table[first != nil ? "first" : "max"]?.node.position ?? backoff.position
                diagnostics.error(
                    .contradiction, at: place, in: backoff.label.text,
                    "\"first\" (\(link.backoffFirst.optionText)) is longer than \"max\" "
                        + "(\(link.backoffMaximum.optionText))",
                    hint: first != nil && max != nil ? nil : "write both first and max")
            }
        }
        return link
    }

    /// The module's answer; asked for once.
    mutating func lookUp(_ module: String) -> ModuleLookup {
        if let known = lookups[module] { return known }
        let lookup = modules(config.request(forModule: module))
        lookups[module] = lookup
        return lookup
    }
}
