// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshConfig
internal import MeshRuntime
internal import MeshTransportAPI

/// Keys of a device that are handed to its module as the option of the same name, if it has one that the user left out.
private enum SharedOption {
    static let adapter = "adapter"
    /// The adapter of a module that owns it.
    static let controller = "controller"
    static let connectTimeout = "connect_timeout"
}

extension DeviceLinkSettings {
    /// What the reconnection machine has to know of a device whose module says this of itself.
    init(_ device: DeviceConfig, _ module: TransportDescriptor?) {
        var policy = ReconnectionPolicy()
        policy.firstDelay = device.link.backoffFirst
        policy.maximumDelay = device.link.backoffMaximum
        policy.maximumRetries = device.link.maximumRetries == 0 ? nil : Int(device.link.maximumRetries)
        policy.stableAfter = device.link.stableAfter
        policy.contentionDelay = device.link.contentionBackoff
        policy.connectTimeout = device.link.connectTimeout
        // A radio on the air keeps the host that it has: one that hangs up is not taken away by another.
        if module?.capabilities.contains(.adapter) == true { policy.contentionCloses = 0 }
        // A transport with deadlines of its own says better what was too slow: the coordinator's is the last resort then.
        if module?.capabilities.contains(.ownDeadlines) == true {
            policy.connectTimeout = .seconds(200)
        } else if module?.options.contains(where: { $0.name == SharedOption.connectTimeout }) == true {
            policy.connectTimeout += .seconds(5)
        }
        self.init(policy: policy, adapter: AdapterSettings(of: device, module))
    }
}

extension AdapterSettings {
    /// The adapter that the config names, else the one of all devices of a module that has adapters, else the network of a
    /// module that goes through it.
    fileprivate init?(of device: DeviceConfig, _ module: TransportDescriptor?) {
        let capabilities = module?.capabilities ?? []
        if capabilities.contains(.adapter) {
            let name =
                device.adapter ?? device.text(ofOption: SharedOption.adapter)
                ?? device.text(ofOption: SharedOption.controller) ?? device.module
            // Tried now and then though it is said to be away: only a device that has missed it is told of its return, and
            // that one may be taken out of the config meanwhile.
            self.init(name: name, reportsChanges: false)
        } else if let name = device.adapter {
            self.init(name: name)
        } else if capabilities.contains(.network) {
            self = .network
        } else {
            return nil
        }
    }
}

extension TransportSettings {
    /// What a device's transport is made of. Reads its secrets. Throws what is wrong with its options.
    init(
        _ device: DeviceConfig, of factory: any TransportFactory, _ secrets: SecretSource,
        _ environment: TransportEnvironment
    ) throws(MeshError) {
        var written = try device.resolvedOptions(secrets)
        let known = Set(factory.descriptor.options.map(\.name))
        if known.contains(SharedOption.connectTimeout), written[SharedOption.connectTimeout] == nil {
            written[SharedOption.connectTimeout] = .string(device.link.connectTimeout.optionText)
        }
        if known.contains(SharedOption.adapter), written[SharedOption.adapter] == nil, let adapter = device.adapter {
            written[SharedOption.adapter] = .string(adapter)
        }
        let (values, issues) = factory.check(written)
        if let issue = issues.first {
            throw MeshError(.configurationInvalid, "option \"\(issue.option)\": \(issue.message)")
        }
        self.init(device: device.name, options: values, written: written, environment: environment)
    }
}

extension DeviceConfig {
    /// The text of an option that is no secret and not empty.
    func text(ofOption name: String) -> String? {
        guard case .value(let value)? = options[name], let text = value.stringValue, !text.isEmpty else { return nil }
        return text
    }
}
