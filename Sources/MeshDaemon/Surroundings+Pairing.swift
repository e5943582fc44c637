// SPDX-License-Identifier: Apache-2.0
// meshhost: a host for mesh radios and other byte-link devices

internal import MeshConfig
internal import MeshTransportAPI

extension Surroundings {
    /// Whom `pair` and `unpair` are about.
    struct Target {
        var factory: any TransportPairing
        var settings: TransportSettings
        /// The configured device, if it is one.
        var device: String?
    }

    /// A configured device by its name or address, else the device with this address. Reads the secrets of a configured
    /// one.
    func target(_ request: HostCommand.PairOptions) async throws(MeshError) -> Target {
        let environment = TransportEnvironment(log: log.adding([("device", request.target)])) { _ in }
        if var device = device(request.target) {
            // One that is given anew is not read: its file may be what is missing.
            if request.pin != nil { device.options["pin"] = nil }
            if let module = request.module, module != device.module {
                throw MeshError(
                    .invalidArgument,
                    "device \"\(device.name)\" is configured for module \"\(device.module)\"; leave --module out")
            }
            if let reason = device.disabledReason { throw MeshError(.moduleRefused, reason) }
            let factory = try await pairing(device.module)
            var settings = try TransportSettings(device, of: factory, secrets, environment)
            try settings.set(request, of: factory)
            return Target(factory: factory, settings: settings, device: device.name)
        }
        let factory = try await pairing(request.module ?? Self.radioModule)
        guard factory.descriptor.options.contains(where: { $0.name == "address" }) else {
            throw MeshError(.notSupported, "devices of module \"\(factory.descriptor.name)\" have no address")
        }
        // What looks like a name is one, mistyped.
        guard request.target.contains(":") else { throw unknown(request.target) }
        var settings = TransportSettings(
            device: request.target, options: [].resolve([:]).values, written: ["address": .string(request.target)],
            environment: environment)
        try settings.set(request, of: factory)
        return Target(factory: factory, settings: settings)
    }

    private func device(_ target: String) -> DeviceConfig? {
        config.devices.first { $0.name == target }
            ?? config.devices.first { $0.text(ofOption: "address")?.lowercased() == target.lowercased() }
    }

    private func pairing(_ module: String) async throws(MeshError) -> any TransportPairing {
        let factory = try await factory(module)
        guard factory.descriptor.capabilities.contains(.pairing), let pairing = factory as? any TransportPairing else {
            throw MeshError(
                .notSupported, "devices of module \"\(module)\" are not paired with: its links need no keys")
        }
        return pairing
    }

    private func unknown(_ target: String) -> MeshError {
        let near = NearestName.of(target, among: config.devices.map(\.name)).map { "did you mean \"\($0)\"?" }
        return MeshError(
            .deviceUnknown,
            "no device is called \"\(target)\"; "
                + (near ?? "write the name of a [[device]], or an address such as C0:11:22:33:44:55"))
    }
}

extension TransportSettings {
    /// The command line wins over the config. Checks the options as they are then.
    fileprivate mutating func set(
        _ request: HostCommand.PairOptions, of factory: any TransportFactory
    ) throws(MeshError) {
        // Where a module owns the adapter, its option has the adapter's other name.
        for (names, value) in [(["pin"], request.pin), (["adapter", "controller"], request.adapter)] {
            guard let value else { continue }
            guard let name = names.first(where: { name in factory.descriptor.options.contains { $0.name == name } })
            else {
                throw MeshError(.notSupported, "module \"\(factory.descriptor.name)\" has no option \"\(names[0])\"")
            }
            written[name] = .string(value)
        }
        let (values, issues) = factory.check(written)
        if let issue = issues.first {
            let hint = issue.hint.map { "; \($0)" } ?? ""
            throw MeshError(
                .invalidArgument, (issue.option.isEmpty ? "" : "\(issue.option): ") + issue.message + hint)
        }
        options = values
    }
}
