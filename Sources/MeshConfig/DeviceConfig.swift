// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

public import MeshTransportAPI

/// `[[device]]`: something with a stable name that the host keeps a link to.
public struct DeviceConfig: Sendable, Hashable {
    public var name: String
    public var module: String
    /// Where the module is and how it runs, if the configuration says so; without its position.
    public var moduleConfig: ModuleConfig?
    /// Where the module is, for one outside the search path.
    public var modulePath: String? { moduleConfig?.path }
    public var isOptional = ConfigSchema.Device.optional.fallback
    /// Whether the link is wanted as long as no intent is stored.
    public var autoconnect = ConfigSchema.Device.autoconnect.fallback
    public var deviceProtocol = ConfigSchema.Device.proto.fallback
    public var adapter: String?
    public var companion = CompanionConfig()
    /// The device's own settings over the defaults.
    public var link = LinkConfig()
    /// The module's options as written; checked, unless the device is disabled.
    public var options: [String: OptionSetting] = [:]
    /// Why the device cannot be used: it is optional and its module is not available.
    public var disabledReason: String?
    /// The `[[device]]` header.
    public var position: SourcePosition = .none

    public init(name: String, module: String) {
        self.name = name
        self.module = module
    }
}

/// What the host speaks with a device.
public enum DeviceProtocol: String, Sendable, Hashable, CaseIterable {
    /// The MeshCore companion protocol.
    case companion
    /// Nothing: the host only keeps the link.
    case none
}

/// `companion` of a device: how the host plays the radio for its clients.
public struct CompanionConfig: Sendable, Hashable {
    /// How long a client's send may wait while the radio is away; zero refuses at once.
    public var sendWait = ConfigSchema.Companion.sendWait.fallback
    /// Whether the radio's clock is set when it is behind the host's.
    public var setsClock = ConfigSchema.Companion.setClock.fallback
    /// How many of the newest messages a client gets that was never here before.
    public var backlog = ConfigSchema.Companion.backlog.fallback
    /// How long nothing may come from the radio before it is asked whether it is there.
    public var probeAfter = ConfigSchema.Companion.probeAfter.fallback

    public init() {}
}

/// One option of a module.
public enum OptionSetting: Sendable, Hashable {
    case value(JSONValue)
    /// A secret, and what it becomes when it is resolved.
    case secret(SecretReference, OptionSpec.Kind)
    /// An option of a module that is not available: it may be a secret, so it is never shown.
    case unchecked(SecretText)
}

extension DeviceConfig {
    /// The options with all secrets read: what a factory's `check` takes. Empty for a disabled device.
    public func resolvedOptions(_ source: SecretSource) throws(MeshError) -> [String: JSONValue] {
        var result: [String: JSONValue] = [:]
        for (name, setting) in options {
            switch setting {
            case .value(let value): result[name] = value
            case .secret(let reference, let kind):
                do throws(MeshError) {
                    result[name] = kind.json(ofText: try reference.resolve(source))
                } catch {
                    throw MeshError(error.code, "option \"\(name)\": \(error.message)", cause: error.cause)
                        .adding(device: self.name, operation: "read secret")
                }
            case .unchecked: break
            }
        }
        return result
    }
}

extension OptionSpec.Kind {
    /// Text from outside a file as the JSON that this kind takes; left a text where it does not fit, for the option
    /// table to refuse.
    func json(ofText text: String) -> JSONValue {
        switch self {
        case .string, .duration: .string(text)
        case .int: Int64(text).map { .int($0) } ?? .string(text)
        case .bool: text == "true" ? .bool(true) : text == "false" ? .bool(false) : .string(text)
        }
    }
}
