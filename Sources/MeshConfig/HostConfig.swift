// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// A configuration that was checked: everything in it can be used as it is.
public struct HostConfig: Sendable, Hashable {
    public var daemon = DaemonConfig()
    public var journal = JournalConfig()
    /// `[defaults.link]`; already part of every device's ``DeviceConfig/link``.
    public var linkDefaults = LinkConfig()
    public var modules: [ModuleConfig] = []
    public var devices: [DeviceConfig] = []
    public var shares: [ShareConfig] = []

    public init() {}
}

/// `[daemon]`
public struct DaemonConfig: Sendable, Hashable {
    public var logLevel = ConfigSchema.Daemon.logLevel.fallback
    public var stateDirectory = ConfigSchema.Daemon.stateDir.fallback
    public var controlSocket = ConfigSchema.Daemon.controlSocket.fallback
    /// Folders that are searched for modules; empty means the built-in search path.
    public var modulePath = ConfigSchema.Daemon.modulePath.fallback

    public init() {}
}

/// `[journal]`: the messages that are kept for clients.
public struct JournalConfig: Sendable, Hashable {
    /// For each device.
    public var maximumMessages = ConfigSchema.Journal.maxMessages.fallback
    public var maximumAge = ConfigSchema.Journal.maxAge.fallback
    public var sync = ConfigSchema.Journal.sync.fallback

    public init() {}
}

/// When a message counts as kept.
public enum JournalSync: String, Sendable, Hashable, CaseIterable {
    /// Once it is on the disk: it survives a loss of power.
    case full
    /// Once the system has it: it survives an end of the daemon.
    case normal
}

/// `[defaults.link]` and `link` of a device: how a link is made and kept.
public struct LinkConfig: Sendable, Hashable {
    public var connectTimeout = ConfigSchema.Link.connectTimeout.fallback
    public var backoffFirst = ConfigSchema.Backoff.first.fallback
    public var backoffMaximum = ConfigSchema.Backoff.max.fallback
    /// 0 means that the host never gives up.
    public var maximumRetries = ConfigSchema.Link.maxRetries.fallback
    public var stableAfter = ConfigSchema.Link.stableAfter.fallback
    public var contentionBackoff = ConfigSchema.Link.contentionBackoff.fallback

    public init() {}
}

/// `[module.NAME]`: where a module is and how it runs.
public struct ModuleConfig: Sendable, Hashable {
    public var name: String
    /// Its library, for one outside the search path.
    public var path: String?
    /// The program that is the module, and its arguments, where it is no library.
    public var command: [String]?
    /// Where it runs; nil: in the daemon's process if it comes with meshhost, else in processes of its own.
    public var isolation: ModuleIsolation?
    /// The address space of each of its processes, in MiB; 0: no limit.
    public var memoryLimit = ConfigSchema.Module.memory.fallback
    /// The digest that its file must have, 64 hexadecimal digits in lower case; nil: any.
    public var sha256: String?
    public var position: SourcePosition

    public init(name: String, path: String? = nil, position: SourcePosition = .none) {
        self.name = name
        self.path = path
        self.position = position
    }
}
