// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

/// `[[share]]`: a local endpoint through which clients use a device.
public struct ShareConfig: Sendable, Hashable {
    public var name: String?
    public var kind: ShareKind
    /// A configured device whose protocol is companion.
    public var device: String
    /// At least one address.
    public var listen: [ListenAddress]
    public var role = ConfigSchema.Share.role.fallback
    /// Whether an address outside this host was asked for in so many words.
    public var isInsecure = ConfigSchema.Share.insecure.fallback
    public var maximumClients = ConfigSchema.Share.maxClients.fallback
    public var queueFrames = ConfigSchema.Share.queueFrames.fallback
    public var queueBytes = ConfigSchema.Share.queueBytes.fallback
    public var stuckTimeout = ConfigSchema.Share.stuckTimeout.fallback
    /// The `[[share]]` header.
    public var position: SourcePosition = .none
    /// Its number among shares that would otherwise have the same ``id``, from 1.
    var ordinal = 1

    public init(name: String? = nil, kind: ShareKind, device: String, listen: [ListenAddress]) {
        self.name = name
        self.kind = kind
        self.device = device
        self.listen = listen
    }

    /// What tells it from every other share: its name, else its device and where it listens. Two shares of one device on
    /// the same address can only be on port 0; they are numbered in the order of the file.
    public var id: String { ordinal == 1 ? unnumberedID : "\(unnumberedID) #\(ordinal)" }

    var unnumberedID: String {
        name ?? "\(device) \(listen.map(\.description).joined(separator: ", "))"
    }
}

/// What clients of a share speak.
public enum ShareKind: String, Sendable, Hashable, CaseIterable {
    case companionTCP = "companion-tcp"
    case companionUnix = "companion-unix"
}

/// The most a client of a share may do.
public enum ShareRole: String, Sendable, Hashable, CaseIterable {
    case observe
    case chat
    case admin
    case owner
}
